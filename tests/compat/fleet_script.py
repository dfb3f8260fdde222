"""A linear regression as a fleet with servers; the strategy is the first argument."""

import sys

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import (
    distributed_strategy as strategies,
)
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet

MAKE = {
    "sync": strategies.StrategyFactory.create_sync_strategy,
    "async": strategies.StrategyFactory.create_async_strategy,
    "half_async": strategies.StrategyFactory.create_half_async_strategy,
    "geo": lambda: strategies.StrategyFactory.create_geo_strategy(5),
}


def main(kind):
    fleet.init(role_maker.PaddleCloudRoleMaker())
    x = fluid.data("x", [None, 4])
    y = fluid.data("y", [None, 1])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    optimizer = fleet.distributed_optimizer(fluid.optimizer.SGD(0.05), MAKE[kind]())
    optimizer.minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    random = np.random.RandomState(fleet.worker_index())
    for _ in range(40):
        data = random.rand(16, 4).astype("float32")
        target = data.sum(axis=1, keepdims=True) + 1
        feed = {"x": data, "y": target.astype("float32")}
        (value,) = exe.run(fleet.main_program, feed=feed, fetch_list=[loss])
    print(f"loss {value[0]:.4f}")
    fleet.stop_worker()


if __name__ == "__main__":
    main(sys.argv[1])
