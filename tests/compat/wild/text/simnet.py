"""Pairwise text matching as in SimNet: bow, cnn or mean of windows, on LoD inputs."""


import argparse
import collections
import contextlib

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as layers
import paddle.fluid.param_attr as attr

DICT_SIZE, EMB_DIM = 30, 6


class EmbeddingLayer:
    def __init__(self, dict_size, emb_dim, name="emb", padding_idx=None):
        self.dict_size, self.emb_dim = dict_size, emb_dim
        self.name, self.padding_idx = name, padding_idx

    def ops(self, input):
        return layers.embedding(
            input=input,
            size=[self.dict_size, self.emb_dim],
            is_sparse=True,
            padding_idx=self.padding_idx,
            param_attr=attr.ParamAttr(name=self.name),
        )


class FCLayer:
    def __init__(self, fc_dim, act, name="fc"):
        self.fc_dim, self.act, self.name = fc_dim, act, name

    def ops(self, input):
        return layers.fc(
            input=input,
            size=self.fc_dim,
            act=self.act,
            name=self.name,
            param_attr=attr.ParamAttr(name="%s.w" % self.name),
            bias_attr=attr.ParamAttr(name="%s.b" % self.name),
        )


class BOW:
    def __init__(self):
        self.emb = EmbeddingLayer(DICT_SIZE, EMB_DIM)
        self.fc = FCLayer(8, "tanh")

    def encode(self, text):
        pooled = layers.sequence_pool(input=self.emb.ops(text), pool_type="sum")
        return self.fc.ops(layers.softsign(pooled))

    def predict(self, left, right):
        return layers.cos_sim(self.encode(left), self.encode(right))


class CNN(BOW):
    def encode(self, text):
        conv = fluid.nets.sequence_conv_pool(
            input=self.emb.ops(text),
            filter_size=3,
            num_filters=8,
            act="relu",
            pool_type="max",
            param_attr=attr.ParamAttr(name="conv.w"),
            bias_attr=attr.ParamAttr(name="conv.b"),
        )
        return self.fc.ops(conv)


class Reversed(BOW):
    """Both directions, each pooled to its last word; for sequence_reverse."""

    def encode(self, text):
        emb = self.emb.ops(text)
        ends = [
            layers.sequence_last_step(emb),
            layers.sequence_last_step(layers.sequence_reverse(emb)),
            layers.sequence_pool(emb, "sqrt"),
        ]
        return self.fc.ops(layers.concat(ends, axis=1))


def hinge(pos, neg, margin=0.2):
    shaped = layers.fill_constant_batch_size_like(neg, [-1, 1], "float32", margin)
    loss = layers.elementwise_max(
        layers.fill_constant_batch_size_like(neg, [-1, 1], "float32", 0.0),
        layers.elementwise_add(layers.elementwise_sub(neg, pos), shaped),
    )
    return layers.reduce_mean(loss)


def triples(seed, count):
    def reader():
        rng = np.random.RandomState(seed)
        for _ in range(count):
            topic = rng.randint(3)
            here = lambda t: (10 * t + rng.randint(0, 10, rng.randint(2, 6))).tolist()
            yield here(topic), here(topic), here((topic + 1) % 3)

    return reader


@contextlib.contextmanager
def counted(name, counter):
    counter[name] += 1
    yield


def main(net):
    texts = [
        layers.data(name=n, shape=[1], dtype="int64", lod_level=1)
        for n in ("left", "pos_right", "neg_right")
    ]
    model = {"bow": BOW, "cnn": CNN, "reversed": Reversed}[net]()
    pos = model.predict(texts[0], texts[1])
    neg = model.predict(texts[0], texts[2])
    loss = hinge(pos, neg)
    rank = layers.mean(
        layers.rank_loss(
            label=layers.fill_constant_batch_size_like(pos, [-1, 1], "float32", 1.0),
            left=pos,
            right=neg,
        )
    )
    infer = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adam(0.02, regularization=fluid.regularizer.L1Decay(1e-5)).minimize(
        loss + rank
    )
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(8)
    for p in fluid.default_main_program().global_block().iter_parameters():
        fluid.global_scope().find_var(p.name).get_tensor().set(
            rng.normal(0, 0.3, p.shape).astype("float32"), fluid.CPUPlace()
        )
    feeder = fluid.DataFeeder(texts, fluid.CPUPlace())
    counter = collections.Counter()
    for epoch in range(2):
        shuffled = paddle.reader.firstn(triples(epoch, 100), 24)
        for batch in paddle.batch(shuffled, batch_size=8)():
            with counted("batches", counter):
                out = exe.run(feed=feeder.feed(batch), fetch_list=[loss, rank])
            print("epoch %d hinge %.6f rank %.6f" % (epoch, out[0], out[1]))
    batch = list(triples(9, 5)())
    out = exe.run(infer, feed=feeder.feed(batch), fetch_list=[pos, neg])
    right = (out[0] > out[1]).sum()
    print(
        "test %d of %d right, %.5f %.5f"
        % (right, len(batch), out[0].mean(), out[1].mean())
    )
    assert counter["batches"] == 6


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--net", default="bow")
    main(parser.parse_args().net)
