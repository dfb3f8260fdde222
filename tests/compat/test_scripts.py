"""Whole 1.x scripts, unmodified, print what they print under the reference."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = ROOT / "examples" / "compat"
GOLDEN = ROOT / "tests" / "golden" / "compat"
RUNS = [line.split() for line in (GOLDEN / "RUNS").read_text().splitlines()]
NUMBER = r"-?\d+\.\d+"


def run(*arguments, cwd, **env):
    """Standard output of ``fluidx ...``; its errors are shown if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "fluidx", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", **env},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(text):
    return [float(n) for n in re.findall(NUMBER, text)]


@pytest.mark.parametrize("words", RUNS, ids=lambda words: words[0])
def test_prints_what_the_reference_prints(words, tmp_path):
    name, script, *arguments = words
    wanted = (GOLDEN / f"{name}.txt").read_text()
    came = run("run", SCRIPTS / script, *arguments, cwd=tmp_path)
    assert re.sub(NUMBER, "#", came) == re.sub(NUMBER, "#", wanted)
    # Adam divides by small gradients, so that rounding grows (in one of these runs)
    np.testing.assert_allclose(numbers(came), numbers(wanted), rtol=1e-4, atol=1e-6)


def test_every_script_has_a_recorded_run():
    assert {r[1] for r in RUNS} == {p.name for p in SCRIPTS.glob("*.py")}
    assert {r[0] for r in RUNS} == {p.stem for p in GOLDEN.glob("*.txt")}


@pytest.mark.cluster
def test_the_ctr_script_trains_as_a_fleet(tmp_path):
    launch = ("run", "-m", "fluidx", "launch", "--workers", "2", "--servers", "2")
    run(*launch, "--timeout", "90", SCRIPTS / "ctr.py", cwd=tmp_path)
    logs = [(tmp_path / "log" / f"trainer-{i}.log").read_text() for i in range(2)]
    assert logs[0].endswith("saved True\n")
    for log in logs:
        aucs = [float(a) for a in re.findall(r"auc ([\d.]+)", log)]
        assert len(aucs) == 3
        assert aucs[-1] > aucs[0]
