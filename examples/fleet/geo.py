"""Geo-SGD: workers train alone and exchange differences every few steps.

fluidx run -m fluidx launch --workers 2 --servers 2 examples/fleet/geo.py
"""

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (  # noqa: E501
    StrategyFactory,
)

VOCABULARY, BATCH, STEPS, EVERY = 50, 16, 60, 5


def network():
    """The next word of a made-up language: the sum of the last two, modulo."""
    words = [fluid.data(name, [None, 1], dtype="int64") for name in ("one", "two")]
    target = fluid.data("target", [None, 1], dtype="int64")
    table = np.random.RandomState(1).uniform(-0.5, 0.5, (VOCABULARY, 16))
    embedded = [
        fluid.layers.embedding(
            word,
            [VOCABULARY, 16],
            is_sparse=True,
            param_attr=fluid.ParamAttr(
                name="table",
                initializer=fluid.initializer.NumpyArrayInitializer(
                    table.astype("float32")
                ),
            ),
        )
        for word in words
    ]
    weight = np.random.RandomState(2).uniform(-0.2, 0.2, (32, VOCABULARY))
    predict = fluid.layers.fc(
        fluid.layers.concat(embedded, axis=1),
        VOCABULARY,
        act="softmax",
        param_attr=fluid.initializer.NumpyArrayInitializer(weight.astype("float32")),
    )
    return fluid.layers.mean(fluid.layers.cross_entropy(predict, target))


def main():
    fleet.init(role_maker.PaddleCloudRoleMaker())
    loss = network()
    strategy = StrategyFactory.create_geo_strategy(EVERY)
    optimizer = fleet.distributed_optimizer(fluid.optimizer.SGD(1.0), strategy)
    optimizer.minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    random = np.random.RandomState(fleet.worker_index())
    for step in range(STEPS):
        one, two = random.randint(0, 10, (2, BATCH, 1)).astype("int64")
        feed = {"one": one, "two": two, "target": (one + two) % VOCABULARY}
        (value,) = exe.run(fleet.main_program, feed=feed, fetch_list=[loss])
        print("step %d loss %.6f" % (step, value[0]))
    fleet.stop_worker()


if __name__ == "__main__":
    main()
