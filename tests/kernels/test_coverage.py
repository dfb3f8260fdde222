"""Every declared op has a case, and its cases touch the edges that it has.

Counted over all `OpCase`s and all recorded questions to the reference. What is not
covered stands in tests/golden/edges_missing.txt, which can only shrink.
"""

from __future__ import annotations

import importlib.util
import json
import lzma
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import opcase
import pytest
from edge_kinds import AXES, KINDS, edge_kinds
from replay_oracle import _value

from fluidx import kernels

HERE = Path(__file__).parent
TESTS = HERE.parent
ORACLE = TESTS / "golden" / "oracle"
MISSING = TESTS / "golden" / "edges_missing.txt"
#: ops without a case of their own -> the test module that runs them
ELSEWHERE = {
    "tests/distributed/test_collective.py": """
        allreduce broadcast c_allgather c_allreduce_max c_allreduce_min
        c_allreduce_prod c_allreduce_sum c_broadcast c_reducescatter gen_nccl_id
    """,
    "tests/distributed/test_ring_ops.py": """
        c_comm_init c_comm_init_all c_gen_nccl_id c_sync_calc_stream
        c_sync_comm_stream
    """,
    "tests/distributed/test_rpc_ops.py": """
        checkpoint_notify distributed_lookup_table fetch_barrier listen_and_serv recv
        send send_barrier
    """,
    "tests/kernels/test_control_flow.py": """
        lod_array_length read_from_array select_output write_to_array
    """,
    "tests/kernels/test_beam_search.py": "beam_search_decode",
    "tests/kernels/test_rank_table.py": """
        array_to_lod_tensor lod_rank_table lod_tensor_to_array max_sequence_len
        shrink_rnn_memory
    """,
    "tests/executor/test_control_flow.py": """
        conditional_block recurrent while
    """,
    "tests/executor/test_executor.py": "feed fetch print",
    "tests/executor/test_inference_blocks.py": "conditional_block_infer",
    "tests/layers/test_dense_values.py": "py_func",
    "tests/io/test_save_load_ops.py": "load load_combine save save_combine",
    "tests/kernels/test_reader.py": """
        create_double_buffer_reader create_py_reader read
    """,
}


@cache
def cases() -> dict[str, list[tuple[dict[str, Any], dict[str, Any]]]]:
    """(inputs, attributes) of all cases and records, by op."""
    found: dict[str, list[Any]] = defaultdict(list)
    _load_suites()  # pytest may have collected some of them only
    for case in opcase.DECLARED:
        found[case.op].append((dict(case.inputs), dict(case.attrs)))
    for record in _records():
        inputs = {k: _plain(v) for k, v in record["inputs"].items()}
        found[record["op"]].append((inputs, record.get("attrs", {})))
    return found


def _load_suites() -> None:
    for path in sorted(HERE.glob("test_*.py")):
        if path.stem not in ("test_coverage", "test_schema", "test_buffers"):
            spec = importlib.util.spec_from_file_location(f"of_{path.stem}", path)
            assert spec is not None
            assert spec.loader is not None
            spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _records() -> Iterator[dict[str, Any]]:
    with lzma.open(ORACLE / "edges.json.xz", "rt") as file:
        yield from (r["case"] for r in json.load(file))
    for path in sorted(ORACLE.glob("*.json")):
        found = json.loads(path.read_text())
        if not isinstance(found, list):
            continue
        for record in found:
            case = record.get("case", record) if isinstance(record, dict) else {}
            if "op" in case and "inputs" in case:
                yield case


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(v) for v in value]
    return _value(value)


def _declared() -> list[str]:
    """All ops but the gradient ops, which run in the cases of their forward ops."""
    return [t for t in kernels.all_types() if not _is_gradient(t)]


def _is_gradient(type: str) -> bool:
    definition = kernels.find(type)
    if definition.forward is not None:
        return True
    stem = type
    while stem.endswith("_grad"):
        stem = stem[: -len("_grad")]
    return stem != type and kernels.has(stem)


def _elsewhere() -> dict[str, str]:
    return {op: path for path, ops in ELSEWHERE.items() for op in ops.split()}


def test_every_op_has_cases_or_is_run_by_a_named_module() -> None:
    with_cases, elsewhere = set(cases()), _elsewhere()
    declared = set(_declared())
    assert set(elsewhere) <= declared
    missing = declared - with_cases - set(elsewhere)
    assert not missing, f"no case: {sorted(missing)}"
    both = with_cases & set(elsewhere)
    assert not both, f"these have cases by now: {sorted(both)}"


@pytest.mark.parametrize("path", sorted(ELSEWHERE))
def test_the_named_modules_name_these_ops(path: str) -> None:
    text = (TESTS.parent / path).read_text()
    beside = [p.read_text() for p in (TESTS.parent / path).parent.glob("*.py")]
    for op in ELSEWHERE[path].split():
        assert op in text or any(op in t for t in beside), op


def _wanted(type: str) -> list[str]:
    """The kinds of edges that an op can have."""
    seen = cases()[type]
    arrays = [
        np.asarray(getattr(a, "value", a))
        for inputs, _ in seen
        for v in inputs.values()
        for a in (v if isinstance(v, list) else [v])
    ]
    definition = kernels.find(type)
    kinds = ["empty"] if definition.ins and arrays else []
    if any(a.dtype.kind == "f" for a in arrays) and not definition.random:
        kinds += ["nonfinite", "big", "tiny", "integers"]
    if any(name in definition.attrs for name in AXES):
        kinds.append("negative axis")
    return kinds


def _untouched() -> set[str]:
    found = set()
    for type in set(_declared()) & set(cases()):
        touched = set().union(*(edge_kinds(*case) for case in cases()[type]))
        found |= {f"{type}: {k}" for k in _wanted(type) if k not in touched}
    return found


def test_edges() -> None:
    missing = _untouched()
    listed = MISSING.read_text().splitlines()
    assert sorted(set(listed)) == listed
    fresh = sorted(missing - set(listed))
    assert not fresh, f"no case touches these edges: {fresh}"
    done = sorted(set(listed) - missing)
    assert not done, f"covered now, drop them from {MISSING.name}: {done}"


def test_the_kinds_are_told_apart() -> None:
    for kind, inputs, attrs in (
        ("empty", {"X": np.zeros((0, 2))}, {}),
        ("nonfinite", {"X": np.array([np.nan])}, {}),
        ("big", {"X": [np.ones(1), np.array([1e9])]}, {}),
        ("tiny", {"X": np.array([1e-9])}, {}),
        ("integers", {"X": np.ones(2, "i4")}, {}),
        ("negative axis", {"X": np.ones(2)}, {"axis": -1}),
        ("negative axis", {"X": np.ones(2)}, {"dims": [0, -2]}),
    ):
        assert kind in KINDS
        assert edge_kinds(inputs, attrs) == {kind}
    assert edge_kinds({"X": np.ones(2), "Y": np.ones(2, "i4")}, {"axis": 0}) == set()
