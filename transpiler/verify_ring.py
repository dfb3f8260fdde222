"""What `verify` asks of workers without servers: the same collectives everywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from math import isclose

from fluidx.ir import Operator, Parameter

from .facts import BACKWARD, OPTIMIZE, is_update, names_out, role_of, role_pairs
from .verify_model import Problem, Role, looks

__all__ = ["ring_problems"]

_MOVES = ("c_allreduce_sum", "c_broadcast", "c_comm_init", "c_comm_init_all")
_STREAMS = ("c_sync_calc_stream", "c_sync_comm_stream")
_IDS = ("c_gen_nccl_id", "gen_nccl_id")


def ring_problems(roles: Sequence[Role], complete: bool) -> list[Problem]:
    """Problems of a set of workers."""
    found: list[Problem] = []
    for role in roles:
        found += _Worker(role).problems()
    for role in roles[1:]:
        for program in ("startup", "main"):
            found += _same(roles[0], role, program)
    found += _ranks(roles, complete)
    return found


def _sequence(role: Role, program: str) -> list[tuple[tuple[object, ...], Operator]]:
    block = (role.main if program == "main" else role.startup).global_block()
    made: list[tuple[tuple[object, ...], Operator]] = []
    for op in block.ops:
        if op.type in _MOVES or op.type in _STREAMS:
            name = next(iter(op.input_arg_names), "")
            key = (
                op.type,
                name,
                op.attrs.get("ring_id"),
                op.attrs.get("root"),
                op.attrs.get("nranks"),
                looks(block.vars.get(name)) if name else "",
            )
            made.append((key, op))
    return made


def _same(one: Role, other: Role, program: str) -> Iterator[Problem]:
    """The same collectives, in the same order, on the same ring, of the same shape."""
    pairs = zip_longest(_sequence(one, program), _sequence(other, program))
    for at, (a, b) in enumerate(pairs):
        if a is None or b is None or a[0] != b[0]:
            words = [str(x[0]) if x else "nothing" for x in (a, b)]
            text = f"collective {at} differs: {words[0]} and {words[1]}"
            sides = (
                one.side(a[1] if a else None, "", program),
                other.side(b[1] if b else None, "", program),
            )
            yield Problem("collective", text, sides)
            return


def _ranks(roles: Sequence[Role], complete: bool) -> Iterator[Problem]:
    """Every worker knows all workers, and itself as one of them."""
    groups: dict[str, list[tuple[Role, Operator, int, list[str]]]] = {}
    for role in roles:
        for op in role.startup.global_block().ops:
            if op.type == "gen_nccl_id":
                rank, workers = op.attr("trainer_id"), list(op.attr("trainers"))
            elif op.type == "c_gen_nccl_id":
                rank, workers = op.attr("rank"), list(op.attr("other_endpoints"))
                workers.insert(rank, op.attr("endpoint"))
            else:
                continue
            key = ",".join(names_out(op))
            groups.setdefault(key, []).append((role, op, rank, workers))
    for key, members in groups.items():
        first = members[0]
        for role, op, _, workers in members:
            same = {k: v for k, v in op.attrs.items() if k in _SHARED}
            theirs = {k: v for k, v in first[1].attrs.items() if k in _SHARED}
            if workers != first[3] or same != theirs:
                text = f"{key}: workers are {first[3]} or {workers}, {theirs} or {same}"
                sides = (
                    first[0].side(first[1], key, "startup"),
                    role.side(op, key, "startup"),
                )
                yield Problem("workers", text, sides)
        ranks = sorted(m[2] for m in members)
        whole = list(range(len(first[3])))
        # two workers may stand for many: then nobody is there twice
        if len(set(ranks)) != len(ranks) or not set(ranks) <= set(whole):
            text = f"{key}: ranks {ranks} of {len(whole)} workers"
            yield Problem(
                "workers", text, tuple(m[0].side(m[1], key, "startup") for m in members)
            )
        elif complete and ranks != whole:
            text = f"{key}: workers {ranks} are there, {len(whole)} are waited for"
            yield Problem("workers", text, (first[0].side(first[1], key, "startup"),))


_SHARED = (
    "nccl_comm_num",
    "use_hierarchical_allreduce",
    "hierarchical_allreduce_inter_nranks",
)


class _Worker:
    def __init__(self, role: Role) -> None:
        self.role = role
        self.found: list[Problem] = []
        self.sums = [op for _, op in role.of_type("c_allreduce_sum")]
        self.of_grads = [op for op in self.sums if role_of(op) & BACKWARD]
        self.of_params = [op for op in self.sums if role_of(op) & OPTIMIZE]
        self.rings: dict[int, Operator] = {}

    def _bad(
        self, text: str, op: Operator | None, name: str = "", at: str = "main"
    ) -> None:
        self.found.append(Problem("collective", text, (self.role.side(op, name, at),)))

    def problems(self) -> list[Problem]:
        self._start()
        for op in self.sums:
            if self.rings and op.attr("ring_id") not in self.rings:
                self._bad(f"ring {op.attr('ring_id')} was never made", op)
        if self.of_params:
            self._steps()
        elif self.sums or any(t in _STREAMS for t in (o.type for o in self.role.ops)):
            self._gradients()
        return self.found

    # ------------------------------------------------ startup

    def _start(self) -> None:
        block = self.role.startup.global_block()
        sent: Counter[str] = Counter()
        sizes: set[int] = set()
        made: set[str] = set()
        for op in block.ops:
            if op.type in _IDS:
                self._identify(op)
                made.update(names_out(op))
            elif op.type in ("c_comm_init", "c_comm_init_all"):
                ring = op.attr("ring_id")
                if ring in self.rings:
                    self._bad(f"ring {ring} is made twice", op, "", "startup")
                self.rings[ring] = op
                sizes.add(op.attrs.get("nranks", 0))
                for name in op.input_arg_names:
                    if name not in made:
                        self._bad(
                            f"{name} is used before it is made", op, name, "startup"
                        )
            elif op.type == "c_broadcast":
                sent.update(op.input_arg_names)
                if op.attr("ring_id") not in self.rings:
                    self._bad(
                        f"ring {op.attr('ring_id')} is not made yet", op, "", "startup"
                    )
        self.size = max(sizes, default=0)
        if len(sizes) > 1:
            self._bad(f"rings of different sizes {sizes}", None, "", "startup")
        own = [v.name for v in block.vars.values() if isinstance(v, Parameter)]
        for name in own if self.size else ():
            if sent[name] != 1:
                self._bad(
                    f"{name} is broadcast {sent[name]} times", None, name, "startup"
                )
        self._synced(block.ops, "startup", "c_broadcast", "assign")

    def _identify(self, op: Operator) -> None:
        rank = int(op.attrs.get("rank", op.attrs.get("trainer_id", -1)))
        block = self.role.startup.global_block()
        for name in names_out(op):
            if name not in block.vars:
                self._bad(f"{name} is not declared", op, name, "startup")
        if op.type == "c_gen_nccl_id":
            for other in self.role.startup.global_block().ops:
                if other.type == "c_comm_init" and other.attr("rank") != rank:
                    text = f"rank {rank} here, {other.attr('rank')} in c_comm_init"
                    self._bad(text, op, "", "startup")
        elif not 0 <= rank < len(op.attr("trainers")):
            self._bad(
                f"trainer_id {rank} of {len(op.attr('trainers'))}", op, "", "startup"
            )

    def _synced(
        self, ops: Sequence[Operator], at: str, moves: str, before: str
    ) -> None:
        """Every ring that moves something is waited for before the result is used."""
        open_: dict[int, Operator] = {}
        moving: set[str] = set()
        for op in ops:
            if op.type == moves:
                open_[op.attr("ring_id")] = op
                moving.update(names_out(op))
            elif op.type == "c_sync_comm_stream":
                open_.pop(op.attr("ring_id"), None)
            elif op.type == before and moving.intersection(op.input_arg_names):
                break
        for ring, op in open_.items():
            self._bad(
                f"ring {ring} is not waited for before its result is used", op, "", at
            )

    # ------------------------------------------------ gradients

    def _gradients(self) -> None:
        """Each gradient is summed once, behind its maker, before the first update."""
        ops = self.role.ops
        wanted: dict[str, int] = {}
        summed: dict[str, int] = {}
        calc: set[str] = set()
        first = next((i for i, o in enumerate(ops) if role_of(o) & OPTIMIZE), len(ops))
        for at, op in enumerate(ops):
            if op.type == "c_sync_calc_stream":
                calc.update(self._pending(wanted, summed))
            elif op.type == "c_allreduce_sum":
                self._summed(op, at, first, wanted, summed, calc)
            elif role_of(op) & BACKWARD and op.type not in _STREAMS:
                for _, grad in role_pairs(op):
                    if grad in summed:
                        self._bad(f"{grad} is changed after it was summed", op, grad)
                    wanted[grad] = at
        for grad in set(wanted) - set(summed):
            self._bad(
                f"{grad} is never summed over the workers", ops[wanted[grad]], grad
            )
        self._waits(ops, first)
        self._mean(ops)

    @staticmethod
    def _pending(wanted: dict[str, int], summed: dict[str, int]) -> set[str]:
        return {g for g in wanted if g not in summed}

    def _summed(
        self,
        op: Operator,
        at: int,
        first: int,
        wanted: dict[str, int],
        summed: dict[str, int],
        calc: set[str],
    ) -> None:
        grad = op.inputs["X"][0]
        if op.outputs["Out"] != [grad]:
            self._bad(f"{grad} is summed into {op.outputs['Out']}", op, grad)
        if grad in summed:
            self._bad(f"{grad} is summed twice", op, grad)
        if grad not in wanted:
            self._bad(f"{grad} is summed before it is made", op, grad)
        elif grad not in calc:
            self._bad(f"{grad} is summed without waiting for its maker", op, grad)
        if at > first:
            self._bad(f"{grad} is summed after the first update", op, grad)
        summed[grad] = at

    def _waits(self, ops: Sequence[Operator], first: int) -> None:
        open_: dict[int, Operator] = {}
        for op in ops[:first]:
            if op.type == "c_allreduce_sum":
                open_[op.attr("ring_id")] = op
            elif op.type == "c_sync_comm_stream":
                open_.pop(op.attr("ring_id"), None)
        for ring, op in open_.items():
            self._bad(f"ring {ring} is not waited for before the first update", op)

    def _mean(self, ops: Sequence[Operator]) -> None:
        """The loss's gradient is scaled, so that sums are means."""
        if not self.size:
            return
        seeds = {n for o in ops if role_of(o) == BACKWARD | 256 for n in names_out(o)}
        for op in ops:
            name = next(iter(op.inputs.get("X", ())), None)
            if op.type == "scale" and name in seeds and op.outputs["Out"] == [name]:
                seeds.discard(name)
                if not isclose(op.attr("scale"), 1 / self.size, rel_tol=1e-6):
                    self._bad(
                        f"scaled by {op.attr('scale')}, not 1/{self.size}", op, name
                    )
        for name in seeds:
            self._bad(f"{name} is not divided by {self.size} workers", None, name)

    # ------------------------------------------------ local SGD

    def _steps(self) -> None:
        """Each updated parameter: step, sum, mean, back from the snapshot, kept."""
        ops = self.role.ops
        pattern = ["elementwise_sub", "c_sync_calc_stream", "c_allreduce_sum"]
        tail = ["scale", "elementwise_sub", "assign"]
        for at, op in enumerate(ops):
            if not is_update(op):
                continue
            name = op.inputs["Param"][0]
            after = ops[at + 1 : at + 4]
            if [o.type for o in after] != pattern or not _all_on(after, name):
                self._bad(f"{name} is updated, but its step is not summed", op, name)
        where: dict[str, list[Operator]] = {
            n: [] for o in ops if is_update(o) for n in o.inputs["Param"]
        }
        for op in ops:
            touched = op.outputs.get("Out", [""])[0].removesuffix("@SNAPSHOT")
            if touched in where and op.type in tail + pattern:
                where[touched].append(op)
        for name, done in where.items():
            if [o.type for o in done] != pattern + tail:
                text = f"{name} goes through {[o.type for o in done]}"
                self._bad(text, done[0] if done else None, name)
                continue
            mean = done[3]
            if self.size and not isclose(
                mean.attr("scale"), 1 / self.size, rel_tol=1e-6
            ):
                self._bad(
                    f"scaled by {mean.attr('scale')}, not 1/{self.size}", mean, name
                )
            start = self.role.initialised.get(f"{name}@SNAPSHOT")
            if start is None or start.inputs.get("X") != [name]:
                self._bad(
                    f"{name}@SNAPSHOT does not start as {name}", start, name, "startup"
                )
        self._synced(ops, "main", "c_allreduce_sum", "scale")


def _all_on(ops: Sequence[Operator], name: str) -> bool:
    return all(op.outputs.get("Out") == [name] for op in ops)
