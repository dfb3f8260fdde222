"""Every mode with parameter servers as real processes over ZeroMQ."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from distributed.linear import LR, batch, descend, gradients, initial

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "digits_async.py"
MODES = [
    *("pserver", "async", "async-split", "async-split+", "half-async", "half-async+"),
    *("completely-not-async", "dc-asgd", "geo"),
]
STEPS = 100  # as in mode_roles


def launch(*arguments, code=0, **env):
    """Run ``fluidx launch`` with two servers and workers to its end; its output."""
    command = [sys.executable, "-m", "fluidx", "launch", "--servers", "2"]
    command += ["--workers", "2", "--timeout", "110"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*command, "--log-dir", folder, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, **env},
        )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """Four processes that train in every mode, one after the other (+: with a
    Communicator)."""
    return launch(HERE / "mode_roles.py", tmp_path_factory.mktemp("meet"), *MODES)


def told(output, what, mode):
    pattern = rf"^trainer-\d +\| {what} {re.escape(mode)} (.*)$"
    return [
        [float(n) for n in line.split()] for line in re.findall(pattern, output, re.M)
    ]


@pytest.mark.parametrize("mode", MODES)
def test_it_learns(output, mode):
    losses = told(output, "loss", mode)
    assert len(losses) == 2
    assert max(first for first, _ in losses) > 5
    assert max(last for _, last in losses) < 0.9


@pytest.mark.parametrize("mode", ["pserver", "completely-not-async"])
def test_in_step_is_local_training_on_all_batches(output, mode):
    params = initial()
    for step in range(STEPS):
        both = [gradients(params, batch(t, step)) for t in range(2)]
        descend(params, {n: np.mean([g[n] for g in both], 0) for n in params}, LR)
    wanted = float(params["w"].astype("f8").sum())
    assert told(output, "w", mode) == [[pytest.approx(wanted, abs=1e-4)]] * 2


def test_a_killed_trainer_ends_the_others_and_their_threads(tmp_path):
    env = {"KILL_AT": "20", "STEPS": "1000000"}
    output = launch(HERE / "mode_roles.py", tmp_path, "async-split+", code=137, **env)
    for role in ("trainer-0", "pserver-0", "pserver-1"):
        assert re.search(rf"^{role} +\| .*ClusterError: .*trainer 1 died", output, re.M)


@pytest.mark.slow
def test_async_and_geo_reach_the_accuracy_of_sync():
    """Digits, two workers: within two points."""
    reached = {}
    for mode in ("sync", "async", "geo"):
        text = launch(EXAMPLE, "--mode", mode)
        found = [float(n) for n in re.findall(r"test accuracy ([\d.]+)", text)]
        assert len(found) == 2
        reached[mode] = min(found)
    assert reached["sync"] > 0.93
    assert reached["async"] > reached["sync"] - 0.02
    assert reached["geo"] > reached["sync"] - 0.02
