"""OCR by CRNN-CTC as in the models repository: convolutions, im2sequence, GRUs in both
directions, warpctc, and the edit distance of the greedy decoding."""
from __future__ import print_function

import argparse

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid.initializer import MSRA
from paddle.fluid.param_attr import ParamAttr
from paddle.fluid.regularizer import L2Decay

NUM_CLASSES, HEIGHT, WIDTH = 5, 8, 24


def conv_bn_pool(input, group, out_ch, act="relu", is_test=False, pool=True):
    tmp = input
    for i in range(group):
        tmp = fluid.layers.conv2d(
            input=tmp,
            num_filters=out_ch[i],
            filter_size=3,
            padding=1,
            param_attr=ParamAttr(initializer=MSRA()),
            act=None,
            use_cudnn=True,
        )
        tmp = fluid.layers.batch_norm(input=tmp, act=act, is_test=is_test)
    if pool:
        tmp = fluid.layers.pool2d(
            input=tmp, pool_size=2, pool_type="max", pool_stride=2, ceil_mode=True
        )
    return tmp


def encoder_net(images, num_classes, rnn_hidden_size=6, is_test=False):
    conv = conv_bn_pool(images, 2, [4, 4], is_test=is_test)
    conv = conv_bn_pool(conv, 1, [6], is_test=is_test, pool=False)
    sliced_feature = fluid.layers.im2sequence(
        input=conv, stride=[1, 1], filter_size=[conv.shape[2], 1]
    )
    regularizer = L2Decay(1e-4)
    para_attr = ParamAttr(regularizer=regularizer)
    bias_attr = ParamAttr(regularizer=regularizer, learning_rate=2.0)
    fcs = [
        fluid.layers.fc(
            input=sliced_feature,
            size=rnn_hidden_size * 3,
            param_attr=para_attr,
            bias_attr=False,
        )
        for _ in range(2)
    ]
    grus = [
        fluid.layers.dynamic_gru(
            input=f,
            size=rnn_hidden_size,
            param_attr=para_attr,
            bias_attr=bias_attr,
            candidate_activation="relu",
            is_reverse=bool(i),
        )
        for i, f in enumerate(fcs)
    ]
    return fluid.layers.fc(
        input=grus, size=num_classes + 1, param_attr=para_attr, bias_attr=bias_attr
    )


def ctc_train_net(images, label, num_classes, learning_rate):
    fc_out = encoder_net(images, num_classes)
    cost = fluid.layers.warpctc(
        input=fc_out, label=label, blank=num_classes, norm_by_times=True
    )
    sum_cost = fluid.layers.reduce_sum(cost)
    decoded_out = fluid.layers.ctc_greedy_decoder(input=fc_out, blank=num_classes)
    casted_label = fluid.layers.cast(x=label, dtype="int64")
    error_evaluator = fluid.evaluator.EditDistance(decoded_out, casted_label)
    inference_program = fluid.default_main_program().clone(for_test=True)
    lr = fluid.layers.piecewise_decay([8, 16], [learning_rate, 0.02, 0.01])
    optimizer = fluid.optimizer.Momentum(learning_rate=lr, momentum=0.9)
    optimizer.minimize(sum_cost)
    return sum_cost, decoded_out, error_evaluator, inference_program


def ctc_padded(logits, labels, place):
    """The same loss of padded tensors."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("logits", [None, None, NUM_CLASSES + 1], "float32", 1)
        y = fluid.data("labels", [None, None], "int32")
        n, m = fluid.data("n", [None], "int64"), fluid.data("m", [None], "int64")
        cost = fluid.layers.warpctc(
            x, y, blank=NUM_CLASSES, input_length=n, label_length=m
        )
        probs = fluid.layers.softmax(fluid.layers.transpose(x, [1, 0, 2]))
        ids, count = fluid.layers.ctc_greedy_decoder(
            probs, NUM_CLASSES, fluid.layers.reshape(n, [-1, 1]), padding_value=-1
        )
    longest = max(map(len, labels))
    feed = {
        "logits": logits,
        "labels": np.array([l + [0] * (longest - len(l)) for l in labels], "int32"),
        "n": np.full(len(labels), logits.shape[0], "int64"),
        "m": np.array(list(map(len, labels)), "int64"),
    }
    return fluid.Executor(place).run(program, feed=feed, fetch_list=[cost, ids, count])


def images(seed, count):
    """Characters are bars of different heights, next to each other."""

    def reader():
        rng = np.random.RandomState(seed)
        for _ in range(count):
            label = rng.randint(0, NUM_CLASSES, rng.randint(1, 5)).tolist()
            image = rng.uniform(0, 0.2, (1, HEIGHT, WIDTH))
            for i, k in enumerate(label):
                image[0, : k + 2, 6 * i + 1 : 6 * i + 4] += 1
            yield image.astype("float32"), label

    return reader


def get_feeder_data(data, place):
    pixels = np.stack([image for image, _ in data])
    ids = np.concatenate([label for _, label in data]).astype("int32").reshape(-1, 1)
    label = fluid.LoDTensor()
    label.set(ids, place)
    label.set_recursive_sequence_lengths([[len(label) for _, label in data]])
    return {"pixel": pixels, "label": label}


def main(args):
    place = fluid.CPUPlace()
    pixel = fluid.layers.data(name="pixel", shape=[1, HEIGHT, WIDTH], dtype="float32")
    label = fluid.layers.data(name="label", shape=[1], dtype="int32", lod_level=1)
    sum_cost, decoded, evaluator, inference = ctc_train_net(
        pixel, label, NUM_CLASSES, args.lr
    )
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(5)
    for p in fluid.default_main_program().global_block().all_parameters():
        if "batch_norm" not in p.name:
            fluid.global_scope().find_var(p.name).get_tensor().set(
                rng.normal(0, 0.3, p.shape).astype("float32"), place
            )
    for epoch in range(args.passes):
        evaluator.reset(exe)
        for batch in paddle.batch(images(epoch, 32), batch_size=4)():
            fetched = exe.run(
                feed=get_feeder_data(batch, place),
                fetch_list=[sum_cost] + evaluator.metrics,
            )
            print("cost %.5f distance %.5f" % (fetched[0][0] / 4, fetched[1].mean()))
        distance, wrong = evaluator.eval(exe)
        print("pass %d: distance %.5f wrong %.5f" % (epoch, distance[0], wrong[0]))
    batch = list(images(99, 4)())
    (found,) = exe.run(
        inference,
        feed=get_feeder_data(batch, place),
        fetch_list=[decoded],
        return_numpy=False,
    )
    offsets, ids = found.lod()[0], np.array(found).ravel()
    for i, (_, wanted) in enumerate(batch):
        print("label", wanted, "read", ids[offsets[i] : offsets[i + 1]].tolist())
    logits = np.random.RandomState(6).normal(0, 1, (7, 4, NUM_CLASSES + 1))
    cost, ids, count = ctc_padded(
        logits.astype("float32"), [wanted for _, wanted in batch], place
    )
    print("padded", ["%.5f" % c for c in cost.ravel()], ids.tolist(), count.tolist())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.03)
    main(parser.parse_args())
