"""Click-through rate from sparse slots: files, datasets, and a fleet with servers.

Alone it trains in one process. With TRAINING_ROLE in the environment (a launcher sets
it) it is a worker or a server of a fleet.
"""

from __future__ import print_function

import os
import shutil
import tempfile

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (  # noqa: E501
    StrategyFactory,
)

SLOTS = 4
SPARSE_DIM = 101
EMBEDDING = 8


def ctr_net():
    dense = fluid.layers.data(name="dense_input", shape=[3], dtype="float32")
    sparse = [
        fluid.layers.data(name="C%d" % i, shape=[1], lod_level=1, dtype="int64")
        for i in range(SLOTS)
    ]
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")

    def embedding_layer(input):
        emb = fluid.layers.embedding(
            input=input,
            is_sparse=True,
            size=[SPARSE_DIM, EMBEDDING],
            param_attr=fluid.ParamAttr(
                name="SparseFeatFactors", initializer=fluid.initializer.Uniform()
            ),
        )
        return fluid.layers.sequence_pool(input=emb, pool_type="average")

    pooled = [embedding_layer(s) for s in sparse]
    concated = fluid.layers.concat(pooled + [dense], axis=1)
    for i, size in enumerate([32, 16]):
        concated = fluid.layers.fc(
            input=concated,
            size=size,
            act="relu",
            param_attr=fluid.ParamAttr(
                initializer=fluid.initializer.Normal(scale=0.1), name="fc%d_w" % i
            ),
        )
    predict = fluid.layers.fc(input=concated, size=2, act="softmax")
    cost = fluid.layers.cross_entropy(input=predict, label=label)
    avg_cost = fluid.layers.reduce_mean(cost)
    auc_var, _, _ = fluid.layers.auc(input=predict, label=label)
    return [dense] + sparse + [label], predict, avg_cost, auc_var


def write_files(folder, count, lines):
    """Files in the MultiSlot format: per slot how many values, then the values."""
    random = np.random.RandomState(10)
    taste = random.randn(SPARSE_DIM)
    names = []
    for number in range(count):
        names.append(os.path.join(folder, "part-%d" % number))
        with open(names[-1], "w") as out:
            for _ in range(lines):
                dense = random.rand(3)
                slots = [
                    random.randint(0, SPARSE_DIM, random.randint(1, 4))
                    for _ in range(SLOTS)
                ]
                liking = sum(taste[s].mean() for s in slots) + dense.sum() - 1.5
                words = ["3"] + ["%.4f" % d for d in dense]
                for slot in slots:
                    words += [str(len(slot))] + [str(v) for v in slot]
                words += ["1", str(int(liking > 0))]
                out.write(" ".join(words) + "\n")
    return names


def set_parameters(program, place):
    random = np.random.RandomState(12)
    for param in sorted(program.global_block().all_parameters(), key=lambda p: p.name):
        value = (0.2 * random.randn(*param.shape)).astype("float32")
        fluid.global_scope().find_var(param.name).get_tensor().set(value, place)


def feed_of(files, place):
    """The lines of the first file as one batch."""
    with open(files[0]) as lines:
        rows = [list(map(float, line.split())) for line in lines]
    dense, slots, labels = [], [[] for _ in range(SLOTS)], []
    for row in rows:
        dense.append(row[1:4])
        at = 4
        for slot in slots:
            size = int(row[at])
            slot.append([int(v) for v in row[at + 1 : at + 1 + size]])
            at += 1 + size
        labels.append([int(row[at + 1])])
    feed = {
        "dense_input": np.array(dense, "float32"),
        "label": np.array(labels, "int64"),
    }
    for i, slot in enumerate(slots):
        flat = np.concatenate(slot).reshape(-1, 1).astype("int64")
        lengths = [[len(s) for s in slot]]
        feed["C%d" % i] = fluid.create_lod_tensor(flat, lengths, place)
    return feed


def train(inputs, avg_cost, auc_var, program, startup, test_program, files):
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup)
    if "TRAINING_ROLE" not in os.environ:
        set_parameters(fluid.default_main_program(), place)
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var(inputs)
    dataset.set_pipe_command("cat")
    dataset.set_batch_size(20)
    dataset.set_thread(1)
    dataset.set_filelist(files)
    feed = feed_of(files, place)
    for epoch in range(3):
        exe.train_from_dataset(program=program, dataset=dataset, debug=False)
        loss, auc = exe.run(test_program, feed=feed, fetch_list=[avg_cost, auc_var])
        print("epoch %d loss %.7f auc %.6f" % (epoch, loss[0], auc[0]))
    return exe


def main():
    inputs, predict, avg_cost, auc_var = ctr_net()
    main_program = fluid.default_main_program()
    test_program = main_program.clone(for_test=True)
    optimizer = fluid.optimizer.Adam(learning_rate=0.01)
    folder = tempfile.mkdtemp()
    files = write_files(folder, 2, 100)
    try:
        if "TRAINING_ROLE" not in os.environ:
            optimizer.minimize(avg_cost)
            startup = fluid.default_startup_program()
            train(inputs, avg_cost, auc_var, main_program, startup, test_program, files)
            return
        fleet.init(role_maker.PaddleCloudRoleMaker())
        strategy = StrategyFactory.create_sync_strategy()
        fleet.distributed_optimizer(optimizer, strategy).minimize(avg_cost)
        if fleet.is_server():
            fleet.init_server()
            fleet.run_server()
            return
        fleet.init_worker()
        exe = train(
            inputs,
            avg_cost,
            auc_var,
            fleet.main_program,
            fleet.startup_program,
            test_program,
            fleet.split_files(files),
        )
        if fleet.is_first_worker():
            model = os.path.join(folder, "model")
            names = [v.name for v in inputs[:-1]]
            fleet.save_inference_model(exe, model, names, [predict])
            print("saved %s" % ("__model__" in os.listdir(model)))
        fleet.stop_worker()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
