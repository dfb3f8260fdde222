"""A long train.py: arguments, nets, loaders, checkpoints, resuming."""

import argparse
import ast
import csv
import distutils.util
import functools
import os
import six
import sys
import time
import numpy as np
import paddle
import paddle.fluid as fluid


def print_arguments(args):
    print("-----------  Configuration Arguments -----------")
    for arg, value in sorted(six.iteritems(vars(args))):
        print("%s: %s" % (arg, value))
    print("------------------------------------------------")


def add_arguments(argname, type, default, help, argparser, **kwargs):
    type = distutils.util.strtobool if type == bool else type
    argparser.add_argument(
        "--" + argname,
        default=default,
        type=type,
        help=help + " Default: %(default)s.",
        **kwargs,
    )


parser = argparse.ArgumentParser(description=__doc__)
add_arg = functools.partial(add_arguments, argparser=parser)
add_arg("use_gpu", bool, False, "Whether to use GPU or not.")
add_arg("batch_size", int, 6, "Minibatch size.")
add_arg("num_epochs", int, 3, "epochs.")
add_arg("model_save_dir", str, "output", "model save directory")
add_arg("checkpoint", str, None, "Whether to resume checkpoint.")
add_arg("lr", float, 0.05, "set learning rate.")
add_arg("lr_steps", ast.literal_eval, [4, 8], "steps")
add_arg("use_double_buffer", ast.literal_eval, True, "x")


def optimizer_setting(args):
    bd = args.lr_steps
    lr = [args.lr * (0.1**i) for i in range(len(bd) + 1)]
    return fluid.optimizer.Momentum(
        learning_rate=fluid.layers.piecewise_decay(boundaries=bd, values=lr),
        momentum=0.9,
        regularization=fluid.regularizer.L2Decay(1e-4),
    )


def model(img):
    x = fluid.nets.img_conv_group(
        input=img,
        conv_num_filter=[4, 4],
        pool_size=2,
        conv_padding=1,
        conv_filter_size=3,
        conv_act="relu",
        conv_with_batchnorm=[True, False],
        conv_batchnorm_drop_rate=[0.0, 0.0],
        pool_stride=2,
        pool_type="max",
    )
    x = fluid.nets.simple_img_conv_pool(
        input=x, filter_size=3, num_filters=5, pool_size=2, pool_stride=2, act="tanh"
    )
    g = fluid.nets.glu(input=x, dim=1) if x.shape[1] % 2 == 0 else x
    x = (
        fluid.nets.scaled_dot_product_attention(
            fluid.layers.reshape(g, [-1, 5, 1]),
            fluid.layers.reshape(g, [-1, 5, 1]),
            fluid.layers.reshape(g, [-1, 5, 1]),
            num_heads=1,
        )
        if g.shape[2] == 1
        else g
    )
    return fluid.layers.fc(x, size=3, act="softmax")


def build_program(is_train, main_prog, startup_prog, args):
    with fluid.program_guard(main_prog, startup_prog):
        with fluid.unique_name.guard():
            image = fluid.data(name="image", shape=[None, 1, 8, 8], dtype="float32")
            label = fluid.data(name="label", shape=[None, 1], dtype="int64")
            loader = fluid.io.DataLoader.from_generator(
                feed_list=[image, label],
                capacity=4,
                iterable=False,
                use_double_buffer=args.use_double_buffer,
            )
            out = model(image)
            cost = fluid.layers.cross_entropy(input=out, label=label)
            avg = fluid.layers.mean(x=cost)
            acc = fluid.layers.accuracy(input=out, label=label, k=1)
            res = [loader, avg, acc]
            if is_train:
                opt = optimizer_setting(args)
                opt.minimize(avg)
                lr = opt._global_learning_rate()
                lr.persistable = True
                avg.persistable = True
                res.append(lr)
    return res


def reader(seed, n):
    def impl():
        rng = np.random.RandomState(seed)
        for _ in range(n):
            y = rng.randint(0, 3)
            yield (rng.rand(64) + y * 0.4).astype("float32").reshape(1, 8, 8), y

    return impl


def save_model(exe, prog, dirname, pass_id):
    path = os.path.join(dirname, str(pass_id))
    if not os.path.isdir(path):
        os.makedirs(path)
    fluid.io.save_persistables(exe, path, main_program=prog)
    return path


def train(args):
    startup, train_prog, test_prog = fluid.Program(), fluid.Program(), fluid.Program()
    train_prog.random_seed = startup.random_seed = 1000
    loader, loss, acc, lr = build_program(True, train_prog, startup, args)
    tloader, tloss, tacc = build_program(False, test_prog, startup, args)
    test_prog = test_prog.clone(for_test=True)
    place = fluid.CUDAPlace(0) if args.use_gpu else fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup)
    rng = np.random.RandomState(7)
    for p in sorted(train_prog.all_parameters(), key=lambda v: v.name):
        if len(p.shape) > 1:
            fluid.global_scope().find_var(p.name).get_tensor().set(
                (rng.randn(*p.shape) * 0.3).astype("float32"), place
            )
    if args.checkpoint is not None:
        fluid.io.load_persistables(exe, args.checkpoint, main_program=train_prog)
    loader.set_sample_list_generator(
        paddle.batch(reader(0, 21), batch_size=args.batch_size)
    )
    tloader.set_sample_list_generator(paddle.batch(reader(5, 12), batch_size=6))
    compiled = fluid.CompiledProgram(train_prog).with_data_parallel(loss_name=loss.name)
    rows = []
    path = None
    for pass_id in range(args.num_epochs):
        infos = [[], []]
        loader.start()
        batch = 0
        t1 = time.time()
        try:
            while True:
                l, a, r = exe.run(compiled, fetch_list=[loss.name, acc.name, lr.name])
                infos[0].append(np.mean(np.array(l)))
                infos[1].append(np.mean(np.array(a)))
                print(
                    "Pass {0}, trainbatch {1}, loss {2}, acc1 {3}, lr {4} {5}".format(
                        pass_id,
                        batch,
                        "%.5f" % infos[0][-1],
                        "%.5f" % infos[1][-1],
                        "%.5f" % np.mean(np.array(r)),
                        "" if time.time() >= t1 else "late",
                    )
                )
                sys.stdout.flush()
                batch += 1
        except fluid.core.EOFException:
            loader.reset()
        t = [[], []]
        tloader.start()
        try:
            while True:
                l, a = exe.run(program=test_prog, fetch_list=[tloss.name, tacc.name])
                t[0].append(l[0])
                t[1].append(a[0])
        except fluid.core.EOFException:
            tloader.reset()
        rows.append(
            [
                pass_id,
                np.array(infos[0]).mean(),
                np.array(t[0]).mean(),
                np.array(t[1]).mean(),
            ]
        )
        print(
            "End pass %d, train_loss %.5f, test_loss %.5f, test_acc1 %.4f"
            % tuple(rows[-1])
        )
        path = save_model(exe, train_prog, args.model_save_dir, pass_id)
    with open("log.csv", "w") as f:
        csv.writer(f).writerows(rows)
    return path


def main():
    args = parser.parse_args()
    print_arguments(args)
    path = train(args)
    print(path, len(os.listdir(path)))
    args.checkpoint, args.num_epochs = path, 1
    with fluid.scope_guard(fluid.Scope()):
        train(args)


if __name__ == "__main__":
    main()
