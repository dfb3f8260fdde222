"""Sentiment of texts, in the style of the 1.x tutorial.

By convolution over words (--net conv), or from the words alone (--net bow).
"""

from __future__ import print_function

import argparse

import numpy
import paddle.fluid as fluid

CLASS_DIM = 2
EMB_DIM = 16
HID_DIM = 12
DICT_DIM = 80


def convolution_net(data, input_dim, class_dim, emb_dim, hid_dim):
    emb = fluid.layers.embedding(input=data, size=[input_dim, emb_dim], is_sparse=True)
    conv_3 = fluid.nets.sequence_conv_pool(
        input=emb, num_filters=hid_dim, filter_size=3, act="tanh", pool_type="sqrt"
    )
    conv_4 = fluid.nets.sequence_conv_pool(
        input=emb, num_filters=hid_dim, filter_size=4, act="tanh", pool_type="sqrt"
    )
    return fluid.layers.fc(input=[conv_3, conv_4], size=class_dim, act="softmax")


def bow_net(data, input_dim, class_dim, emb_dim, hid_dim):
    emb = fluid.layers.embedding(input=data, size=[input_dim, emb_dim], is_sparse=True)
    hidden = fluid.layers.fc(input=emb, size=hid_dim, act="tanh")
    pools = [
        fluid.layers.sequence_pool(input=hidden, pool_type=kind)
        for kind in ("sqrt", "max", "average")
    ]
    pools.append(fluid.layers.sequence_last_step(input=hidden))
    return fluid.layers.fc(input=pools, size=class_dim, act="softmax")


def texts(steps, batch, place):
    """Texts with more words of one half of the dictionary, or of the other."""
    random = numpy.random.RandomState(6)
    for _ in range(steps):
        labels = random.randint(0, 2, batch)
        lengths = random.randint(3, 12, batch)
        words = []
        for label, length in zip(labels, lengths):
            half = random.rand(length) < 0.8
            side = numpy.where(half, label, 1 - label)
            within = random.randint(0, DICT_DIM // 2, length)
            words.append(side * (DICT_DIM // 2) + within)
        flat = numpy.concatenate(words).astype("int64").reshape(-1, 1)
        yield (
            fluid.create_lod_tensor(flat, [lengths.tolist()], place),
            labels.astype("int64").reshape(-1, 1),
        )


def set_parameters(program, place):
    random = numpy.random.RandomState(2)
    for param in sorted(program.all_parameters(), key=lambda p: p.name):
        value = (0.2 * random.randn(*param.shape)).astype("float32")
        fluid.global_scope().find_var(param.name).get_tensor().set(value, place)


def main(net):
    place = fluid.CPUPlace()
    data = fluid.data(name="words", shape=[None, 1], dtype="int64", lod_level=1)
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    build = convolution_net if net == "conv" else bow_net
    prediction = build(data, DICT_DIM, CLASS_DIM, EMB_DIM, HID_DIM)
    cost = fluid.layers.cross_entropy(input=prediction, label=label)
    avg_cost = fluid.layers.mean(cost)
    accuracy = fluid.layers.accuracy(input=prediction, label=label)
    fluid.optimizer.Adagrad(learning_rate=0.02).minimize(avg_cost)
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    set_parameters(fluid.default_main_program(), place)
    for step, (words, labels) in enumerate(texts(15, 16, place)):
        loss, acc = exe.run(
            fluid.default_main_program(),
            feed={"words": words, "label": labels},
            fetch_list=[avg_cost, accuracy],
        )
        print("step %d loss %.7f acc %.4f" % (step, loss[0], acc[0]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--net", choices=["conv", "bow"], default="conv")
    main(parser.parse_args().net)
