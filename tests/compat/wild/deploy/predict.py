# -*- coding: utf-8 -*-
"""Trains a small network for digits, saves it, and serves it with the inference API."""
from __future__ import print_function

import argparse
import os
import time

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid.core import AnalysisConfig
from paddle.fluid.core import PaddleTensor
from paddle.fluid.core import create_paddle_predictor


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_dir", type=str, default="inference_model")
    parser.add_argument("--model_file", type=str, default="", help="combined model: name of the program file")
    parser.add_argument("--params_file", type=str, default="", help="combined model: name of the parameter file")
    parser.add_argument("-b", "--batch_size", type=int, default=4)
    parser.add_argument("--use_gpu", action="store_true")
    parser.add_argument("--zero_copy", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


def images(count, seed):
    rng = np.random.RandomState(seed)
    label = rng.randint(0, 4, (count, 1)).astype("int64")
    img = rng.rand(count, 1, 12, 12).astype("float32") * 0.3
    for i, k in enumerate(label[:, 0]):
        img[i, 0, 3 * k:3 * k + 3, :] += 0.7
    return img, label


def build(is_test=False):
    img = fluid.layers.data(name="image", shape=[1, 12, 12], dtype="float32")
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")

    def weight(shape, seed):
        value = np.random.RandomState(seed).uniform(-0.2, 0.2, shape).astype("float32")
        return fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(value))

    conv = fluid.layers.conv2d(img, 6, 3, padding=1, param_attr=weight((6, 1, 3, 3), 1), bias_attr=False)
    bn = fluid.layers.batch_norm(conv, act="relu", is_test=is_test)
    pool = fluid.layers.pool2d(bn, 2, "max", 2)
    drop = fluid.layers.dropout(pool, 0.0, is_test=is_test)
    prob = fluid.layers.fc(drop, 4, act="softmax", param_attr=weight((216, 4), 2))
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prob, label))
    return img, prob, loss


def train_and_save(args):
    img, prob, loss = build()
    test_program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for step in range(6):
        x, y = images(16, step)
        cost, = exe.run(feed={"image": x, "label": y}, fetch_list=[loss])
    print("last loss: %.5f" % cost[0])
    kwargs = {}
    if args.model_file:
        kwargs = dict(model_filename=args.model_file, params_filename=args.params_file)
    fluid.io.save_inference_model(args.model_dir, ["image"], [prob], exe, test_program, **kwargs)


def set_config(args):
    if args.model_file:
        config = AnalysisConfig(os.path.join(args.model_dir, args.model_file),
                                os.path.join(args.model_dir, args.params_file))
    else:
        config = AnalysisConfig(args.model_dir)
    if args.use_gpu:
        config.enable_use_gpu(100, 0)
    else:
        config.disable_gpu()
        config.enable_mkldnn()
        config.set_cpu_math_library_num_threads(1)
    config.disable_glog_info()
    config.switch_ir_optim(True)
    config.switch_specify_input_names(True)
    config.enable_memory_optim()
    if args.zero_copy:
        # must be off for ZeroCopyTensor
        config.switch_use_feed_fetch_ops(False)
    print("gpu:", config.use_gpu(), "ir:", config.ir_optim(), "feed:", config.use_feed_fetch_ops_enabled())
    return config


def run(predictor, x):
    tensor = PaddleTensor()
    tensor.name = "image"
    tensor.shape = x.shape
    tensor.dtype = fluid.core.PaddleDType.FLOAT32
    tensor.data = fluid.core.PaddleBuf(x.flatten().astype("float32"))
    outputs = predictor.run([tensor])
    output = outputs[0]
    return np.array(output.data.float_data()).reshape(output.shape)


def zero_copy(predictor, x):
    names = predictor.get_input_names()
    tensor = predictor.get_input_tensor(names[0])
    tensor.reshape(list(x.shape))
    tensor.copy_from_cpu(x.copy())
    predictor.zero_copy_run()
    names = predictor.get_output_names()
    return predictor.get_output_tensor(names[0]).copy_to_cpu()


def main():
    args = parse_args()
    train_and_save(args)
    predictor = create_paddle_predictor(set_config(args))
    print("inputs:", predictor.get_input_names())
    call = zero_copy if args.zero_copy else run
    begin = time.time()
    right = total = 0
    for i in range(args.repeats):
        # the last batch is smaller
        x, y = images(args.batch_size - (i == args.repeats - 1), 100 + i)
        prob = call(predictor, x)
        print("batch %d" % i, prob.shape)
        for row in prob:
            print(" ".join("%.4f" % p for p in row))
        right += (prob.argmax(1) == y[:, 0]).sum()
        total += len(y)
    assert time.time() > begin
    print("accuracy: %.3f" % (float(right) / total))
    other = predictor.clone()
    x, _ = images(2, 7)
    print("clone: %.5f" % abs(call(other, x) - call(predictor, x)).max())


if __name__ == "__main__":
    main()
