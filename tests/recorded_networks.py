"""Compares programs and values with what `dynamic_rnn.record` wrote."""

from __future__ import annotations

import importlib
import json
import lzma
import sys
from pathlib import Path
from typing import Any

import numpy as np

import fluidx

GOLDEN = Path(__file__).parent / "golden"
ORACLE = GOLDEN / "oracle"
sys.path[:0] = [str(ORACLE), str(GOLDEN / "transpiler")]
import dump  # noqa: E402
import dynamic_rnn  # noqa: E402
from compact import compact  # noqa: E402

for _ in range(2):
    sys.path.pop(0)

__all__ = ["answers", "cases_of", "check_programs", "check_values"]


def answers(name: str) -> Any:
    """What the reference said to the cases of a file."""
    packed = ORACLE / f"{name}.json.xz"
    if packed.exists():
        return json.loads(lzma.decompress(packed.read_bytes()))
    return json.loads((ORACLE / f"{name}.json").read_text())


def cases_of(name: str) -> Any:
    """The cases of ``NAME_cases.py`` beside the answers."""
    sys.path.insert(0, str(ORACLE))
    try:
        return importlib.import_module(f"{name}_cases").CASES
    finally:
        sys.path.remove(str(ORACLE))


def _forward(block: Any) -> Any:
    """A block without its gradient ops and gradients."""
    ops, found = block
    return (
        [op for op in ops if not op[3].get("op_role")],
        {n: facts for n, facts in found.items() if "@GRAD" not in n},
    )


def _sorted(op: Any) -> Any:
    """What an op with a sub-block reads is a set, in any order."""
    type, ins, outs, attrs = op
    if "sub_block" not in attrs:
        return op
    slots = [{k: sorted(v) for k, v in part.items()} for part in (ins, outs)]
    lists = {k: sorted(v) if isinstance(v, list) else v for k, v in attrs.items()}
    return [type, *slots, lists]


def check_programs(cases: Any, name: str, answer: Any, forward: bool = False) -> None:
    """Both programs are the reference's, op by op. forward: without gradients."""
    main, startup, *_ = dynamic_rnn.build(fluidx, name, cases)
    for role, program in (("main", main), ("startup", startup)):
        mine = json.loads(json.dumps(compact(dump.dump(program))))
        theirs = answer["programs"][role]
        assert len(mine) == len(theirs)
        for block, wanted in zip(mine, theirs):
            if forward:
                block, wanted = (_forward(b) for b in (block, wanted))
            assert list(map(_sorted, block[0])) == list(map(_sorted, wanted[0]))
            assert sorted(block[1]) == sorted(wanted[1])


def check_values(cases: Any, name: str, answer: Any) -> None:
    """All that is fetched is what the reference fetched, LoD included."""
    main, startup, feed, fetch = dynamic_rnn.build(fluidx, name, cases)
    found = dynamic_rnn.run(fluidx, main, startup, feed, fetch)
    assert [v.name for v in fetch] == answer["fetch"]
    assert len(found) == len(answer["values"])
    for var, (value, lod), wanted in zip(fetch, found, answer["values"]):
        assert value.dtype == wanted["dtype"], var.name
        assert list(value.shape) == wanted["shape"], var.name
        theirs = np.array(wanted["data"], value.dtype).reshape(value.shape)
        np.testing.assert_allclose(value, theirs, 2e-5, 2e-6, err_msg=var.name)
        assert lod == wanted["lod"], var.name
