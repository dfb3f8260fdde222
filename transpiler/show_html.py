"""A distributed program as one web page that needs nothing but itself.

    Path("cluster.html").write_text(page(made, "digits.py, pserver"))

All roles stand side by side, ops coloured by role; choosing a `send` draws the line to
where it is taken, and so on. Further: what every server holds, bytes of a step, all
messages, and what became of the trainer's program. Keys: / search, n next match,
arrows, Enter choose, g go to the other end, Esc.
"""

from __future__ import annotations

import difflib
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from fluidx.ir import Block, Operator, Program
from fluidx.ir.text import op_line, own_attrs, value_text
from fluidx.kernels import to_numpy

from .cost import Workload, cost
from .links import Link, Place, links
from .roles import Distributed
from .show import role_word

__all__ = ["facts", "page"]

# a renamed gradient is still the same one
_NUMBER = re.compile(r"\.trainer_[0-9]+")
_COLUMNS = 6  # with more roles, the page begins with some of them
_TABS = {
    "programs": "Programs",
    "servers": "Servers and bytes",
    "messages": "Messages",
    "diff": "Before and after",
}


def page(made: Distributed, title: str, work: Workload | None = None) -> str:
    """The page, complete. title: what stands at its head."""
    told = json.dumps(facts(made, work), separators=(",", ":"))
    folder = resources.files(__package__)
    style, script = ((folder / f"page.{k}").read_text("utf-8") for k in ("css", "js"))
    # nothing in it may end the element that it stands in
    told = told.replace("<", "\\u003c")
    return _PAGE.format(
        title=html.escape(title),
        about=html.escape(_about(made)),
        tabs="".join(_tab(name, text) for name, text in _TABS.items()),
        style=style,
        script=script,
        data=told,
    )


def _about(made: Distributed) -> str:
    return (
        f"{_many(len(made.trainers), 'trainer')}, {_many(len(made.servers), 'server')}"
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _tab(name: str, text: str) -> str:
    return (
        f'<button role="tab" data-tab="{name}" aria-controls="{name}" '
        f'aria-selected="false">{text}</button>'
    )


def facts(made: Distributed, work: Workload | None = None) -> dict[str, Any]:
    """Everything that the page shows, as plain values."""
    report = cost(made.programs, None, work)
    names = list(made.programs)
    return {
        "roles": [_role(name, both, made) for name, both in made.programs.items()],
        "shown": _shown(made) if len(names) > _COLUMNS else names,
        "links": [_link(link) for link in links(made.programs)],
        "servers": _servers(made),
        "balance": report.balance,
        "notes": [
            "Exactly what the runtime sends: heads, names and arrays. Where a size "
            f"depends on the data, a batch of {(work or Workload()).batch} is assumed.",
            *(f"Note: {n}." for n in report.notes),
        ],
        "cost": [
            {
                "name": r.name,
                "sent": r.sent,
                "received": r.received,
                "payload": r.payload_sent + r.payload_received,
                "messages": r.messages,
            }
            for r in report.roles
        ],
        "diff": _diffs(made),
    }


def _shown(made: Distributed) -> list[str]:
    return [*made.trainers[:2], *made.servers][:_COLUMNS]


# ------------------------------------------------------------------ programs


def _role(name: str, both: Mapping[str, Program], made: Distributed) -> dict[str, Any]:
    endpoint = ""
    for op in both["main"].global_block().ops:
        if op.type == "listen_and_serv":
            endpoint = op.attr("endpoint")
    return {
        "name": name,
        "endpoint": endpoint,
        "programs": {which: _blocks(program) for which, program in both.items()},
    }


def _blocks(program: Program) -> list[dict[str, Any]]:
    return [
        {"idx": b.idx, "title": _title(b), "ops": [_op(op) for op in b.ops]}
        for b in program.blocks
    ]


def _title(block: Block) -> str:
    title = f"block {block.idx}" if block.idx else "main block"
    if block.parent_idx > 0:
        title += f" in {block.parent_idx}"
    updated = [
        n for op in block.ops for n in op.outputs.get("ParamOut", ()) if block.idx
    ]
    if updated:
        more = f" and {len(updated) - 3} more" if len(updated) > 3 else ""
        title += f": updates {', '.join(updated[:3])}{more}"
    elif block.idx and block.ops and all(role_word(op) == "lr" for op in block.ops):
        title += ": the learning rate"
    return title


def _op(op: Operator) -> dict[str, Any]:
    return {
        "type": op.type,
        "word": role_word(op),
        "line": op_line(op),
        "ins": {slot: list(names) for slot, names in op.inputs.items()},
        "outs": {slot: list(names) for slot, names in op.outputs.items()},
        "attrs": {name: _shown_value(name, v) for name, v in own_attrs(op).items()},
        "pair": op.role_var,
        "where": str(op.where) if op.where is not None else "",
    }


def _shown_value(name: str, value: Any) -> str:
    text = value_text(name, value)
    return text if len(text) < 400 else f"{text[:380]} ... ({len(text):,} characters)"


def _link(link: Link) -> dict[str, Any]:
    return {
        "kind": link.kind,
        "from": _ref(link.source),
        "to": _ref(link.target),
        "name": link.name,
        "size": link.size,
    }


def _ref(place: Place) -> str:
    return "|".join(map(str, place))


# ------------------------------------------------------------------ servers


def _servers(made: Distributed) -> list[dict[str, Any]]:
    if made.plan is None:
        return []
    found = []
    for name, endpoint in zip(made.servers, made.plan.setting.endpoints):
        blocks = [
            {
                "name": piece.name,
                "param": param,
                "rows": f"{piece.row:,} to {piece.row + piece.rows - 1:,}",
                "shape": f"[{', '.join(f'{d:,}' for d in piece.shape)}]",
                "bytes": _bytes(made, param, piece.shape),
            }
            for param, pieces in made.plan.on(endpoint).items()
            for piece in pieces
        ]
        held = sum(int(str(b["bytes"])) for b in blocks)
        found.append({"name": name, "held": held, "blocks": blocks})
    return found


def _bytes(made: Distributed, param: str, shape: Sequence[int]) -> int:
    assert made.plan is not None
    size = to_numpy(made.plan.by_name[param].dtype).itemsize
    for count in shape:
        size *= count
    return size


# ------------------------------------------------------------------ before and after


def _diffs(made: Distributed) -> list[tuple[str, list[list[str]]]]:
    first = made.programs[made.trainers[0]]
    pairs = (
        ("The main program of trainer 0", made.main, first["main"]),
        ("The startup program of trainer 0", made.startup, first["startup"]),
    )
    return [(title, list(_diff(old, new))) for title, old, new in pairs]


def _diff(old: Program, new: Program) -> Iterator[list[str]]:
    """[tag, line, role] per op; tag "~": [tag, old line, role, new line]."""
    before, after = list(old.all_ops()), list(new.all_ops())
    ours, theirs = [op_line(o) for o in before], [op_line(o) for o in after]
    keys = [[_NUMBER.sub("", line) for line in lines] for lines in (ours, theirs)]
    matcher = difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        changed = [o.type for o in before[a:b]] == [o.type for o in after[c:d]]
        if tag == "equal" or changed:
            for i, j in zip(range(a, b), range(c, d)):
                word = role_word(after[j])
                if ours[i] == theirs[j]:
                    yield [" ", ours[i], word]
                else:
                    yield ["~", ours[i], word, theirs[j]]
            continue
        for i in range(a, b):
            yield ["-", ours[i], role_word(before[i])]
        for j in range(c, d):
            yield ["+", theirs[j], role_word(after[j])]


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
  <div class="title"><h1>{title}</h1><span class="about">{about}</span>
    <span class="space"></span>
    <span class="keys"><kbd>/</kbd> search <kbd>n</kbd> next <kbd>↑↓←→</kbd> move
      <kbd>Enter</kbd> choose <kbd>g</kbd> other end <kbd>Esc</kbd> clear</span>
    <button class="chip switch" id="theme" aria-label="light or dark">theme</button>
  </div>
  <div class="bar-top">
    <div class="tabs" id="tabs" role="tablist">{tabs}</div>
    <span class="space"></span>
    <span class="count" id="count" role="status" aria-live="polite"></span>
    <input type="search" id="search" placeholder="op, variable, attribute or file"
      aria-label="search"></div>
  <div class="tools" id="boardtools">
    <span class="seg" id="which" role="group" aria-label="program">
      <button data-which="main" aria-pressed="true">main</button>
      <button data-which="startup" aria-pressed="false">startup</button></span>
    <span id="chips" role="group" aria-label="op roles"></span>
    <span id="roles" role="group" aria-label="roles"></span></div>
</header>
<main id="main">
  <noscript><div class="page"><p>This page draws itself with JavaScript; the same
  facts stand as text in the .txt files beside it.</p></div></noscript>
  <div id="programs" role="tabpanel"><div class="board" id="board"></div></div>
  <div id="servers" class="page" role="tabpanel" hidden></div>
  <div id="messages" class="page" role="tabpanel" hidden></div>
  <div id="diff" class="page" role="tabpanel" hidden></div>
</main>
<aside id="details" hidden aria-label="the chosen op"></aside>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""
