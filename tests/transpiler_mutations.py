"""Ways to break a correct set of programs: one thing each, every one of which matters.

A mutation takes the set (role -> {"main", "startup"}) and changes it in place. They
are named PLACE ACTION; `mutations(programs)` gives all that apply to a set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fluidx.ir import Block, Operator, Program
from fluidx.kernels import VarType

Programs = dict[str, dict[str, Program]]
Mutation = Callable[[Programs], None]


def _block(programs: Programs, role: str, program: str, number: int = 0) -> Block:
    return programs[role][program].blocks[number]


def _places(programs: Programs) -> Iterator[tuple[str, str, int]]:
    """(role, program, block) of one trainer and of every server's blocks."""
    for role, both in programs.items():
        if role == "trainer-0" or role.startswith("pserver"):
            for kind, program in both.items():
                for block in program.blocks:
                    yield role, kind, block.idx


# op types that no role can do without, where they stand in these programs
_NEEDED = (
    "send",
    "recv",
    "concat",
    "split_byref",
    "split_selected_rows",
    "send_barrier",
    "fetch_barrier",
    "fake_init",
    "sgd",
    "adagrad",
    "momentum",
    "c_allreduce_sum",
    "c_broadcast",
    "c_sync_comm_stream",
    "c_comm_init",
    "c_gen_nccl_id",
    "gen_nccl_id",
    "assign",
)
_ONCE = ("send", "recv", "send_barrier", "fetch_barrier", "sgd", "adagrad", "momentum")
_ONCE_IN_RINGS = ("c_allreduce_sum", "c_broadcast", "c_comm_init", "gen_nccl_id")


def _drop(block: Block, at: int) -> None:
    del block.ops[at]


def _repeat(block: Block, at: int) -> None:
    block.ops.insert(at, block.ops[at].copy_to(block))


def _to_front(block: Block, at: int) -> None:
    block.ops.insert(0, block.ops.pop(at))


def _to_end(block: Block, at: int) -> None:
    block.ops.append(block.ops.pop(at))


def _set(**attrs: Any) -> Callable[[Block, int], None]:
    def act(block: Block, at: int) -> None:
        block.ops[at].attrs.update(attrs)

    return act


def _change(name: str, how: Callable[[Any], Any]) -> Callable[[Block, int], None]:
    def act(block: Block, at: int) -> None:
        op = block.ops[at]
        op.attrs[name] = how(op.attrs[name])

    return act


def _rename_out(block: Block, at: int) -> None:
    op = block.ops[at]
    slot = next(iter(op.outputs))
    op.outputs[slot][0] += "x"


def _rename_in(block: Block, at: int) -> None:
    op = block.ops[at]
    slot = next(s for s in op.inputs if op.inputs[s])
    op.inputs[slot][-1] += "x"


def _turned(values: list[Any]) -> list[Any]:
    return values[1:] + values[:1]


def _shorter(values: list[int]) -> list[int]:
    return [values[0] - 1, *values[1:]]


def _elsewhere(ends: list[str]) -> list[str]:
    return ["10.0.0.9:1", *ends[1:]]


_ACTIONS: dict[str, list[tuple[str, Callable[[Block, int], None]]]] = {
    "send": [
        ("to nowhere", _change("epmap", _elsewhere)),
        ("too early", _to_front),
        ("renamed", _rename_in),
    ],
    "recv": [
        ("from nowhere", _change("epmap", _elsewhere)),
        ("too early", _to_front),
        ("as trainer 1", _set(trainer_id=1)),
    ],
    "concat": [("axis 1", _set(axis=1)), ("too early", _to_front)],
    "split_byref": [("other rows", _change("sections", _shorter))],
    "split_selected_rows": [("other rows", _change("height_sections", _shorter))],
    "send_barrier": [
        ("too early", _to_front),
        ("too late", _to_end),
        ("for one server", _change("endpoints", lambda e: e[:1])),
        ("half async", _change("half_async", lambda v: not v)),
        ("as trainer 1", _set(trainer_id=1)),
    ],
    "fetch_barrier": [("for one server", _change("endpoints", lambda e: e[:1]))],
    "distributed_lookup_table": [
        ("rows", _change("height_sections", _shorter)),
        ("servers turned", _change("endpoints", _turned)),
        ("tables turned", _change("table_names", _turned)),
    ],
    "fake_init": [("other shape", _change("shape", _shorter))],
    "sum": [("part renamed", _rename_in)],
    "scale": [("other factor", _change("scale", lambda s: s * 0.75))],
    "listen_and_serv": [
        ("Fanin 3", _set(Fanin=3)),
        ("other mode", _change("distributed_mode", lambda m: 1 - min(m, 1))),
        ("other endpoint", _set(endpoint="10.0.0.9:1")),
        ("a block less", _change("optimize_blocks", lambda b: b[:-1])),
        ("a gradient's block gone", _change("grad_to_block_id", lambda g: g[1:])),
        ("a block of another", _change("grad_to_block_id", lambda g: _swapped(g))),
        ("sparse turned", _change("sparse_grad_to_param", lambda s: _no(s))),
    ],
    "c_allreduce_sum": [
        ("too early", _to_front),
        ("too late", _to_end),
        ("other ring", _change("ring_id", lambda r: r + 1)),
        ("unknown ring", _set(ring_id=7)),
    ],
    "c_broadcast": [("other root", _set(root=1)), ("unknown ring", _set(ring_id=7))],
    "c_comm_init": [("nranks 3", _set(nranks=3)), ("rank 1", _set(rank=1))],
    "c_gen_nccl_id": [("rank 1", _set(rank=1))],
    "gen_nccl_id": [
        ("as trainer 1", _set(trainer_id=1)),
        ("workers turned", _change("trainers", _turned)),
        ("more communicators", _change("nccl_comm_num", lambda n: n + 1)),
    ],
    "c_sync_comm_stream": [("other ring", _set(ring_id=7))],
}


def _swapped(entries: list[str]) -> list[str]:
    """Two gradients trade their blocks."""
    if len(entries) < 2:
        return entries[:0]
    (a, i), (b, j) = (e.rsplit(":", 1) for e in entries[:2])
    return [f"{a}:{j}", f"{b}:{i}", *entries[2:]]


def _no(entries: list[str]) -> list[str]:
    return [] if entries else ["nothing:at_all"]


def _harmless(place: str, kind: str, op: Operator, action: str) -> bool:
    """Changes that leave a set correct, so that finding nothing is right."""
    if op.type == "scale" and op.attrs.get("op_role", 0) and "trainer" in place:
        return op.attrs["op_role"] != 1  # only the scaled loss gradient is ours
    if action == "too early" and op.attrs.get("merge_add"):
        return True  # a count may be sent at any time in a step
    if op.type in ("sum", "scale"):
        # the user's own sums and scales are not ours to judge
        return "pserver" not in place or bool(op.attrs.get("op_role", 0))
    if op.type in ("assign", "concat") and kind == "main" and op.attrs["op_role"] == 0:
        return True  # forward
    if op.type in ("sgd", "adagrad", "momentum"):
        return "pserver" not in place
    return False


def _picked(block: Block) -> Iterator[tuple[int, Operator]]:
    """The first and the last op of each type."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for at, op in enumerate(block.ops):
        first.setdefault(op.type, at)
        last[op.type] = at
    for at in sorted(set(first.values()) | set(last.values())):
        yield at, block.ops[at]


def mutations(programs: Programs) -> Iterator[tuple[str, Mutation]]:
    """(name, mutation) of all single changes that apply to a set of programs."""
    for role, kind, number in _places(programs):
        block = _block(programs, role, kind, number)
        for at, op in _picked(block):
            where = f"{role} {kind} block {number} op {at} {op.type}"
            acts: list[tuple[str, Callable[[Block, int], None]]] = []
            acts += [("dropped", _drop)] if op.type in _NEEDED else []
            once = (op.type in _ONCE and kind == "main") or op.type in _ONCE_IN_RINGS
            acts += [("repeated", _repeat)] if once else []
            acts += _ACTIONS.get(op.type, [])
            for action, act in acts:
                if not _harmless(role, kind, op, action) and _applies(op, action, act):
                    yield f"{where}: {action}", _at(role, kind, number, at, act)
    yield from _resized(programs)
    yield from _roles(programs)


def _applies(op: Operator, action: str, act: Any) -> bool:
    """Lists of one cannot be turned; late splitting has no early end."""
    ends = op.attrs.get("endpoints") or op.attrs.get("table_names") or [1, 2]
    if action in ("servers turned", "tables turned", "for one server"):
        return len(ends) > 1
    if action == "too early" and op.type == "recv":
        return bool(op.inputs.get("X"))
    if action == "renamed":
        return any(op.inputs.values())
    return True


def _at(role: str, kind: str, number: int, at: int, act: Any) -> Mutation:
    return lambda programs: act(_block(programs, role, kind, number), at)


def _resized(programs: Programs) -> Iterator[tuple[str, Mutation]]:
    """Variables that travel change their shape, dtype or kind, or are gone."""
    for role in ("trainer-0", "pserver-0"):
        if role not in programs:
            continue
        for name in _travelling(programs[role]["main"]):
            for action in ("rows", "dtype", "kind"):
                yield f"{role} {name}: {action}", _alter(role, name, action)


def _travelling(main: Program) -> list[str]:
    names: dict[str, None] = {}
    block = main.global_block()
    for op in block.ops:
        if op.type in ("send", "listen_and_serv"):
            names.update((n, None) for n in op.inputs.get("X", ()))
        if op.type == "recv":
            names.update((n, None) for n in op.outputs["Out"])
    known = [n for n in names if n in block.vars and block.vars[n].shape]
    return [n for n in known if not block.vars[n].is_data]


def _alter(role: str, name: str, action: str) -> Mutation:
    def act(programs: Programs) -> None:
        var = programs[role]["main"].global_block().vars[name]
        if action == "rows":
            var.set_shape([var.shape[0] + 1, *var.shape[1:]])
        elif action == "dtype":
            var.set_dtype("float64" if var.dtype != VarType.FP64 else "float32")
        else:
            rows = var.type == VarType.SELECTED_ROWS
            var.type = VarType.LOD_TENSOR if rows else VarType.SELECTED_ROWS

    return act


def _roles(programs: Programs) -> Iterator[tuple[str, Mutation]]:
    """Whole roles are gone, or there twice."""
    for role in ("trainer-1", "pserver-1"):
        if role in programs and len([r for r in programs if r[:4] == role[:4]]) > 1:
            yield f"{role}: gone", lambda p, role=role: p.pop(role)

            def twice(p: Programs, role: str = role) -> None:
                p[role] = p[role[:-1] + "0"]

            yield f"{role}: as role 0", twice
