"""Training without servers: gradients are averaged among the workers.

    fluidx run -m fluidx launch --collective --workers 2 examples/fleet/collective.py

Each worker trains on its half of every batch; the losses that they print have the
whole batch's as their mean.
"""

import argparse

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.collective import (
    DistributedStrategy,
    TrainStatus,
    fleet,
)

BATCH, STEPS = 32, 10


def network():
    x = fluid.data("x", [None, 8])
    y = fluid.data("y", [None, 1])
    weight = np.random.RandomState(3).uniform(-0.1, 0.1, (8, 16)).astype("float32")
    hidden = fluid.layers.fc(
        x,
        16,
        act="tanh",
        param_attr=fluid.initializer.NumpyArrayInitializer(weight),
    )
    predict = fluid.layers.fc(hidden, 1, param_attr=fluid.initializer.Constant(0.1))
    return fluid.layers.mean(fluid.layers.square_error_cost(predict, y))


def batch(step, part, parts):
    random = np.random.RandomState(step)
    x = random.rand(BATCH, 8).astype("float32")
    y = np.sin(x.sum(axis=1, keepdims=True)).astype("float32")
    share = slice(part * BATCH // parts, (part + 1) * BATCH // parts)
    return {"x": x[share], "y": y[share]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", default="checkpoints")
    args = parser.parse_args()
    fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
    loss = network()
    strategy = DistributedStrategy()
    strategy.fuse_all_reduce_ops = True
    optimizer = fluid.optimizer.Momentum(0.1, 0.9)
    optimizer = fleet.distributed_optimizer(optimizer, strategy=strategy)
    optimizer.minimize(loss)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    for step in range(STEPS):
        feed = batch(step, fleet.worker_index(), fleet.worker_num())
        (value,) = exe.run(fleet.main_program, feed=feed, fetch_list=[loss.name])
        print("step %d loss %.6f" % (step, np.mean(value)))
    if fleet.is_first_worker():
        fleet.save_check_point(exe, args.save, TrainStatus(0))
        print("saved")


if __name__ == "__main__":
    main()
