"""A distributed program for people: as text and as a Graphviz drawing.

    made = distribute(main, startup, "pserver", servers=2, trainers=2)
    print(summary(made))
    Path("cluster.dot").write_text(dot(made))

`show_html.page` makes a web page of the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from fluidx.ir import Block, Operator, OpRole, Program

from .cost import Cost, Workload, cost
from .links import Link, Place, links
from .roles import Distributed

__all__ = ["dot", "program_dot", "role_word", "summary"]

#: op role -> colour of its ops, everywhere
COLOURS = {
    "forward": "#4a78c2",
    "backward": "#c2702a",
    "optimize": "#2f8f5b",
    "lr": "#9a7b0a",
    "rpc": "#b0407f",
    "dist": "#7d56b3",
}
_BITS = (
    (OpRole.RPC, "rpc"),
    (OpRole.Dist, "dist"),
    (OpRole.LRSched, "lr"),
    (OpRole.Optimize, "optimize"),
    (OpRole.Backward, "backward"),
)


def role_word(op: Operator) -> str:
    """The one word, a key of `COLOURS`, that says what an op is there for."""
    return next((word for bit, word in _BITS if op.role & bit), "forward")


def summary(made: Distributed, work: Workload | None = None) -> str:
    """Roles, bytes per step, and every message with both its ends.

    work: what -1 and sparse gradients stand for.
    """
    parts = [_heading(made), str(cost(made.programs, None, work)).split("\nstep: ")[0]]
    found = links(made.programs)
    for which, title in (("startup", "at the start"), ("main", "in a step")):
        chosen = [n for n in found if _program_of(n) == which]
        parts.append(f"messages {title}: {len(chosen)}")
        parts.append("\n".join(_link_lines(chosen, made)))
    return "\n\n".join(p.rstrip() for p in parts if p.strip()) + "\n"


def _program_of(link: Link) -> str:
    """Whether a trainer sends or gets it in its startup or its main program."""
    trainer = link.source if link.source.role.startswith("trainer") else link.target
    return trainer.program


def _heading(made: Distributed) -> str:
    ops = {
        r: sum(len(b.ops) for b in p["main"].blocks) for r, p in made.programs.items()
    }
    told = ", ".join(f"{r} {n} ops" for r, n in ops.items())
    return f"{len(made.trainers)} trainers, {len(made.servers)} servers: {told}"


def _link_lines(found: list[Link], made: Distributed) -> Iterator[str]:
    width = max((len(n.name) for n in found), default=0)
    for link in found:
        size = "" if link.size is None else f"{link.size:,} bytes"
        ends = f"{_place(link.source, made)} -> {_place(link.target, made)}"
        yield f"  {link.kind:7} {link.name:{width}}  {ends}  {size}".rstrip()


def _place(place: Place, made: Distributed) -> str:
    op = op_at(made, place)
    block = f"block {place.block} " if place.block else ""
    return f"{place.role} {block}op {place.op} {op.type}"


def op_at(made: Distributed, place: Place) -> Operator:
    """The op at a place."""
    program = made.programs[place.role][place.program]
    return program.blocks[place.block].ops[place.op]


# ------------------------------------------------------------------ DOT


def program_dot(program: Program, name: str = "program") -> str:
    """One program as DOT: a cluster per block, an edge from writer to reader."""
    lines = [f"digraph {_quoted(name)} {{", *_STYLE]
    for block in program.blocks:
        lines += _cluster(block, f"{name} block {block.idx}", f"b{block.idx}")
        lines += _flows(block, f"b{block.idx}")
    return "\n".join([*lines, "}"]) + "\n"


def dot(made: Distributed) -> str:
    """The main programs of all roles as DOT, joined by the messages of a step."""
    lines = ['digraph "cluster" {', *_STYLE, "  compound=true;"]
    prefix = {role: f"r{i}" for i, role in enumerate(made.programs)}
    for role, both in made.programs.items():
        lines.append(f"  subgraph cluster_{prefix[role]} {{")
        lines.append(f"    label={_quoted(role)}; style=rounded; fontsize=16;")
        for block in both["main"].blocks:
            title = f"block {block.idx}" if block.idx else "main block"
            own = f"{prefix[role]}b{block.idx}"
            lines += [f"  {line}" for line in _cluster(block, title, own)]
        lines.append("  }")
        for block in both["main"].blocks:
            lines += _flows(block, f"{prefix[role]}b{block.idx}")
    for link in links(made.programs):
        if _program_of(link) == "main":
            lines.append(_edge(link, prefix))
    return "\n".join([*lines, "}"]) + "\n"


_STYLE = (
    "  rankdir=TB; fontname=Helvetica;",
    "  node [shape=box, style=filled, fontname=Helvetica, fontsize=10];",
    "  node [fontcolor=white];",
    "  edge [fontname=Helvetica, fontsize=8, color=gray50];",
)


def _edge(link: Link, prefix: dict[str, str]) -> str:
    ends = (f"{prefix[p.role]}b{p.block}o{p.op}" for p in (link.source, link.target))
    style = "dashed" if link.kind == "barrier" else "bold"
    colour, label = COLOURS["rpc"], _quoted(link.name)
    return (
        f"  {' -> '.join(ends)} "
        f'[label={label}, color="{colour}", style={style}, constraint=false];'
    )


def _cluster(block: Block, title: str, prefix: str) -> list[str]:
    lines = [f"  subgraph cluster_{prefix} {{", f"    label={_quoted(title)};"]
    for at, op in enumerate(block.ops):
        colour = COLOURS[role_word(op)]
        lines.append(
            f'    {prefix}o{at} [label={_quoted(op.type)}, fillcolor="{colour}"];'
        )
    return [*lines, "  }"]


def _flows(block: Block, prefix: str) -> list[str]:
    """Edges from the op that wrote a variable to those that read it."""
    writer: dict[str, int] = {}
    lines = []
    for at, op in enumerate(block.ops):
        sources: dict[int, list[str]] = {}
        for args in op.inputs.values():
            for name in args:
                if name in writer:
                    sources.setdefault(writer[name], []).append(name)
        for source, names in sources.items():
            label = _quoted(", ".join(dict.fromkeys(names)))
            lines.append(f"  {prefix}o{source} -> {prefix}o{at} [label={label}];")
        for args in op.outputs.values():
            writer.update((name, at) for name in args)
    return lines


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


__all__ += ["COLOURS", "Cost", "op_at"]
