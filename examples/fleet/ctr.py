"""Click-through rates with parameter servers, as in the tutorials of 1.8.

    fluidx run -m fluidx launch --workers 2 --servers 2 examples/fleet/ctr.py

Every worker writes itself a few files of made-up clicks, shares them out with
fleet.split_files, and trains on them with train_from_dataset.
"""

import argparse
import os

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (  # noqa: E501
    StrategyFactory,
)

SLOTS, VOCABULARY, DENSE, BATCH = 4, 1000, 3, 32


def write_files(folder, count=4, lines=128):
    """MultiSlot text: for each slot how many values, then the values."""
    if not os.path.isdir(folder):
        os.makedirs(folder)
    paths = []
    for number in range(count):
        random = np.random.RandomState(number)
        path = os.path.join(folder, "part-%d" % number)
        with open(path, "w") as file:
            for _ in range(lines):
                dense = random.rand(DENSE).round(3)
                ids = random.randint(0, VOCABULARY, (SLOTS, 2))
                click = int(dense.sum() + (ids % 7).mean() / 6 > 2)
                words = [str(DENSE)] + ["%.3f" % v for v in dense]
                for slot in ids:
                    words += ["2"] + [str(i) for i in slot]
                file.write(" ".join(words + ["1", str(click)]) + "\n")
        paths.append(path)
    return paths


def constant(name, value):
    return fluid.ParamAttr(name=name, initializer=fluid.initializer.Constant(value))


def network():
    dense = fluid.layers.data("dense", [DENSE], dtype="float32")
    slots = [
        fluid.layers.data("C%d" % i, [1], dtype="int64", lod_level=1)
        for i in range(SLOTS)
    ]
    label = fluid.layers.data("label", [1], dtype="int64")
    embedded = [
        fluid.layers.sequence_pool(
            fluid.layers.embedding(
                slot,
                [VOCABULARY, 8],
                is_sparse=True,
                param_attr=constant("table", 0.05),
            ),
            "sum",
        )
        for slot in slots
    ]
    joined = fluid.layers.concat(embedded + [dense], axis=1)
    hidden = fluid.layers.fc(
        joined,
        16,
        act="relu",
        param_attr=constant("hidden.w", 0.1),
        bias_attr=constant("hidden.b", 0.0),
    )
    predict = fluid.layers.fc(
        hidden,
        2,
        act="softmax",
        param_attr=constant("out.w", 0.1),
        bias_attr=constant("out.b", 0.0),
    )
    loss = fluid.layers.mean(fluid.layers.cross_entropy(predict, label))
    return [dense] + slots + [label], loss, predict


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", default="ctr_model")
    parser.add_argument("--data", default="ctr_data")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    fleet.init(role_maker.PaddleCloudRoleMaker())
    inputs, loss, predict = network()
    optimizer = fluid.optimizer.SGD(0.5)
    strategy = StrategyFactory.create_sync_strategy()
    optimizer = fleet.distributed_optimizer(optimizer, strategy)
    optimizer.minimize(loss)

    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return

    folder = os.path.join(args.data, "worker-%d" % fleet.worker_index())
    files = fleet.split_files(write_files(folder))
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)

    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var(inputs)
    dataset.set_pipe_command("cat")
    dataset.set_batch_size(BATCH)
    dataset.set_thread(1)
    dataset.set_filelist(files)
    held = batch_of(files[0])
    for epoch in range(args.epochs):
        exe.train_from_dataset(fleet.main_program, dataset)
        (value,) = exe.run(fleet.main_program, feed=held, fetch_list=[loss])
        print("epoch %d loss %.6f" % (epoch, value[0]))
    if fleet.is_first_worker():
        names = [v.name for v in inputs[:-1]]
        fleet.save_inference_model(exe, args.save, names, [predict])
        print("saved")
    fleet.stop_worker()


def batch_of(path):
    """The first lines of a file, as a feed."""
    place = fluid.CPUPlace()
    with open(path) as file:
        rows = [line.split() for line in file][:BATCH]
    feed = {"dense": np.array([r[1 : 1 + DENSE] for r in rows], "float32")}
    for slot in range(SLOTS):
        at = 2 + DENSE + 3 * slot
        ids = np.array([r[at : at + 2] for r in rows], "int64").reshape(-1, 1)
        feed["C%d" % slot] = fluid.create_lod_tensor(ids, [[2] * len(rows)], place)
    feed["label"] = np.array([r[-1:] for r in rows], "int64")
    return feed


if __name__ == "__main__":
    main()
