"""Train one of the networks of models/ on pictures made on the spot.

python train.py --model=ResNet50 --lr_strategy=cosine_decay
"""


import argparse
import functools
import math
import os
import shutil
import sys
import tempfile

import models
import numpy as np
import paddle
import paddle.fluid as fluid
from utility import add_arguments, equal_start, print_arguments, reader_creator

parser = argparse.ArgumentParser(description=__doc__)
add_arg = functools.partial(add_arguments, argparser=parser)
# yapf: disable
add_arg('batch_size',       int,   6,                    "Minibatch size.")
add_arg('total_images',     int,   18,                   "Training image number.")
add_arg('num_epochs',       int,   2,                    "number of epochs.")
add_arg('class_dim',        int,   5,                    "Class number.")
add_arg('image_shape',      str,   "3,32,32",            "input image size")
add_arg('scale',            float, 0.125,                "Width of the network.")
add_arg('lr',               float, 0.0005,                "set learning rate.")
add_arg('lr_strategy',      str,   "piecewise_decay",    "Set the learning rate decay strategy.")
add_arg('model',            str,   "ResNet50",           "Set the network to use.")
add_arg('l2_decay',         float, 1e-4,                 "L2_decay parameter.")
add_arg('momentum_rate',    float, 0.9,                  "momentum_rate.")
add_arg('label_smoothing_epsilon', float, 0.0,           "Set the label_smoothing_epsilon parameter")
add_arg('use_gpu',          bool,  False,                "Whether to use GPU or not.")
add_arg('with_inplace',     bool,  True,                 "Whether to use inplace memory optimization.")
add_arg('enable_ce',        bool,  True,                 "If set True, enable continuous evaluation job.")
# yapf: enable


def optimizer_setting(args):
    step = int(math.ceil(float(args.total_images) / args.batch_size))
    if args.lr_strategy == "piecewise_decay":
        bd = [step * e for e in range(1, args.num_epochs)]
        lr = [args.lr * (0.1**i) for i in range(len(bd) + 1)]
        learning_rate = fluid.layers.piecewise_decay(boundaries=bd, values=lr)
    elif args.lr_strategy == "cosine_decay":
        learning_rate = fluid.layers.cosine_decay(
            learning_rate=args.lr, step_each_epoch=step, epochs=args.num_epochs
        )
    elif args.lr_strategy == "linear_decay":
        learning_rate = fluid.layers.polynomial_decay(
            args.lr, step * args.num_epochs, 1e-4, power=1
        )
    else:
        learning_rate = args.lr
    return fluid.optimizer.Momentum(
        learning_rate=learning_rate,
        momentum=args.momentum_rate,
        regularization=fluid.regularizer.L2Decay(args.l2_decay),
    )


def calc_loss(epsilon, label, class_dim, softmax_out):
    if epsilon > 0:
        label_one_hot = fluid.layers.one_hot(input=label, depth=class_dim)
        smooth_label = fluid.layers.label_smooth(
            label=label_one_hot, epsilon=epsilon, dtype="float32"
        )
        return fluid.layers.cross_entropy(
            input=softmax_out, label=smooth_label, soft_label=True
        )
    return fluid.layers.cross_entropy(input=softmax_out, label=label)


def net_config(image, label, args):
    assert args.model in models.__dict__, f"{args.model} is not in the models"
    model = models.__dict__[args.model]()
    if args.model == "GoogleNet":
        out0, out1, out2 = model.net(
            input=image, class_dim=args.class_dim, scale=args.scale
        )
        cost0 = fluid.layers.cross_entropy(input=out0, label=label)
        cost1 = fluid.layers.cross_entropy(input=out1, label=label)
        cost2 = fluid.layers.cross_entropy(input=out2, label=label)
        avg_cost0 = fluid.layers.mean(x=cost0)
        avg_cost1 = fluid.layers.mean(x=cost1)
        avg_cost2 = fluid.layers.mean(x=cost2)
        avg_cost = avg_cost0 + 0.3 * avg_cost1 + 0.3 * avg_cost2
        softmax_out = out0
    else:
        out = model.net(input=image, class_dim=args.class_dim, scale=args.scale)
        softmax_out = fluid.layers.softmax(out, use_cudnn=False)
        cost = calc_loss(
            args.label_smoothing_epsilon, label, args.class_dim, softmax_out
        )
        avg_cost = fluid.layers.mean(cost)
    acc_top1 = fluid.layers.accuracy(input=softmax_out, label=label, k=1)
    acc_top5 = fluid.layers.accuracy(
        input=softmax_out, label=label, k=min(3, args.class_dim)
    )
    return avg_cost, acc_top1, acc_top5


def build_program(is_train, main_prog, startup_prog, args):
    image_shape = [int(m) for m in args.image_shape.split(",")]
    with fluid.program_guard(main_prog, startup_prog):
        data_loader = None
        with fluid.unique_name.guard():
            image = fluid.data(
                name="image", shape=[None] + image_shape, dtype="float32"
            )
            label = fluid.data(name="label", shape=[None, 1], dtype="int64")
            if is_train:
                data_loader = fluid.io.DataLoader.from_generator(
                    feed_list=[image, label],
                    capacity=16,
                    use_double_buffer=True,
                    iterable=True,
                )
            avg_cost, acc_top1, acc_top5 = net_config(image, label, args)
            outs = [avg_cost, acc_top1, acc_top5]
            if is_train:
                optimizer = optimizer_setting(args)
                optimizer.minimize(avg_cost)
                global_lr = optimizer._global_learning_rate()
                global_lr.persistable = True
                outs.append(global_lr)
    return outs, data_loader, [image, label]


def save_model(exe, prog, path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    fluid.io.save_persistables(exe, path, main_program=prog)


def evaluate(exe, prog, feed_list, fetch_list, args, place):
    feeder = fluid.DataFeeder(feed_list=feed_list, place=place, program=prog)
    shape = [int(m) for m in args.image_shape.split(",")]
    reader = paddle.batch(
        reader_creator(6, shape, args.class_dim, seed=9), batch_size=3
    )
    results = []
    for data in reader():
        results.append(exe.run(prog, feed=feeder.feed(data), fetch_list=fetch_list))
    return np.mean(np.array(results).reshape(-1, len(fetch_list)), axis=0)


def train(args):
    startup_prog = fluid.Program()
    train_prog = fluid.Program()
    test_prog = fluid.Program()
    if args.enable_ce:
        startup_prog.random_seed = 1000
        train_prog.random_seed = 1000
    train_out, data_loader, _ = build_program(True, train_prog, startup_prog, args)
    test_out, _, test_feeds = build_program(False, test_prog, startup_prog, args)
    test_prog = test_prog.clone(for_test=True)

    place = fluid.CUDAPlace(0) if args.use_gpu else fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup_prog)
    equal_start(train_prog, place)

    shape = [int(m) for m in args.image_shape.split(",")]
    train_reader = paddle.batch(
        reader_creator(args.total_images, shape, args.class_dim, seed=3),
        batch_size=args.batch_size,
        drop_last=True,
    )
    data_loader.set_sample_list_generator(
        train_reader, places=fluid.cpu_places(1) if not args.use_gpu else [place]
    )

    build_strategy = fluid.BuildStrategy()
    build_strategy.enable_inplace = args.with_inplace
    exec_strategy = fluid.ExecutionStrategy()
    exec_strategy.num_threads = 1
    exec_strategy.num_iteration_per_drop_scope = 10
    compiled_train_prog = fluid.CompiledProgram(train_prog).with_data_parallel(
        loss_name=train_out[0].name,
        build_strategy=build_strategy,
        exec_strategy=exec_strategy,
        places=fluid.cpu_places(1),
    )

    fetch_list = [var.name for var in train_out]
    for pass_id in range(args.num_epochs):
        for batch_id, data in enumerate(data_loader()):
            loss, acc1, acc5, lr = exe.run(
                compiled_train_prog, feed=data, fetch_list=fetch_list
            )
            print(
                f"Pass {pass_id}, trainbatch {batch_id}, loss {np.mean(loss):.6f}, acc1 {np.mean(acc1):.4f}, acc3 {np.mean(acc5):.4f}, "
                f"lr {float(lr[0]):.6f}"
            )
            sys.stdout.flush()
        result = evaluate(exe, test_prog, test_feeds, test_out, args, place)
        print(
            f"End pass {pass_id}, test_loss {result[0]:.5f}, test_acc1 {result[1]:.4f}"
        )

    folder = tempfile.mkdtemp()
    save_model(exe, train_prog, os.path.join(folder, args.model, "0"))
    exe.run(startup_prog)
    fluid.io.load_persistables(
        exe, os.path.join(folder, args.model, "0"), main_program=train_prog
    )
    result = evaluate(exe, test_prog, test_feeds, test_out, args, place)
    print(f"restored, test_loss {result[0]:.5f}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    args = parser.parse_args()
    print_arguments(args)
    train(args)
