# -*- coding: utf-8 -*-
"""Tabular baseline: folds, early stopping, own metrics."""

from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import os
import shutil
import six
import numpy as np
import paddle
import paddle.fluid as fluid
from six.moves import range, zip

CATS = [("city", 11), ("device", 5), ("weekday", 7)]
NUM = 6


def make_data(n=240, seed=7):
    rng = np.random.RandomState(seed)
    cats = [rng.randint(0, size, n) for _, size in CATS]
    nums = rng.randn(n, NUM).astype("float32")
    w = rng.randn(NUM)
    y = (nums.dot(w) + 0.4 * cats[0] - 2 > 0).astype("int64")
    return list(zip(nums, *cats)), y


def rmse_metric(prob, label):
    return float(np.sqrt(np.mean((prob - label) ** 2)))


class LogLoss(fluid.metrics.MetricBase):
    def __init__(self, name=None):
        super(LogLoss, self).__init__(name)
        self.total = 0.0
        self.count = 0

    def update(self, preds, labels):
        p = np.clip(preds[:, 1], 1e-7, 1 - 1e-7)
        l = labels.reshape(-1)
        self.total += float(-(l * np.log(p) + (1 - l) * np.log(1 - p)).sum())
        self.count += l.shape[0]

    def eval(self):
        return self.total / self.count


def build(is_test=False):
    num = fluid.layers.data("num", shape=[NUM], dtype="float32")
    num.stop_gradient = False
    label = fluid.layers.data("label", shape=[1], dtype="int64")
    embs = []
    ids = []
    for name, size in CATS:
        v = fluid.layers.data(name, shape=[1], dtype="int64")
        ids.append(v)
        e = fluid.layers.embedding(
            v, size=[size, 4], param_attr=fluid.ParamAttr(name="emb_" + name)
        )
        embs.append(e)
    bn = fluid.layers.batch_norm(num, is_test=is_test, momentum=0.7, name="bn_num")
    x = fluid.layers.concat([bn] + embs, axis=1)
    for i, w in enumerate([16, 8]):
        x = fluid.layers.fc(x, w, name="h%d" % i)
        x = fluid.layers.leaky_relu(x, alpha=0.1)
        x = fluid.layers.dropout(x, 0.0)
    prob = fluid.layers.fc(x, 2, act="softmax", name="out")
    cost = fluid.layers.cross_entropy(prob, label)
    loss = fluid.layers.mean(cost)
    auc, batch_auc, states = fluid.layers.auc(prob, label, num_thresholds=2**8 - 1)
    acc = fluid.layers.accuracy(prob, label)
    return [num] + ids + [label], prob, loss, auc, acc, states


def set_params(program, seed):
    rng = np.random.RandomState(seed)
    for p in sorted(program.global_block().all_parameters(), key=lambda p: p.name):
        if "bn" in p.name:
            continue
        value = (rng.randn(*p.shape) * 0.3).astype(np.float32)
        fluid.global_scope().find_var(p.name).get_tensor().set(value, fluid.CPUPlace())


def reader_of(rows, ys, index):
    def reader():
        for i in index:
            r = rows[i]
            yield r[0], r[1], r[2], r[3], ys[i]

    return reader


def train_fold(fold, rows, ys, train_idx, valid_idx):
    main = fluid.Program()
    startup = fluid.Program()
    startup.random_seed = main.random_seed = 90
    with fluid.program_guard(main, startup):
        feeds, prob, loss, auc, acc, states = build()
        test_program = main.clone(for_test=True)
        fluid.optimizer.AdamOptimizer(
            learning_rate=fluid.layers.piecewise_decay([20, 40], [0.02, 0.01, 0.005]),
            regularization=fluid.regularizer.L2DecayRegularizer(1e-4),
        ).minimize(loss)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup)
    set_params(main, fold)
    feeder = fluid.DataFeeder(
        feed_list=[v.name for v in feeds], place=place, program=main
    )
    batches = paddle.batch(
        reader_of(rows, ys, train_idx), batch_size=32, drop_last=True
    )
    valid = paddle.batch(reader_of(rows, ys, valid_idx), batch_size=40)
    best, bad, patience = float("inf"), 0, 2
    best_dir = "./best_%d" % fold
    for epoch in range(8):
        # reset auc
        for s in states:
            t = fluid.global_scope().find_var(s.name).get_tensor()
            t.set(np.zeros(t.shape(), dtype="int64"), place)
        train_loss = []
        for data in batches():
            l, a, c = exe.run(main, feed=feeder.feed(data), fetch_list=[loss, auc, acc])
            train_loss.append(l[0])
        m = LogLoss("logloss")
        py_auc = fluid.metrics.Auc("valid_auc", num_thresholds=255)
        prec, rec = fluid.metrics.Precision(), fluid.metrics.Recall()
        comp = fluid.metrics.CompositeMetric()
        comp.add_metric(prec)
        comp.add_metric(rec)
        vs = []
        for data in valid():
            feed = feeder.feed(data)
            p, v = exe.run(test_program, feed=feed, fetch_list=[prob.name, loss.name])
            lab = np.array(feed["label"])
            m.update(p, lab)
            py_auc.update(p, lab)
            comp.update((p[:, 1:] > 0.5).astype("float32"), lab.astype("int32"))
            vs.append(float(v))
        pr, re_ = comp.eval()
        print(
            "fold {} epoch {} train {:.5f} auc {:.5f} valid {:.5f} logloss {:.5f} vauc {:.5f} p {:.4f} r {:.4f}".format(
                fold,
                epoch,
                np.mean(train_loss),
                float(a),
                np.mean(vs),
                m.eval(),
                py_auc.eval(),
                pr,
                re_,
            )
        )
        if m.eval() < best - 1e-4:
            best, bad = m.eval(), 0
            if os.path.exists(best_dir):
                shutil.rmtree(best_dir)
            fluid.io.save_params(exe, best_dir, main_program=main)
        else:
            bad += 1
            if bad >= patience:
                print("early stop")
                break
    fluid.io.load_params(exe, best_dir, main_program=main)
    out = []
    for data in valid():
        out.append(exe.run(test_program, feed=feeder.feed(data), fetch_list=[prob])[0])
    oof = np.concatenate(out)[:, 1]
    return oof, sorted(os.listdir(best_dir))


if __name__ == "__main__":
    rows, ys = make_data()
    n = len(ys)
    oof = np.zeros(n)
    for fold in range(2):
        with fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
            valid_idx = np.arange(fold, n, 2)
            train_idx = np.arange(1 - fold, n, 2)
            oof[valid_idx], files = train_fold(fold, rows, ys, train_idx, valid_idx)
            print(files)
    print("oof rmse %.5f acc %.4f" % (rmse_metric(oof, ys), ((oof > 0.5) == ys).mean()))
    for k, v in six.iteritems({"done": True}):
        print(k, v)
