"""A small regression trained by several ranks, and its definition in numpy.

Each rank starts from other values (the startup program must make them equal) and
takes every n-th row of each batch. Adagrad, since its step is no linear function of
the gradient: averaging gradients and averaging steps give different numbers.
"""

from __future__ import annotations

import numpy as np

import fluidx as fluid

RATE, EPSILON = 0.1, 0.1
NAMES = ["w0", "b0", "w1", "b1"]
SHAPES = [(4, 3), (3,), (3, 1), (1,)]


def first_values(rank):
    """What a rank's startup program gives the parameters."""
    random = np.random.RandomState(50 + rank)
    return [random.uniform(-0.5, 0.5, s).astype("float32") for s in SHAPES]


def batches(ranks, steps):
    random = np.random.RandomState(3)
    for _ in range(steps):
        yield (
            random.randn(4 * ranks, 4).astype("float32"),
            random.randn(4 * ranks, 1).astype("float32"),
        )


def build(rank):
    """(main, startup, loss)."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
        w0, b0, w1, b1 = (
            fluid.ParamAttr(n, fluid.initializer.NumpyArrayInitializer(v))
            for n, v in zip(NAMES, first_values(rank))
        )
        h = fluid.layers.fc(x, 3, act="tanh", param_attr=w0, bias_attr=b0)
        p = fluid.layers.fc(h, 1, param_attr=w1, bias_attr=b1)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(p, y))
        fluid.optimizer.Adagrad(RATE, EPSILON).minimize(loss)
    return main, startup, loss


def transpile(main, startup, mode, rank, ranks, rings=1, inner=0):
    config = fluid.DistributeTranspilerConfig()
    config.nccl_comm_num = rings
    if mode == "nccl2":
        config.mode = "nccl2"
        config.use_hierarchical_allreduce = inner > 0
        config.hierarchical_allreduce_inter_nranks = inner
    else:
        config.mode, config.collective_mode = "collective", mode
    ends = [f"127.0.0.1:{6170 + i}" for i in range(ranks)]
    fluid.DistributeTranspiler(config).transpile(
        rank,
        program=main,
        startup_program=startup,
        trainers=",".join(ends),
        current_endpoint=ends[rank],
    )


def train(mode, rank, ranks, steps=4, before_step=None, strategy=None, **options):
    """Run a rank; its parameters at the end."""
    main, startup, loss = build(rank)
    transpile(main, startup, mode, rank, ranks, **options)
    program = main
    if mode == "nccl2":
        program = fluid.CompiledProgram(main).with_data_parallel(
            loss_name=loss.name, build_strategy=strategy
        )
    scope, exe = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    for step, (x, y) in enumerate(batches(ranks, steps)):
        if before_step is not None:
            before_step(step)
        feed = {"x": x[rank::ranks], "y": y[rank::ranks]}
        exe.run(program, feed=feed, fetch_list=[loss], scope=scope)
    return {n: np.array(scope.find_var(n).get_tensor()) for n in NAMES}


def _gradients(values, x, y):
    w0, b0, w1, b1 = values
    h = np.tanh(x @ w0 + b0)
    d_p = 2 * (h @ w1 + b1 - y) / len(y)
    d_h = d_p @ w1.T * (1 - h * h)
    return [x.T @ d_h, d_h.sum(0), h.T @ d_p, d_p.sum(0)]


def _adagrad(value, gradient, moment):
    moment += gradient * gradient
    return value - RATE * gradient / (np.sqrt(moment) + EPSILON)


def expected(mode, ranks, steps=4, factor=1.0):
    """The same in float64, from the definition of each mode.

    factor: what the mean of the gradients is multiplied by.
    """
    values = [v.astype("float64") for v in first_values(0)]
    moments = [[np.zeros(s) for s in SHAPES] for _ in range(ranks)]
    for x, y in batches(ranks, steps):
        x, y = x.astype("float64"), y.astype("float64")
        each = [_gradients(values, x[r::ranks], y[r::ranks]) for r in range(ranks)]
        if mode == "local_sgd":
            ends = [
                [_adagrad(*vgm) for vgm in zip(values, each[r], moments[r])]
                for r in range(ranks)
            ]
            values = [np.mean(parts, 0) for parts in zip(*ends)]
        else:
            means = [factor * np.mean(parts, 0) for parts in zip(*each)]
            values = [_adagrad(*vgm) for vgm in zip(values, means, moments[0])]
    return dict(zip(NAMES, values))
