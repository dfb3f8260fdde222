"""What `verify` asks of servers: that each is sound by itself and fits the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import isclose

from fluidx.ir import Block, Operator, Variable
from fluidx.kernels import VarType

from .facts import names_in, names_out
from .verify_model import GEO, SYNC, Problem, Role, Taker, looks, split_name

__all__ = ["server_problems"]

_SAME = ("Fanin", "distributed_mode", "dc_asgd")
# an update needs these to be as its parameter
_LIKE_PARAM = ("Grad", "Velocity", "Moment", "Moment1", "Moment2", "InfNorm")


def server_problems(
    servers: Sequence[Role], trainers: Sequence[Role], complete: bool
) -> list[Problem]:
    """Problems of the servers; reads into each what it does with each gradient."""
    found = list(_together(servers, trainers, complete))
    for server in servers:
        found += _Server(server).problems()
    found += _owners(servers)
    return found


def _together(
    servers: Sequence[Role], trainers: Sequence[Role], complete: bool
) -> Iterator[Problem]:
    seen: dict[str, Role] = {}
    for role in servers:
        if role.endpoint in seen:
            sides = (seen[role.endpoint].side(), role.side(role.listen))
            yield Problem("endpoint", f"two servers at {role.endpoint}", sides)
        seen[role.endpoint] = role
    first = servers[0]
    assert first.listen is not None
    for role in servers[1:]:
        assert role.listen is not None
        for name in _SAME:
            ours, theirs = role.listen.attr(name), first.listen.attr(name)
            if ours != theirs:
                text = f"servers disagree on {name}: {theirs} and {ours}"
                sides = (first.side(first.listen), role.side(role.listen))
                yield Problem("setting", text, sides)
    fanin = first.listen.attr("Fanin")
    ids = sorted(t.trainer_id if t.trainer_id is not None else -1 for t in trainers)
    if complete and ids != list(range(fanin)):
        text = f"servers wait for trainers 0 to {fanin - 1}, but there are {ids}"
        all_ = (first.side(first.listen), *(t.side() for t in trainers))
        yield Problem("trainers", text, all_)


def _owners(servers: Sequence[Role]) -> Iterator[Problem]:
    """No slice is updated by two servers."""
    owner: dict[str, Role] = {}
    for role in servers:
        for taker in role.takers.values():
            if taker.param is None:
                continue
            other = owner.setdefault(taker.param, role)
            if other is not role:
                sides = (other.side(None, taker.param), role.side(None, taker.param))
                yield Problem("owner", f"{taker.param} is updated twice", sides)


class _Server:
    def __init__(self, role: Role) -> None:
        assert role.listen is not None
        self.role = role
        self.listen = role.listen
        self.fanin = int(self.listen.attr("Fanin"))
        self.mode = self.listen.attr("distributed_mode")
        self.arriving = self.listen.inputs.get("X", [])
        self.found: list[Problem] = []

    def _bad(
        self, kind: str, text: str, op: Operator | None = None, name: str = ""
    ) -> None:
        sides = [self.role.side(op or self.listen, name)]
        if op is not None:
            sides.append(self.role.side(self.listen))
        self.found.append(Problem(kind, text, tuple(sides)))

    def problems(self) -> list[Problem]:
        if sum(op.type == "listen_and_serv" for op in self.role.ops) != 1:
            self._bad("listen", "more than one op serves")
        blocks = self._blocks()
        if not self.found:
            self._arrivals()
            self._gradients(blocks)
            self._flow(blocks)
            self._startup()
        return self.found

    # ------------------------------------------------ what is there

    def _blocks(self) -> list[Block]:
        blocks = self.listen.attr("optimize_blocks")
        ids = [b.idx for b in blocks]
        own = self.role.main.blocks
        if len(set(ids)) != len(ids) or 0 in ids or not ids:
            self._bad("blocks", f"optimize_blocks {ids} must differ and not be 0")
        elif any(b.idx >= len(own) or own[b.idx] is not b for b in blocks):
            self._bad("blocks", f"optimize_blocks {ids} belong to another program")
        schedule = self.listen.attr("lr_decay_block_id")
        if schedule >= 0 and schedule not in ids:
            self._bad("blocks", f"lr_decay_block_id {schedule} is no optimize block")
        roles = {b.idx for b in blocks if any(_is_schedule(op) for op in b.ops)}
        if len(roles) > 1 or (schedule >= 0 and roles and roles != {schedule}):
            self._bad("schedule", f"blocks {sorted(roles)} make the learning rate")
        if schedule < 0 and roles and self.role.main.blocks[min(roles)].idx == ids[0]:
            self._bad("schedule", f"block {ids[0]} makes the rate, and is not told so")
        return list(blocks)

    def _arrivals(self) -> None:
        """What arrives is declared, once, for trainers that exist."""
        if len(set(self.arriving)) != len(self.arriving):
            self._bad("arrivals", "a gradient is named twice")
        grads: dict[str, set[int | None]] = {}
        for name in self.arriving:
            base, trainer = split_name(name)
            grads.setdefault(base, set()).add(trainer)
            if self.role.var(name) is None:
                self._bad(
                    "undeclared", f"{name} arrives, but is not declared", None, name
                )
        for base, of in grads.items():
            if of != {None} and of != set(range(self.fanin)):
                text = (
                    f"{base} comes from trainers {sorted(of, key=str)} of {self.fanin}"
                )
                self._bad("arrivals", text, None, base)
            if None in of and self.mode == SYNC and self.fanin > 1:
                text = (
                    f"{base} has one place for the gradients of {self.fanin} trainers"
                )
                self._bad("arrivals", text, None, base)

    def _gradients(self, blocks: Sequence[Block]) -> None:
        """grad_to_block_id names every gradient once; its block uses it."""
        ids = {b.idx for b in blocks}
        bases = set(self._parts)
        for entry in self.listen.attr("grad_to_block_id"):
            grad, _, number = entry.rpartition(":")
            if grad in self.role.takers:
                self._bad("gradients", f"{grad} has two blocks", None, grad)
            if int(number) not in ids:
                self._bad(
                    "gradients", f"{grad}: block {number} is never run", None, grad
                )
                continue
            block = self.role.main.blocks[int(number)]
            self.role.takers[grad] = Taker(block.idx, self._updates(grad))
            self._used(block, grad)
        if self.mode != GEO:
            known = set(self.role.takers)
            extra = {b for b in bases - known if not self._read_somewhere(b, blocks)}
            for base in sorted(extra | (known - bases)):
                text = f"{base} arrives without a block, or has one and never arrives"
                self._bad("gradients", text, None, base)
        self._sparse()

    @cached_property
    def _updated_from(self) -> dict[str, set[str]]:
        """gradient -> slices whose update depends on it."""
        made: dict[str, set[str]] = {}
        found: dict[str, set[str]] = {}
        for block in self.listen.attr("optimize_blocks"):
            for op in block.ops:
                if op.inputs.get("Param"):
                    grad = op.inputs["Grad"][0]
                    for name in made.get(grad, {grad}):
                        found.setdefault(name, set()).update(op.inputs["Param"])
                elif self.mode == GEO and op.type == "sum":
                    for name in op.inputs["X"][1:]:
                        found.setdefault(name, set()).update(op.outputs["Out"])
                elif len(op.outputs.get("Out", ())) == 1:
                    of: set[str] = set()
                    for name in names_in(op):
                        of |= made.get(name, {name})
                    made[op.outputs["Out"][0]] = of | set(op.outputs["Out"])
        return found

    def _updates(self, grad: str) -> str | None:
        """The slice that is updated from a gradient; a common factor has none."""
        found = self._updated_from.get(grad, set())
        return next(iter(found)) if len(found) == 1 else None

    @cached_property
    def _parts(self) -> dict[str, list[str]]:
        """gradient -> what arrives for it."""
        found: dict[str, list[str]] = {}
        for name in self.arriving:
            found.setdefault(split_name(name)[0], []).append(name)
        return found

    def _used(self, block: Block, grad: str) -> None:
        read = {n for op in block.ops for n in names_in(op)}
        parts = [grad] if self.mode == GEO else self._parts.get(grad, [])
        missing = [n for n in parts if n not in read]
        if missing:
            text = f"block {block.idx} never uses {missing[0]}, which arrives for it"
            self._bad("merge", text, None, missing[0])

    def _read_somewhere(self, base: str, blocks: Sequence[Block]) -> bool:
        return any(base in names_in(op) for op in blocks[-1].ops)

    def _sparse(self) -> None:
        """sparse_grad_to_param says which gradients are rows, and of what."""
        stated = dict(
            e.rsplit(":", 1) for e in self.listen.attr("sparse_grad_to_param")
        )
        for grad, taker in self.role.takers.items():
            var = self.role.var(grad)
            rows = var is not None and var.type == VarType.SELECTED_ROWS
            if rows != (grad in stated) or stated.get(grad, taker.param) != taker.param:
                text = f"{grad} updates {taker.param}, sparse_grad_to_param says "
                self._bad("sparse", text + str(stated.get(grad)), None, grad)
        for grad in set(stated) - set(self.role.takers):
            self._bad("sparse", f"{grad} has no block", None, grad)

    # ------------------------------------------------ what the blocks do

    def _flow(self, blocks: Sequence[Block]) -> None:
        """Ops read what is initialised, arrived or made before; merges are means."""
        known = set(self.role.initialised) | set(self.arriving)
        if self.mode == GEO:
            known |= set(self.role.takers)
        updated: set[str] = set()
        for block in blocks:
            for op in block.ops:
                self._op(op, block, known)
                known.update(names_out(op))
                for param in op.inputs.get("Param", ()):
                    if param in updated:
                        self._bad("update", f"{param} is updated twice", op, param)
                    updated.add(param)

    def _op(self, op: Operator, block: Block, known: set[str]) -> None:
        for name in names_in(op):
            if name not in known and name != "@TRAINER_ID@":
                var = self.role.var(name)
                hint = "" if var is not None else " or declared"
                text = f"{name} is read, but never made, initialised{hint}"
                self._bad("flow", text, op, name)
                known.add(name)
        if op.inputs.get("Param"):
            self._update(op)
        if op.type == "sum" and split_name(op.inputs["X"][0])[1] is not None:
            self._merge(op, block)

    def _update(self, op: Operator) -> None:
        param = op.inputs["Param"][0]
        if op.outputs.get("ParamOut") != [param]:
            self._bad("update", f"{param} is read, {op.outputs} is written", op, param)
        here = self.role.var(param)
        for slot in _LIKE_PARAM:
            for name in op.inputs.get(slot, ()):
                var = op.block._find_var_recursive(name)
                if here is None or var is None or _cells(here) != _cells(var):
                    text = f"{slot} {name} is {looks(var)}, {param} is {looks(here)}"
                    self._bad("shape", text, op, name)

    def _merge(self, op: Operator, block: Block) -> None:
        parts = op.inputs["X"]
        base = split_name(parts[0])[0]
        if parts != [f"{base}.trainer_{t}" for t in range(self.fanin)]:
            self._bad(
                "merge", f"{parts} are not the parts of {self.fanin} trainers", op
            )
        if parts[0] not in self.arriving:
            return  # counters of steps are added up, not averaged
        merged = op.outputs["Out"][0]
        follow = block.ops[_place(block, op) + 1 :][:1]
        mean = 1.0 / self.fanin
        if not follow or follow[0].type != "scale" or merged not in names_in(follow[0]):
            self._bad("merge", f"{merged} is not divided by {self.fanin}", op, merged)
        elif not isclose(follow[0].attr("scale"), mean, rel_tol=1e-6):
            text = (
                f"{merged} is scaled by {follow[0].attr('scale')}, not 1/{self.fanin}"
            )
            self._bad("merge", text, follow[0], merged)
        for part in (*parts, merged):
            var, whole = self.role.var(part), self.role.var(merged)
            if looks(var) != looks(whole):
                text = f"{part} is {looks(var)}, {merged} is {looks(whole)}"
                self._bad("shape", text, op, part)

    # ------------------------------------------------ startup

    def _startup(self) -> None:
        """Initialisers fill the shapes that the main program has."""
        for name, op in self.role.initialised.items():
            var = self.role.var(name)
            shape = op.attrs.get("shape")
            if var is None or not shape or var.type != VarType.LOD_TENSOR:
                continue
            if list(shape) != list(var.shape):
                text = f"{name} is initialised as {list(shape)}, used as {looks(var)}"
                side = self.role.side(op, name, "startup")
                self.found.append(
                    Problem("shape", text, (side, self.role.side(None, name)))
                )


def _cells(var: Variable) -> tuple[object, ...]:
    return (var.shape, var.dtype)


def _place(block: Block, op: Operator) -> int:
    return next(i for i, other in enumerate(block.ops) if other is op)


def _is_schedule(op: Operator) -> bool:
    return bool(op.attrs.get("op_role", 0) & 16)
