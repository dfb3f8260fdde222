"""Does the distributed program do what the local one does? Run both and look.

    report = equivalent(main, "pserver", feed_fn, steps=5, startup_program=startup)
    print(report)        # the first variable, step and op that differ, if any
    assert report.same

Everything runs in this process, in `InProcessCluster`: deterministic, no port, no
other process. Where all roles go in step (sync servers, rings) the result must be that
of one process; where they do not (async, half-async, geo), several orders of events are
run and the report tells how far apart they end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fluidx.ir import Operator, Program, default_startup_program
from fluidx.ir.text import op_line
from fluidx.transpiler import Distributed, DistributeTranspilerConfig, distribute

from .equivalence import Difference, Equivalence
from .inprocess import InProcessCluster
from .interleave import ChosenCluster, every_order
from .replay import Cluster, FeedFn, Feeds, Local, Part, Values, feeds_of, whole

__all__ = ["Difference", "Equivalence", "compare", "equivalent"]


def equivalent(
    program: Program,
    config: DistributeTranspilerConfig | str = "pserver",
    feed_fn: FeedFn | None = None,
    steps: int = 3,
    *,
    startup_program: Program | None = None,
    trainers: int = 2,
    pservers: str | int = 2,
    sync_mode: bool | None = None,
    seed: int = 0,
    tolerance: float = 1e-5,
    runs: int = 16,
) -> Equivalence:
    """Run a program in one process and distributed, and compare them.

    config: a `DistributeTranspilerConfig`, or the name of a mode (`fluidx.transpiler.
    roles.MODES`). feed_fn(step, trainer, trainers): what this trainer is fed; the local
    run gets all trainers' batches behind one another. startup_program: by default the
    default one. seed: of the order of events, and of programs that have no random_seed.
    tolerance: relative to the largest value of a variable, where that is above 1.
    runs: how many orders are tried where roles do not go in step; all of them, if there
    are no more.

    A loss has to be a mean over the batch: what differs with the batch's size differs
    here. So does what is drawn at random in every step (dropout). TranspileError: the
    config does not fit the program. ClusterFailure: a role failed.

    >>> import numpy as np, fluidx as fluid
    >>> x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    >>> out = fluid.layers.fc(x, 1)
    >>> loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
    >>> def feed(step, trainer, trainers):
    ...     rng = np.random.default_rng([step, trainer])
    ...     return {n: rng.random((8, k), "f4") for n, k in (("x", 4), ("y", 1))}
    >>> report = equivalent(fluid.default_main_program(), "pserver", feed, steps=2)
    >>> report.same, report.largest < 1e-6
    (True, True)
    """
    if feed_fn is None:
        raise TypeError("equivalent needs feed_fn(step, trainer, trainers)")
    startup = startup_program
    if startup is None:
        startup = default_startup_program()
    made = distribute(
        _seeded(program, seed),
        _seeded(startup, seed),
        config,
        trainers=trainers,
        pservers=pservers,
        sync_mode=sync_mode,
    )
    feeds = feeds_of(feed_fn, steps, len(made.trainers))
    return compare(made, feeds, seed=seed, tolerance=tolerance, runs=runs)


def _seeded(program: Program, seed: int) -> Program:
    made = program.clone()
    if not made.random_seed:
        made.random_seed = seed + 1
    return made


def compare(
    made: Distributed,
    feeds: Feeds,
    *,
    seed: int = 0,
    tolerance: float = 1e-5,
    runs: int = 16,
) -> Equivalence:
    """`equivalent`, of programs that are there already (`distribute` makes them)."""
    local = Local(made, feeds)
    start = {n: local.states[0][n] for n in local.parameters if n in local.states[0]}
    cluster = Cluster(made, feeds, start, InProcessCluster(seed))
    counts: dict[str, Any] = {
        "steps": len(feeds),
        "trainers": len(made.trainers),
        "servers": len(made.servers),
    }
    if not cluster.in_step:
        if made.plan is None:
            return _averaged(local, cluster.run(), counts)
        return _spread(made, feeds, local, start, seed, runs, counts)
    cluster.run()
    largest, variable, step = _largest(local, cluster)
    worst = _worst(local, cluster, tolerance)
    first = None
    if worst is not None:
        first = _locate(made, feeds, start, seed, tolerance, worst)
    return Equivalence(first is None, largest, variable, step, first=first, **counts)


# ------------------------------------------------------------------ roles in step


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference; infinite where shapes differ or one only is NaN."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape:
        return math.inf
    if not ours.size:
        return 0.0
    with np.errstate(invalid="ignore"):  # infinity less infinity
        difference = np.abs(ours.astype("f8") - theirs.astype("f8"))
    difference[np.isnan(ours) & np.isnan(theirs)] = 0.0
    difference[ours == theirs] = 0.0  # also where both are infinite
    return float(np.nan_to_num(difference, nan=math.inf, posinf=math.inf).max())


def _beyond(wanted: Any, amount: float, tolerance: float) -> bool:
    wanted = np.abs(np.asarray(wanted, "f8"))
    scale = float(np.nan_to_num(wanted, nan=0.0, posinf=0.0).max(initial=0.0))
    return amount > tolerance * max(1.0, scale)


def _of_parts(wanted: Any, parts: Sequence[Part]) -> tuple[float, Part]:
    """How far the roles' parts of a variable are from it, and the worst of them."""
    found = []
    for part in parts:
        own = wanted
        if part.row is not None:
            own = wanted[part.row : part.row + len(part.value)]
        found.append((apart(own, part.value), part))
    amount, worst = max(found, key=lambda pair: pair[0])
    rows = sum(len(p.value) for p in parts if p.row is not None)
    if rows and rows != len(wanted):
        amount = math.inf
    return amount, worst


def _pairs(local: Local, cluster: Cluster, at: int) -> Iterator[tuple[str, Any, Any]]:
    """(variable, local value, the roles' parts) before step `at`."""
    ours, theirs = local.states[at], cluster.states[at]
    for name, value in ours.items():
        if name in theirs and value.dtype.kind == "f":
            yield name, value, theirs[name]


def _largest(local: Local, cluster: Cluster) -> tuple[float, str, int]:
    found = (0.0, "", -1)
    for at in range(len(local.states)):
        for name, ours, parts in _pairs(local, cluster, at):
            found = max(found, (_of_parts(ours, parts)[0], name, at - 1))
    return found


def _worst(local: Local, cluster: Cluster, tolerance: float) -> Difference | None:
    """The first step that ends with a difference, and the largest there."""
    for at in range(len(local.states)):
        wrong = []
        for name, ours, parts in _pairs(local, cluster, at):
            amount, part = _of_parts(ours, parts)
            if _beyond(ours, amount, tolerance):
                wrong.append(Difference(name, at - 1, amount, role=part.role))
        for number, states in sorted(cluster.trainers.items()):
            if not wrong:
                role = f"trainer-{number}"
                found = _on_trainer(local, states[at], at, role, tolerance)
                wrong += [found] if found else []
        if wrong:
            return max(wrong, key=lambda d: d.amount)
    return None


def _on_trainer(
    local: Local, values: Values, at: int, role: str, tolerance: float
) -> Difference | None:
    for name, value in values.items():
        amount = apart(local.states[at][name], value)
        if _beyond(value, amount, tolerance):
            return Difference(name, at - 1, amount, role=role)
    return None


def _locate(
    made: Distributed,
    feeds: Feeds,
    start: Values,
    seed: int,
    tolerance: float,
    worst: Difference,
) -> Difference:
    """Run again, keep every value of that step, and find the first op that differs."""
    if worst.step < 0:
        return _told(made, "startup", worst.variable, -1, worst.amount, worst.role)
    feeds = feeds[: worst.step + 1]
    local = Local(made, feeds, worst.step)
    hub = InProcessCluster(seed)
    cluster = Cluster(made, feeds, start, hub, worst.step).run()
    end, state = local.states[-1], cluster.states[-1]
    for op in made.main.global_block().ops:
        for name in op.output_arg_names:
            wanted = local.seen.get(name, end.get(name))
            found = []
            if name in local.seen:
                found.append(_of_trainers(op, name, wanted, cluster))
            for parts in (cluster.merged.get(name), state.get(name)):
                if wanted is not None and parts:
                    amount, part = _of_parts(wanted, parts)
                    found.append((amount, part.role, part.name))
            for amount, role, own in found:
                if _beyond(wanted, amount, tolerance):
                    return _told(made, "main", name, worst.step, amount, role, own)
    return _told(made, "main", worst.variable, worst.step, worst.amount, worst.role)


def _told(
    made: Distributed,
    which: str,
    name: str,
    step: int,
    amount: float,
    role: str,
    own: str = "",
) -> Difference:
    """A difference, with the ops behind it. own: what the role calls the variable."""
    local = _writer(made.main if which == "main" else made.startup, name)
    line = where = told = ""
    if local is not None:
        line, where = op_line(local), str(local.where or "")
    theirs = _writer(made.programs[role][which], own or name) if role else None
    if theirs is not None:
        block = theirs.block.idx
        told = (f"block {block}: " if block else "") + op_line(theirs)
    return Difference(name, step, amount, line, where, role, told)


def _writer(program: Program, name: str) -> Operator | None:
    """The last op of a program that writes a variable, or else a block of it."""
    found = partly = None
    for op in program.all_ops():
        for written in op.output_arg_names:
            if written == name:
                found = op
            elif written.startswith(f"{name}.block"):
                partly = op
    return found or partly


def _of_trainers(
    op: Operator, name: str, wanted: Any, cluster: Cluster
) -> tuple[float, str, str]:
    """How far the trainers' values, put together, are from the local one; whose it is.

    Along the batch they lie behind one another; what has no batch is their mean. With
    servers a gradient is larger than the local one by their number, along the batch.
    """
    parts: list[Part] = []
    row = 0
    for number, seen in sorted(cluster.seen.items()):
        own = name if name in seen else f"{name}.trainer_{number}"
        if own not in seen or wanted.dtype.kind != "f":
            return 0.0, "", ""
        parts.append(Part(f"trainer-{number}", own, row, seen[own]))
        row += len(seen[own]) if seen[own].ndim else 0
    if not parts:
        return 0.0, "", ""
    values = [p.value for p in parts]
    final = name in op.role_var[1::2]
    shrunk = bool(op.role & 1) and cluster.made.plan is None and not final
    grown = bool(op.role & 1) and not shrunk
    amount = min(apart(wanted, value) for value in _together(values, grown, shrunk))
    worst = parts[0]
    if row == len(wanted) if wanted.ndim else False:  # along the batch: whose rows?
        factor = len(parts) if grown else 1
        worst = _of_parts(wanted * np.float64(factor), parts)[1]
    return amount, worst.role, worst.name


def _together(parts: Sequence[Any], grown: bool, shrunk: bool) -> list[Any]:
    """What trainers' values make together, one way or the other.

    grown: along the batch each is larger than the local one by their number. shrunk:
    what has no batch is a sum: the loss's gradient was divided beforehand.
    """
    count = len(parts)
    made = []
    if all(p.shape == parts[0].shape for p in parts):
        total = sum(p.astype("f8") for p in parts)
        made.append(total if shrunk else total / count)
    if parts[0].ndim:
        behind = np.concatenate(parts)
        made.append(behind / count if grown else behind)
    return made or [parts[0]]


# ------------------------------------------------------------------ roles out of step


def _spread(
    made: Distributed,
    feeds: Feeds,
    local: Local,
    start: Values,
    seed: int,
    runs: int,
    counts: Mapping[str, Any],
) -> Equivalence:
    """Several orders of events, and how far apart they end."""
    finals: list[Values] = []
    traces: set[Any] = set()
    every = False

    def once(hub: InProcessCluster, cluster: Cluster | None = None) -> None:
        one = cluster or Cluster(made, feeds, start, hub)
        finals.append({n: whole(parts) for n, parts in one.run().final.items()})
        traces.add(tuple(role for _, role in hub.trace))

    turns: dict[str, int] = {}

    def scripted(script: Sequence[int]) -> Sequence[int]:
        training: set[str] = set()
        hub = ChosenCluster(script, training.__contains__, turns)
        once(hub, Cluster(made, feeds, start, hub, training=training))
        turns.update(hub.taken)
        return hub.widths

    scripted([])  # tells how many turns a trainer takes
    if _orders([n - 1 for n in turns.values()]) <= runs:
        finals, traces = [], set()
        every = max(every_order(scripted, runs)) <= runs
    if not every:
        finals, traces = [], set()
        for number in range(runs):
            once(InProcessCluster(seed + number))
    spread = {
        name: float(np.ptp(np.stack([f[name] for f in finals]), axis=0).max())
        for name in start
        if all(name in f and f[name].size for f in finals)
    }
    far = max(
        ((apart(local.states[-1][n], f[n]), n) for f in finals for n in spread),
        default=(0.0, ""),
    )
    return Equivalence(
        None,
        *far,
        len(feeds) - 1,
        runs=len(finals),
        orders=len(finals) if every else len(traces),
        every=every,
        spread=spread,
        **counts,
    )


def _averaged(local: Local, cluster: Cluster, counts: Mapping[str, Any]) -> Equivalence:
    """Local SGD: how far the workers lie apart, and their mean from one process."""
    finals = [states[-1] for states in cluster.trainers.values()]
    spread = {n: float(np.ptp([f[n] for f in finals], axis=0).max()) for n in finals[0]}
    end = local.states[-1]
    far = max((apart(end[n], f[n]), n) for f in finals for n in spread)
    last = counts["steps"] - 1
    return Equivalence(None, *far, last, spread=spread, **counts)


def _orders(turns: Sequence[int]) -> int:
    """In how many orders roles can take so many turns each."""
    found = math.factorial(sum(turns))
    for count in turns:
        found //= math.factorial(count)
    return found
