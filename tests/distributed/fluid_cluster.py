"""Real fluid programs, transpiled, as the roles of a cluster; and in one process."""

from __future__ import annotations

import numpy as np

import fluidx as fluid

OPTIMIZERS = {
    "sgd": lambda: fluid.optimizer.SGD(0.5),
    "gentle": lambda: fluid.optimizer.SGD(0.05),
    "decayed": lambda: fluid.optimizer.SGD(
        fluid.layers.exponential_decay(0.5, decay_steps=2, decay_rate=0.5)
    ),
    "momentum": lambda: fluid.optimizer.Momentum(0.3, 0.9),
    "adam": lambda: fluid.optimizer.Adam(0.01),
}
VOCABULARY = 2500  # x 8 numbers: two slices of more than 8192
BATCH = 6


class Net:
    """One network with its own programs, built the same way in every role."""

    def __init__(self, kind, optimizer):
        self.kind = kind
        self.main, self.startup = fluid.Program(), fluid.Program()
        self.main.random_seed = self.startup.random_seed = 5
        with (
            fluid.program_guard(self.main, self.startup),
            fluid.unique_name.guard(),
        ):
            label = fluid.data("label", [None, 1], "int64")
            if kind == "dense":
                x = fluid.data("x", [None, 60])
                hidden = fluid.layers.fc(x, 300, act="relu")
            else:
                x = fluid.data("x", [None, 1], "int64")
                hidden = fluid.layers.embedding(
                    x,
                    [VOCABULARY, 8],
                    is_sparse=kind == "sparse",
                    param_attr=fluid.ParamAttr(name="table"),
                )
            out = fluid.layers.fc(hidden, 4, act="softmax")
            self.loss = fluid.layers.mean(fluid.layers.cross_entropy(out, label))
            OPTIMIZERS[optimizer]().minimize(self.loss)

    def transpile(self, trainer, endpoints, trainers, sync=True, slices=True):
        config = fluid.DistributeTranspilerConfig()
        config.slice_var_up = slices
        transpiler = fluid.DistributeTranspiler(config)
        transpiler.transpile(
            trainer,
            program=self.main,
            pservers=",".join(endpoints),
            trainers=trainers,
            sync_mode=sync,
            startup_program=self.startup,
        )
        return transpiler


def batch(kind, trainer, step):
    rng = np.random.default_rng(100 * step + trainer)
    if kind == "dense":
        x = rng.standard_normal((BATCH, 60)).astype("f4")
        return {"x": x, "label": x[:, :4].argmax(1).reshape(-1, 1)}
    # few ids: they meet within a batch and between trainers
    ids = rng.integers(0, 40, (BATCH, 1))
    return {"x": ids * 61, "label": ids % 4}


def initial(kind, optimizer):
    """First values of all parameters, by a plain local startup."""
    net, scope = Net(kind, optimizer), fluid.Scope()
    fluid.Executor().run(net.startup, scope=scope)
    return {p.name: scope.find_var(p.name).value for p in net.main.all_parameters()}


def train_alone(kind, optimizer, steps_of):
    """One process on the batches of all trainers that still have one."""
    net, scope, exe = Net(kind, optimizer), fluid.Scope(), fluid.Executor()
    exe.run(net.startup, scope=scope)
    for step in range(max(steps_of)):
        parts = [batch(kind, t, step) for t, n in enumerate(steps_of) if step < n]
        feed = {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
        exe.run(net.main, feed=feed, scope=scope)
    return {p.name: scope.find_var(p.name).value for p in net.main.all_parameters()}


def offsets(net):
    """slice name -> (first row, rows), from what the trainer's program declares."""
    rows = {}
    for op in net.main.global_block().ops:
        if op.type in ("split_byref", "split_selected_rows"):
            attr = "sections" if op.type == "split_byref" else "height_sections"
            low = 0
            for name, height in zip(op.output("Out"), op.attr(attr)):
                base = name.split(".trainer_")[0].replace("@GRAD", "")
                rows[base] = (low, height)
                low += height
    return rows


def server(kind, optimizer, index, endpoints, trainers, **options):
    """A role: serves, starting from the local run's values; gives the last ones."""
    spread = Net(kind, optimizer)
    spread.transpile(0, endpoints, trainers, **options).get_trainer_program()
    where = offsets(spread)
    first = initial(kind, optimizer)
    net = Net(kind, optimizer)
    transpiler = net.transpile(0, endpoints, trainers, **options)
    main = transpiler.get_pserver_program(endpoints[index])
    startup = transpiler.get_startup_program(endpoints[index], main)

    def run():
        scope, exe = fluid.Scope(), fluid.Executor()
        exe.run(startup, scope=scope)
        mine = []
        for name in scope.local_var_names():
            base = name.partition(".block")[0]
            if base in first:
                low, rows = where.get(name, (0, len(first[base])))
                scope.var(name).value = first[base][low : low + rows].copy()
                mine.append(name)
        exe.run(main, scope=scope)
        return {n: scope.find_var(n).value for n in mine}, where

    return run


def trainer(kind, optimizer, number, endpoints, trainers, steps, **options):
    """A role: trains and closes; gives its parameters and losses."""
    net = Net(kind, optimizer)
    names = [p.name for p in net.main.all_parameters()]
    main = net.transpile(number, endpoints, trainers, **options).get_trainer_program()

    def run():
        scope, exe = fluid.Scope(), fluid.Executor()
        exe.run(net.startup, scope=scope)
        losses = []
        for step in range(steps):
            feed = batch(kind, number, step)
            (loss,) = exe.run(main, feed=feed, fetch_list=[net.loss.name], scope=scope)
            losses.append(float(loss.reshape(-1)[0]))
        exe.close()
        exe.close()  # the second does nothing
        if kind == "sparse":
            names.remove("table")  # it is on the servers only
        return {n: scope.find_var(n).value for n in names}, losses

    return run


def cluster(kind, optimizer, servers, steps_of, **options):
    """All roles, for `InProcessCluster.run`."""
    endpoints = [f"127.0.0.1:{6174 + i}" for i in range(servers)]
    count = len(steps_of)
    roles = {}
    for i in range(servers):
        role = server(kind, optimizer, i, endpoints, count, **options)
        roles[f"pserver-{i}"] = role
    for t, steps in enumerate(steps_of):
        role = trainer(kind, optimizer, t, endpoints, count, steps, **options)
        roles[f"trainer-{t}"] = role
    return roles


def gathered(results):
    """Whole parameters, put together from what the servers hold."""
    pieces = {}
    for role, result in results.items():
        if role.startswith("pserver"):
            values, where = result
            for name, value in values.items():
                low = where.get(name, (0, 0))[0]
                base = name.partition(".block")[0]
                pieces.setdefault(base, []).append((low, value))
    return {
        name: np.concatenate([v for _, v in sorted(found, key=lambda p: p[0])])
        for name, found in pieces.items()
    }
