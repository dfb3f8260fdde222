"""Scripts as people wrote them for 1.x, unmodified, print what the reference printed.

tests/compat/wild/RUNS lists them: a name, a script and its arguments. They make their
own data and starting values, and use whatever such scripts use: argparse, six, modules
beside them, several programs, readers, checkpoints, schedules.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from fluidx.compat.check import check

HERE = Path(__file__).parent
WILD = HERE / "wild"
GOLDEN = HERE.parent / "golden" / "oracle" / "wild"
RUNS = [shlex.split(line) for line in (WILD / "RUNS").read_text().splitlines()]
#: scripts without a main()
FLAT = ("vae.py", "super_resolution.py", "autoencoder.py", "printing.py")
NUMBER = r"-?\d+\.\d*(?:e[+-]?\d+)?"

Runner = Callable[[Path, list[str]], int]


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    """Runs words behind ``fluidx run`` in a folder, gives the exit code."""
    command = [sys.executable, str(HERE / "wild_runner.py")]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "CPU_NUM": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(folder: Path, words: list[str]) -> int:
            process.stdin.write(json.dumps([str(folder), *words]) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield run
        process.stdin.close()
        assert process.wait(10) == 0


def shape_of(text: str) -> str:
    """What is printed, but numbers, and the room that arrays take for them."""
    return re.sub(r"\s+", " ", re.sub(NUMBER, "#", text))


def numbers(text: str) -> list[float]:
    return [float(n) for n in re.findall(NUMBER, text)]


@pytest.mark.parametrize("words", RUNS, ids=lambda words: words[0])
def test_prints_what_the_reference_printed(
    words: list[str], runner: Runner, tmp_path: Path
) -> None:
    name, script, *arguments = words
    code = runner(tmp_path, [str(WILD / script), *arguments])
    assert code == 0, (tmp_path / "stderr").read_text()
    came = (tmp_path / "stdout").read_text()
    wanted = (GOLDEN / f"{name}.txt").read_text()
    assert shape_of(came) == shape_of(wanted)
    # 2e-6: the last digit that they print
    np.testing.assert_allclose(numbers(came), numbers(wanted), rtol=1e-4, atol=2e-6)


def test_check_finds_nothing_missing_in_them() -> None:
    files = [p for p in WILD.rglob("*.py") if "later" not in p.parts]
    said = {str(p.relative_to(WILD)): check(p).missing for p in files}
    assert not {name: missing for name, missing in said.items() if missing}


def test_what_is_not_there_yet_is_named_by_check_and_by_the_run(
    runner: Runner, tmp_path: Path
) -> None:
    for script in (WILD / "later").glob("*.py"):
        names = [finding.name for finding in check(script).missing]
        assert names == ["fluid.layers.multi_box_head", "fluid.layers.ssd_loss"]
        assert runner(tmp_path, [str(script)]) == 1
        assert "no attribute 'multi_box_head'" in (tmp_path / "stderr").read_text()


def test_every_script_has_a_recorded_run() -> None:
    mains = {
        str(p.relative_to(WILD))
        for p in WILD.rglob("*.py")
        if "later" not in p.parts
        if "__main__" in p.read_text() or p.name in FLAT
    }
    assert {run[1] for run in RUNS} == mains
    assert {run[0] for run in RUNS} == {p.stem for p in GOLDEN.glob("*.txt")}
