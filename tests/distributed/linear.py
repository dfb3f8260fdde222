"""A linear net in every mode of distribution, and the same in plain numpy.

    out = x @ w + b + table[ids],  loss = mean((out - y) ** 2)

The table's gradient is sparse. `run` trains in an in-process cluster in which trainers
take their steps in a given order, so that numpy can do the same.
"""

from __future__ import annotations

import copy

import numpy as np

import fluidx as fluid
from fluidx.distributed.inprocess import InProcessCluster, sleep
from fluidx.transpiler import distribute
from fluidx.transpiler.roles import config_for

LR = 0.2
IN, OUT, ROWS, BATCH = 6, 3, 11, 4


def network(optimizer=None, table=True):
    """(main, startup, loss); w and table are cut in two where blocks may be small."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, IN])
        y = fluid.data("y", [None, OUT])
        out = fluid.layers.fc(x, OUT, param_attr="w", bias_attr="b")
        if table:
            ids = fluid.data("ids", [None, 1], "int64")
            rows = fluid.layers.embedding(
                ids, [ROWS, OUT], is_sparse=True, param_attr="table"
            )
            out = out + fluid.layers.reshape(rows, [-1, OUT])
        loss = fluid.layers.mean(fluid.layers.square(out - y))
        (optimizer or (lambda: fluid.optimizer.SGD(LR)))().minimize(loss)
    return main, startup, loss


def batch(trainer, step, table=True):
    """What a trainer is fed in a step; made from parameters that can be learned."""
    truth = initial(seed=9)
    rng = np.random.default_rng([trainer, step])
    x = rng.standard_normal((BATCH, IN)).astype("f4")
    ids = rng.integers(0, ROWS, (BATCH, 1))
    if not table:
        return {"x": x, "y": x @ truth["w"] + truth["b"]}
    y = x @ truth["w"] + truth["b"] + truth["table"][ids[:, 0]]
    return {"x": x, "ids": ids, "y": y}


def initial(seed=1):
    rng = np.random.default_rng(seed)
    shapes = {"w": (IN, OUT), "b": (OUT,), "table": (ROWS, OUT)}
    return {n: rng.standard_normal(s).astype("f4") for n, s in shapes.items()}


def gradients(params, feed):
    """The same gradients as the net's; the table's as a whole."""
    out = feed["x"] @ params["w"] + params["b"]
    if "ids" in feed:
        out = out + params["table"][feed["ids"][:, 0]]
    d = 2 * (out - feed["y"]) / out.size
    found = {"w": feed["x"].T @ d, "b": d.sum(0)}
    if "ids" in feed:
        found["table"] = np.zeros_like(params["table"])
        np.add.at(found["table"], feed["ids"][:, 0], d)
    return found


def descend(params, grads, rate=LR):
    for name, grad in grads.items():
        params[name] = params[name] - np.float32(rate) * grad


class Run:
    """One training. schedule: whose step is next; None: as it comes, `steps` each.

    servers: final values on the servers, put together. seen[t]: what trainer t had
    after each of its steps (and after closing), without remote tables.
    """

    def __init__(
        self,
        mode,
        schedule=None,
        steps=0,
        trainers=2,
        servers=2,
        optimizer=None,
        table=True,
        beside=None,
        after=None,
        hub=None,
        **options,
    ):
        config = config_for(mode, min_block_size=2, **options)
        main, startup, self.loss = network(optimizer, table)
        self.made = distribute(
            main, startup, config, trainers=trainers, pservers=servers
        )
        self.schedule = schedule
        self.steps = [steps] * trainers
        if schedule is not None:
            self.steps = [schedule.count(t) for t in range(trainers)]
        self.table, self.beside, self.after = table, beside, after
        self.at = 0
        self.first = initial()
        if not table:
            del self.first["table"]
        self.scopes = {}
        self.seen = {t: [] for t in range(trainers)}
        self.hub = hub or InProcessCluster(seed=7)
        roles = {f"pserver-{i}": self._server(i) for i in range(servers)}
        roles.update({f"trainer-{t}": self._trainer(t) for t in range(trainers)})
        self.hub.run(roles)
        self.servers = self._gathered()

    def _pieces(self):
        for param in self.made.plan.parameters:
            for piece in param.slices:
                yield param.name, piece

    def _server(self, number):
        role = f"pserver-{number}"
        programs = self.made.programs[role]
        endpoint = self.made.plan.setting.endpoints[number]

        def run():
            scope, exe = self.scopes.setdefault(role, fluid.Scope()), fluid.Executor()
            exe.run(programs["startup"], scope=scope)
            for name, piece in self._pieces():
                if piece.endpoint == endpoint:
                    value = self.first[name][piece.row : piece.row + piece.rows]
                    scope.find_var(piece.name).value = value.copy()
                    for t in range(len(self.made.trainers)):
                        copy_ = scope.find_var(f"{piece.name}.trainer_{t}_bak")
                        if copy_ is not None:
                            copy_.value = value.copy()
            exe.run(programs["main"], scope=scope)

        return run

    def _trainer(self, number):
        programs = self.made.programs[f"trainer-{number}"]
        names = [p.name for p in self.made.plan.parameters]
        tables = [p.name for p in self.made.plan.parameters if p.table]
        if not self.made.plan.setting.geo:
            names = [n for n in names if n not in tables]

        def run():
            scope, exe = fluid.Scope(), fluid.Executor()
            stand = self.beside(programs["main"]) if self.beside else None
            if stand is not None:
                stand.start()
            exe.run(programs["startup"], scope=scope)

            def note():
                held = {n: np.array(scope.find_var(n).value) for n in names}
                self.seen[number].append(held)

            for step in range(self.steps[number]):
                while self.schedule and self.schedule[self.at] != number:
                    sleep(0.01)
                feed = batch(number, step, self.table)
                exe.run(programs["main"], feed=feed, scope=scope)
                note()
                if step == self.steps[number] - 1:
                    if stand is not None:
                        stand.stop()
                    if self.after is not None:
                        self.after(exe)
                    exe.close()
                    note()
                self.at += 1
            exe.close()

        return run

    def _gathered(self):
        endpoints = list(self.made.plan.setting.endpoints)
        found = {}
        for name, piece in self._pieces():
            scope = self.scopes[f"pserver-{endpoints.index(piece.endpoint)}"]
            found.setdefault(name, []).append(scope.find_var(piece.name).value)
        return {name: np.concatenate(parts) for name, parts in found.items()}


def check(found, wanted, names=None):
    for name in names or wanted:
        np.testing.assert_allclose(found[name], wanted[name], 1e-5, 2e-6, err_msg=name)


# ------------------------------------------------------------------ in numpy


def dense(params):
    return {n: v for n, v in params.items() if n != "table"}


class Async:
    """A gradient is applied as it comes; dc: delay-compensated (dense ones)."""

    def __init__(self, schedule, rate=lambda number: LR, dc=False, trainers=2):
        self.server = initial()
        self.seen = {t: [] for t in range(trainers)}
        local = {t: dense(self.server) for t in range(trainers)}
        steps = [0] * trainers
        for number, t in enumerate(schedule, 1):
            params = {**self.server, **local[t]}
            grads = gradients(params, batch(t, steps[t]))
            if dc:
                for name in local[t]:
                    lag = self.server[name] - local[t][name]
                    grads[name] = grads[name] + grads[name] ** 2 * lag
            descend(self.server, grads, rate(number))
            local[t] = dense(self.server)
            self.seen[t].append(local[t])
            steps[t] += 1


class Geo:
    """Local steps; every `every` of them differences are exchanged, the rest at the
    end. Of the table only rows that were looked up since travel."""

    def __init__(self, schedule, every, trainers=2):
        self.server = initial()
        self.seen = {t: [] for t in range(trainers)}
        own = {t: copy.deepcopy(self.server) for t in range(trainers)}
        old = copy.deepcopy(own)
        steps, rows = [0] * trainers, {t: set() for t in range(trainers)}

        def exchange(t):
            for name in ("w", "b", "table"):
                where = sorted(rows[t]) if name == "table" else slice(None)
                delta = (own[t][name][where] - old[t][name][where]) / trainers
                self.server[name][where] += delta
                own[t][name][where] = self.server[name][where]
                old[t][name][where] = self.server[name][where]
            rows[t].clear()

        for t in schedule:
            feed = batch(t, steps[t])
            descend(own[t], gradients(own[t], feed))
            rows[t] |= set(feed["ids"][:, 0].tolist())
            steps[t] += 1
            if steps[t] % every == 0:
                exchange(t)
            self.seen[t].append(copy.deepcopy(own[t]))
            if steps[t] == schedule.count(t):
                if steps[t] % every:
                    exchange(t)
                self.seen[t].append(copy.deepcopy(own[t]))
