"""A parameter server and a trainer without programs: handmade blocks and steps.

The model: each parameter P has the gradient ``0.1 * P + data``; the server averages
over trainers and descends. `expected` computes the same in one place.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from fluidx.distributed.client import Client
from fluidx.distributed.server import serve

LR = 0.1


class Scope:
    """The part of `fluidx.tensor.Scope` that a server uses."""

    def __init__(self, values=()):
        self.boxes = {}
        for name, value in dict(values).items():
            self.var(name).value = value

    def var(self, name):
        return self.boxes.setdefault(name, SimpleNamespace(value=None))

    def find_var(self, name):
        return self.boxes.get(name)


def initial(names):
    """Deterministic first values: shapes differ, one of them is large."""
    shapes = [(300, 100), (7,), (3, 5)]
    return {
        n: np.random.default_rng(i).standard_normal(shapes[i % 3]).astype("f4")
        for i, n in enumerate(names)
    }


def data(trainer, step, shape):
    rng = np.random.default_rng(1000 * trainer + step)
    return rng.standard_normal(shape).astype("f4")


def gradient(value, trainer, step):
    return np.float32(0.1) * value + data(trainer, step, value.shape)


def placement(names, endpoints):
    return {n: endpoints[i % len(endpoints)] for i, n in enumerate(names)}


def run_server(endpoint, names, endpoints, fanin, mode=0, before_block=None):
    """Serve this endpoint's parameters; returns their final values."""
    mine = [n for n in names if placement(names, endpoints)[n] == endpoint]
    values = initial(names)
    scope = Scope({n: values[n] for n in mine})
    inputs = [
        f"{n}@GRAD.trainer_{t}" if mode == 0 else f"{n}@GRAD"
        for n in mine
        for t in range(fanin if mode == 0 else 1)
    ]

    def run_block(index):
        if before_block is not None:
            before_block()
        name = mine[index - 1]
        if mode == 0:
            boxes = [scope.var(f"{name}@GRAD.trainer_{t}") for t in range(fanin)]
            grads = [b.value for b in boxes if b.value is not None]
            total = sum(grads[1:], grads[0]) * np.float32(1 / fanin)
        else:
            total = scope.var(f"{name}@GRAD").value
        scope.var(name).value -= np.float32(LR) * total

    attrs = {
        "endpoint": endpoint,
        "Fanin": fanin,
        "distributed_mode": mode,
        "optimize_blocks": list(range(1, len(mine) + 1)),
        "grad_to_block_id": [f"{n}@GRAD:{i + 1}" for i, n in enumerate(mine)],
        "lr_decay_block_id": -1,
        "dc_asgd": False,
    }
    program = SimpleNamespace(_parameters_on_pservers=None)
    ctx = SimpleNamespace(scope=scope, run_block=run_block, xp=np, program=program)
    serve(ctx, inputs, attrs)
    return {n: scope.var(n).value for n in mine}


def run_trainer(trainer, names, endpoints, steps, mode=0, before_step=None, hold=None):
    """Train; returns the last values fetched."""
    client = Client()
    if hold is not None:
        hold.append(client)
    where = placement(names, endpoints)
    wanted = [(where[n], n) for n in names]
    client.register(endpoints, trainer)
    params = dict(zip(names, client.exchange([], wanted, trainer)))
    for step in range(steps):
        if before_step is not None:
            before_step(step)
        for n in names:
            suffix = f".trainer_{trainer}" if mode == 0 else ""
            grad = gradient(params[n], trainer, step)
            client.push(where[n], f"{n}@GRAD{suffix}", grad)
        barriers = endpoints if mode == 0 else []
        params = dict(zip(names, client.exchange(barriers, wanted, trainer)))
    client.close()
    return params


def expected(names, steps_of):
    """The same in one place: steps_of[t] steps by trainer t."""
    params = initial(names)
    for step in range(max(steps_of)):
        active = [t for t, n in enumerate(steps_of) if step < n]
        for n in names:
            grads = [gradient(params[n], t, step) for t in active]
            params[n] = params[n] - np.float32(LR) * np.mean(grads, 0, dtype="f4")
    return params
