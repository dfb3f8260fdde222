"""What a distributed program costs, on paper: bytes, balance, step time, scaling.

    report = cost(made.programs, Network(bandwidth=1.25e9, compute=0.02))
    print(report)
    print(scaling(made.programs, network, trainers=(1, 10, 100, 1000)))

Bytes are exact: those of the messages that the runtime sends (heads included), and the
payload (the arrays in them) apart. Rings are taken to run the ring algorithm, in which
a rank sends 2 (n - 1) / n of what is summed. Times come from a simulation under what
`Network` states. Nothing is measured here and no clock is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from fluidx.ir import Program
from fluidx.kernels import to_numpy

from .config import DistributedMode, TranspileError
from .facts import BACKWARD, role_of, role_pairs
from .simulate import Network, Simulated, simulate
from .traffic import Traffic, Workload, traffic
from .verify_model import Role, read_roles

__all__ = ["Cost", "Network", "RoleCost", "Scaling", "Workload", "cost", "scaling"]

Programs = Mapping[str, Mapping[str, Program]]


@dataclass(frozen=True)
class RoleCost:
    """One role in one step. payload_*: of the bytes, those of arrays.

    held: bytes of parameters that this role updates. blocks: in how many pieces.
    """

    name: str
    sent: int
    received: int
    payload_sent: int
    payload_received: int
    messages: int
    held: int = 0
    blocks: int = 0


@dataclass(frozen=True)
class Cost:
    """What `cost` found; ``str`` gives a table.

    balance: the fullest server's parameters over the mean (1.0: even). step: seconds
    per step, of which `waiting` a trainer waits. busy: role -> share of the time that
    its busier link carries bytes. notes: what was assumed.
    """

    roles: tuple[RoleCost, ...]
    balance: float
    step: float
    waiting: float
    busy: Mapping[str, float]
    notes: tuple[str, ...] = ()

    def __getitem__(self, role: str) -> RoleCost:
        return next(r for r in self.roles if r.name == role)

    def __str__(self) -> str:
        head = ("role", "sent", "received", "payload", "messages", "holds", "blocks")
        rows = [
            (
                r.name,
                f"{r.sent:,}",
                f"{r.received:,}",
                f"{r.payload_sent + r.payload_received:,}",
                f"{r.messages:,}",
                f"{r.held:,}" if r.blocks else "",
                f"{r.blocks:,}" if r.blocks else "",
            )
            for r in self.roles
        ]
        lines = [_table(head, rows), ""]
        if any(r.blocks for r in self.roles):
            lines.append(f"balance of the servers: {self.balance:.3f} (1 is even)")
        share = self.waiting / self.step if self.step else 0.0
        lines.append(f"step: {_time(self.step)}, {share:.0%} of it waiting")
        return "\n".join([*lines, *(f"note: {n}" for n in self.notes)])


@dataclass(frozen=True)
class Scaling:
    """Step time by number of trainers; ``str`` gives a table.

    rows: (trainers, seconds per step, steps of all trainers per second, efficiency:
    that throughput over what so many trainers would reach without waiting).
    """

    rows: tuple[tuple[int, float, float, float], ...]

    def __str__(self) -> str:
        head = ("trainers", "step", "steps/s", "efficiency")
        rows = [
            (f"{n:,}", _time(s), f"{r:,.1f}", f"{e:.1%}") for n, s, r, e in self.rows
        ]
        return _table(head, rows)


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:,.3f} ms"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    lines = []
    for row in (head, *rows):
        cells = [c.rjust(w) for c, w in zip(row, widths)]
        cells[0] = row[0].ljust(widths[0])
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


@dataclass(frozen=True)
class _Set:
    """A set of programs, read once. steps: what each trainer sends."""

    trainers: list[Role]
    servers: list[Role]
    steps: list[Traffic]
    mode: int
    every: int = 1


def _read(programs: Programs, work: Workload, every: int) -> _Set:
    roles = read_roles(programs)
    servers = [r for r in roles if r.listen is not None]
    trainers = [r for r in roles if r.listen is None]
    mode = DistributedMode.SYNC
    if servers:
        assert servers[0].listen is not None
        mode = servers[0].listen.attr("distributed_mode")
    steps = traffic(programs, work)
    if mode == DistributedMode.GEO:
        return _Set(trainers, servers, _geo(programs, work), mode, every)
    return _Set(trainers, servers, steps, mode)


def _geo(programs: Programs, work: Workload) -> list[Traffic]:
    """The exchange of differences: for each value that the startup program receives,
    its difference goes and its value comes."""
    found = []
    for one in traffic(programs, work, "startup"):
        rounds = []
        for round_ in one.rounds:
            messages = []
            for m in round_:
                asked = m.answer or ()
                gone = tuple(replace(v, name=f"{v.name}.delta") for v in asked)
                messages.append(replace(m, values=gone))
            rounds.append(tuple(messages))
        found.append(Traffic(one.trainer, tuple(rounds)))
    return found


def cost(
    programs: Programs,
    network: Network | None = None,
    work: Workload | None = None,
    *,
    push_every: int = 100,
) -> Cost:
    """What one step of this set of programs costs, and how long it takes.

    programs: as for `verify`. push_every: in geo-SGD, steps between two exchanges
    (``geo_sgd_need_push_nums``), over which the bytes of one are spread.
    TranspileError if there is no trainer.

    >>> import fluidx as fluid
    >>> from fluidx.transpiler import distribute
    >>> x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
    >>> out = fluid.layers.fc(x, 1)
    >>> loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
    >>> main, startup = fluid.default_main_program(), fluid.default_startup_program()
    >>> made = distribute(main, startup, trainers=2, pservers=1)
    >>> report = cost(made.programs, Network(compute=0.001))
    >>> report["pserver-0"].payload_received  # 13 weights, a bias, from 2 trainers
    112
    """
    network, work = network or Network(), work or Workload()
    found = _read(programs, work, push_every)
    if not found.servers:
        return _ring_cost(found.trainers, network)
    by_role = [_trainer_cost(s, found.every) for s in found.steps]
    by_role += [_server_cost(r, found) for r in found.servers]
    held = [r.held for r in by_role if r.blocks]
    simulated = _simulated(found, network, len(found.trainers))
    notes = []
    if found.mode == DistributedMode.GEO:
        notes.append(f"geo-SGD exchanges whole parameters every {push_every} steps")
        if any(
            r.listen and r.listen.attr("sparse_grad_to_param") for r in found.servers
        ):
            notes.append("rows of sparse tables, which travel apart, are not counted")
    mean = sum(held) / len(found.servers)
    return Cost(
        tuple(by_role),
        max(held, default=0) / mean if mean else 1.0,
        simulated.step,
        simulated.waiting,
        simulated.busy,
        tuple(notes),
    )


def _trainer_cost(steps: Traffic, every: int) -> RoleCost:
    all_ = steps.messages
    answered = sum(m.answer is not None for m in all_)
    return RoleCost(
        steps.trainer,
        sum(m.sent for m in all_) // every,
        sum(m.received for m in all_) // every,
        sum(m.payload_sent for m in all_) // every,
        sum(m.payload_received for m in all_) // every,
        len(all_) + answered,
    )


def _server_cost(role: Role, found: _Set) -> RoleCost:
    mine = [m for s in found.steps for m in s.messages if m.server == role.name]
    held = [
        prod(var.shape) * to_numpy(var.dtype).itemsize
        for name in _held(role)
        if (var := role.var(name)) is not None
    ]
    return RoleCost(
        role.name,
        sum(m.received for m in mine) // found.every,
        sum(m.sent for m in mine) // found.every,
        sum(m.payload_received for m in mine) // found.every,
        sum(m.payload_sent for m in mine) // found.every,
        len(mine) + sum(m.answer is not None for m in mine),
        sum(held),
        len(held),
    )


def _held(role: Role) -> list[str]:
    """The slices of parameters that a server updates."""
    assert role.listen is not None
    found: dict[str, None] = {}
    geo = role.listen.attr("distributed_mode") == DistributedMode.GEO
    for block in role.listen.attr("optimize_blocks"):
        for op in block.ops:
            if geo:
                found.update(dict.fromkeys(op.outputs["Out"]))
            elif op.inputs.get("Param"):
                found.setdefault(op.inputs["Param"][0])
    return list(found)


def _simulated(
    found: _Set, network: Network, trainers: int, steps: int = 3
) -> Simulated:
    rounds = found.steps[0].rounds
    servers = [r.name for r in found.servers]
    sync = found.mode == DistributedMode.SYNC
    if found.mode != DistributedMode.GEO:
        return simulate(
            rounds, network, trainers=trainers, servers=servers, sync=sync, steps=steps
        )
    # between two exchanges a trainer only computes
    slow = replace(network, compute=network.compute * found.every)
    many = simulate(
        rounds, slow, trainers=trainers, servers=servers, sync=False, steps=steps
    )
    return Simulated(many.step / found.every, many.waiting / found.every, many.busy)


def scaling(
    programs: Programs,
    network: Network | None = None,
    work: Workload | None = None,
    *,
    trainers: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
    push_every: int = 100,
) -> Scaling:
    """Step time with so many trainers, each of which sends what trainer 0 does."""
    network, work = network or Network(), work or Workload()
    found = _read(programs, work, push_every)
    rows = []
    for count in trainers:
        if count < 1:
            raise TranspileError(
                f"scaling: at least one trainer is needed, got {count}"
            )
        if found.servers:
            step = _simulated(found, network, count, 3 if count <= 256 else 2).step
        else:
            step = _ring_step(found.trainers[0], network, count)
        alone = network.compute / step if step else 1.0
        rows.append((count, step, count / step if step else float("inf"), alone))
    return Scaling(tuple(rows))


# ------------------------------------------------------------------ rings


def _summed(role: Role) -> tuple[list[int], str]:
    """Bytes of everything that all ranks add up in a step, and what was assumed."""
    block = role.main.global_block()
    names = [
        op.inputs["X"][0] for op in block.ops if op.type.startswith("c_allreduce_")
    ]
    note = "rings run the ring algorithm"
    if not names:
        names = [
            g for op in block.ops if role_of(op) & BACKWARD for _, g in role_pairs(op)
        ]
        note += "; every gradient is summed (the program has no op for it)"
    sizes = []
    for name in names:
        var = block.var(name)
        sizes.append(prod(var.shape) * to_numpy(var.dtype).itemsize)
    return sizes, note


def _ring_step(role: Role, network: Network, ranks: int) -> float:
    """Computing, then one ring after the other: 2 (n - 1) turns of S / n bytes."""
    turns = 2 * (ranks - 1)
    step = network.compute
    for size in _summed(role)[0]:
        part = size / ranks
        step += turns * (network.latency + part / network.bandwidth)
        step += turns * 2 * network.handling(int(part)) if turns else 0.0
    return step


def _ring_cost(trainers: list[Role], network: Network) -> Cost:
    ranks = len(trainers)
    turns = 2 * (ranks - 1)
    roles, note = [], ""
    for role in trainers:
        sizes, note = _summed(role)
        moved = sum(turns * size // ranks for size in sizes)
        count = turns * len(sizes)
        roles.append(RoleCost(role.name, moved, moved, moved, moved, 2 * count))
    step = _ring_step(trainers[0], network, ranks)
    waiting = step - network.compute
    busy = {r.name: r.sent / network.bandwidth / step if step else 0.0 for r in roles}
    return Cost(tuple(roles), 1.0, step, waiting, busy, (note,))
