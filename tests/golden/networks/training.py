"""Trains a network of networks.py, under fluidx or the reference."""

import numpy as np


def _fill(fluid, programs, rng):
    """Give every parameter of two or more dimensions its initial values, by name."""
    shapes = {
        p.name: tuple(p.shape) for program in programs for p in program.all_parameters()
    }
    for name in sorted(shapes):
        shape = shapes[name]
        if len(shape) < 2:
            continue  # biases, scales and statistics start as constants
        inputs = shape[0] if len(shape) == 2 else int(np.prod(shape[1:]))
        value = rng.uniform(-1, 1, shape) * (3.0 / inputs) ** 0.5
        tensor = fluid.global_scope().find_var(name).get_tensor()
        tensor.set(value.astype("float32"), fluid.CPUPlace())


def train(fluid, network, scope, steps=20):
    """The losses of each phase, step by step; `scope` is a fresh one."""
    main, startup = fluid.Program(), fluid.Program()
    build = fluid.program_guard(main, startup)
    with fluid.scope_guard(scope), build, fluid.unique_name.guard():
        phases = network(fluid)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        _fill(fluid, [p for p, _, _ in phases], np.random.RandomState(1))
        rng = np.random.RandomState(2)
        batches = [[feed(rng) for _ in range(4)] for _, _, feed in phases]
        losses = [[] for _ in phases]
        for step in range(steps):
            for found, (program, loss, _), made in zip(losses, phases, batches):
                batch = made[step % len(made)]
                (value,) = exe.run(program, feed=batch, fetch_list=[loss])
                found.append(float(np.asarray(value).reshape(-1)[0]))
    return losses
