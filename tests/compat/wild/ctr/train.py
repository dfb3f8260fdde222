"""Train a click model; afterwards load it as a server would, and compare."""


import argparse
import logging
import os
import shutil
import tempfile

import network_conf
import numpy as np
import paddle
import paddle.fluid as fluid
from network_conf import DENSE_DIM, SPARSE_SLOTS, VOCAB

logging.basicConfig(format="%(asctime)s - %(levelname)s - %(message)s")
logger = logging.getLogger("fluid")
logger.setLevel(logging.INFO)


def parse_args():
    parser = argparse.ArgumentParser(description="CTR example")
    parser.add_argument("--network", type=str, default="wide_deep")
    parser.add_argument("--optimizer", type=str, default="adam")
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--num_passes", type=int, default=2)
    return parser.parse_args()


class Generator:
    def __init__(self, seed, lines):
        self.seed, self.lines = seed, lines

    def __call__(self):
        rng = np.random.RandomState(self.seed)
        for _ in range(self.lines):
            dense = rng.rand(DENSE_DIM).astype("float32")
            ids = [
                rng.randint(0, VOCAB, rng.randint(1, 4)).tolist()
                for _ in range(SPARSE_SLOTS)
            ]
            click = int(dense[0] + (ids[0][0] % 2) > 0.9)
            yield [dense] + ids + [[click]]


def make_optimizer(name):
    if name == "adam":
        return fluid.optimizer.Adam(learning_rate=1e-2, lazy_mode=False)
    elif name == "lazy_adam":
        return fluid.optimizer.Adam(learning_rate=1e-2, lazy_mode=True)
    elif name == "adagrad":
        return fluid.optimizer.Adagrad(0.05, initial_accumulator_value=0.1)
    elif name == "rmsprop":
        return fluid.optimizer.RMSProp(0.01, momentum=0.5, centered=True)
    return fluid.optimizer.SGD(
        learning_rate=fluid.layers.exponential_decay(
            learning_rate=0.1, decay_steps=5, decay_rate=0.9, staircase=True
        )
    )


def train():
    args = parse_args()
    fluid.default_main_program().random_seed = 9
    dense, sparse, label = network_conf.inputs()
    logit = getattr(network_conf, args.network)(dense, sparse)
    penalty = None
    if isinstance(logit, tuple):
        logit, penalty = logit
    predict = fluid.layers.sigmoid(logit)
    cost = fluid.layers.log_loss(
        input=predict, label=fluid.layers.cast(label, "float32")
    )
    avg_cost = fluid.layers.reduce_sum(cost)
    if penalty is not None:
        avg_cost += penalty
    two_class = fluid.layers.concat([1 - predict, predict], axis=1)
    auc_var, batch_auc_var, auc_states = fluid.layers.auc(
        input=two_class, label=label, num_thresholds=2**12, slide_steps=20
    )
    test_program = fluid.default_main_program().clone(for_test=True)
    make_optimizer(args.optimizer).minimize(avg_cost)

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(1)
    for name in sorted(p.name for p in fluid.default_main_program().all_parameters()):
        tensor = fluid.global_scope().find_var(name).get_tensor()
        value = rng.uniform(-0.3, 0.3, tensor.shape()).astype("float32")
        tensor.set(value, place)

    train_reader = paddle.batch(
        paddle.reader.buffered(Generator(3, 40), 16), args.batch_size
    )
    feeder = fluid.DataFeeder(feed_list=[dense] + sparse + [label], place=place)
    for pass_id in range(args.num_passes):
        for batch_id, data in enumerate(train_reader()):
            loss_val, auc_val, batch_auc_val = exe.run(
                fluid.default_main_program(),
                feed=feeder.feed(data),
                fetch_list=[avg_cost, auc_var, batch_auc_var],
            )
            print(
                f"TRAIN --> pass: {pass_id} batch: {batch_id} loss: {float(loss_val[0]) / len(data):.6f} auc: {auc_val[0]:.5f}, batch_auc: "
                f"{batch_auc_val[0]:.5f}"
            )
    # auc counts go on from where they are unless somebody zeroes them
    for state in auc_states:
        tensor = fluid.global_scope().find_var(state.name).get_tensor()
        tensor.set(np.zeros(tensor.shape(), "int64"), place)
    for data in paddle.batch(Generator(4, 12), 12)():
        values = exe.run(
            test_program, feed=feeder.feed(data), fetch_list=[avg_cost, auc_var]
        )
        print(
            f"TEST --> loss: {values[0][0] / len(data):.6f} auc: {values[1][0]:.5f}"
        )

    folder = os.path.join(tempfile.mkdtemp(), "model")
    names = [dense.name] + [s.name for s in sparse]
    fluid.io.save_inference_model(folder, names, [predict], exe)
    with fluid.scope_guard(fluid.core.Scope()):
        program, feed_names, fetches = fluid.io.load_inference_model(folder, exe)
        assert feed_names == names
        infer_feeder = fluid.DataFeeder(
            feed_list=[program.global_block().var(n) for n in feed_names], place=place
        )
        data = [line[:-1] for line in Generator(5, 3)()]
        out = exe.run(program, feed=infer_feeder.feed(data), fetch_list=fetches)[0]
        print("INFER --> " + " ".join("%.6f" % p for p in out.flatten()))
    shutil.rmtree(os.path.dirname(folder))


if __name__ == "__main__":
    train()
