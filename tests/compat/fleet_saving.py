"""Steps START to STOP of a training on servers, saved after; from a saved model."""

import sys

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import (
    distributed_strategy as strategies,
)
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet


def constant(name, value):
    return fluid.ParamAttr(name=name, initializer=fluid.initializer.Constant(value))


def main(folder, start, stop, saved=None):
    fleet.init(role_maker.PaddleCloudRoleMaker())
    x = fluid.data("x", [None, 1], dtype="int64")
    y = fluid.data("y", [None, 1], dtype="float32")
    rows = fluid.embedding(
        x, [900, 16], is_sparse=True, param_attr=constant("table", 0.1)
    )
    rows = fluid.layers.reshape(rows, [-1, 16])
    hidden = fluid.layers.fc(
        rows, 600, param_attr=constant("w1", 0.1), bias_attr=constant("b1", 0.0)
    )
    out = fluid.layers.fc(
        hidden, 1, param_attr=constant("w2", 0.01), bias_attr=constant("b2", 0.0)
    )
    loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    rate = fluid.layers.exponential_decay(0.01, 2, 0.8)
    strategy = strategies.StrategyFactory.create_sync_strategy()
    fleet.distributed_optimizer(fluid.optimizer.Adam(rate), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server(saved)
        fleet.run_server()
        return
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    for step in range(int(start), int(stop)):
        random = np.random.RandomState(10 * step + fleet.worker_index())
        ids = random.randint(0, 900, (16, 1)).astype("int64")
        feed = {"x": ids, "y": (ids % 7).astype("float32")}
        (value,) = exe.run(fleet.main_program, feed=feed, fetch_list=[loss])
        print(f"step {step} loss {value[0]:.6f}")
    fleet.barrier_worker()
    if fleet.is_first_worker():
        fleet.save_persistables(exe, folder + "/all")
        fleet.save_inference_model(exe, folder + "/model", ["x"], [out])
    fleet.stop_worker()


if __name__ == "__main__":
    main(*sys.argv[1:])
