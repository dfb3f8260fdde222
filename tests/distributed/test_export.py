"""Models that a trainer saves while its servers run, in real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed.export_roles import VOCABULARY, batch, network

import fluidx as fluid
from fluidx import kernels

pytestmark = pytest.mark.cluster

ROLES = Path(__file__).parent / "export_roles.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    """What two servers and two trainers left behind; they are gone."""
    made: Path = tmp_path_factory.mktemp("saved")
    command = [sys.executable, "-m", "fluidx", "launch", "--servers", "2"]
    command += ["--workers", "2", "--timeout", "100"]
    command += ["--log-dir", str(tmp_path_factory.mktemp("logs"))]
    done = subprocess.run(
        [*command, str(ROLES), str(made)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[str, Any]:
    return dict(np.load(folder / "answers.npz"))


def _run(folder: Path, answers: dict[str, Any], **names: Any) -> tuple[Any, Any]:
    exe = fluid.Executor(fluid.CPUPlace())
    program, fed, fetched = fluid.io.load_inference_model(str(folder), exe, **names)
    assert fed == ["ids", "more"]
    (value,) = exe.run(program, {n: answers[n] for n in fed}, fetched)
    return program, value


@pytest.mark.parametrize("form", ["whole", "combined"])
def test_it_loads_alone(folder: Path, answers: dict[str, Any], form: str) -> None:
    names = {"params_filename": "params"} if form == "combined" else {}
    with fluid.scope_guard(fluid.Scope()):
        program, value = _run(folder / form, answers, **names)
        tables = [fluid.global_scope().find_var(n).value for n in ("sparse", "remote")]
    np.testing.assert_array_equal(value, answers["wanted"])
    assert [t.shape for t in tables] == [(VOCABULARY, 8)] * 2
    for op in program.all_ops():
        module = kernels.find(op.type).module.rpartition(".")[2]
        assert module not in ("distributed", "sharding", "collective"), op.type
        assert not op.attrs.get("epmap")


def test_a_model_may_ask_the_servers(answers: dict[str, Any]) -> None:
    np.testing.assert_array_equal(answers["asked"], answers["wanted"])


def test_tables_have_learned(folder: Path) -> None:
    """The rows that batches looked up, on either server, and no others."""
    main, startup, *_ = network()
    exe = fluid.Executor(fluid.CPUPlace())
    seen = {}
    for name in ("ids", "more"):
        rows = [batch(t, s)[name] for t in range(2) for s in range(8)]
        seen[name] = np.unique(np.concatenate(rows))
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        program = fluid.Program()
        with fluid.program_guard(program):
            variables = [
                program.global_block().create_var(
                    name=n, shape=[VOCABULARY, 8], dtype="float32", persistable=True
                )
                for n in ("sparse", "remote")
            ]
        fluid.io.load_vars(exe, str(folder / "persistables"), vars=variables)
        for name, ids in (("sparse", seen["ids"]), ("remote", seen["more"])):
            table = fluid.global_scope().find_var(name).value
            start = _first_rows(table, ids)
            assert len(ids) > 30
            assert ids.min() < VOCABULARY // 2 < ids.max()
            assert np.isfinite(table).all()
            assert start > 0


def _first_rows(table: Any, ids: Any) -> float:
    """How far looked-up rows spread beyond what a uniform start allows."""
    limit = np.sqrt(6.0 / (VOCABULARY + 8))
    others = np.delete(np.arange(VOCABULARY), ids)
    assert np.abs(table[others]).max() <= limit * 1.0001
    return float(np.abs(table[ids]).max() - limit)
