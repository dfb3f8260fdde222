"""Collective modes over MPI: real ranks, started by the launcher and by mpiexec."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from distributed import collective_toy as toy

pytestmark = pytest.mark.cluster
pytest.importorskip("mpi4py", reason="needs the extra mpi")

RANKS = str(Path(__file__).with_name("ranks.py"))
MPIEXEC = str(Path(sys.executable).with_name("mpiexec"))
MODES = "grad_allreduce,local_sgd,nccl2"


@contextlib.contextmanager
def started(*command, **env):
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **env},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def launch(tmp_path, ranks, *arguments, **env):
    """``fluidx launch --collective`` to its end: (exit code, output)."""
    with started(
        sys.executable, "-m", "fluidx", "launch", "--collective",
        "--workers", str(ranks), "--log-dir", str(tmp_path / "log"), "--grace", "3",
        RANKS, str(tmp_path), *arguments, **env,
    ) as process:  # fmt: skip
        output, _ = process.communicate(timeout=100)
        return process.returncode, output


def check(tmp_path, ranks, modes):
    every = [np.load(tmp_path / f"rank-{r}.npz") for r in range(ranks)]
    for mode in modes.split(","):
        wanted = toy.expected(mode.partition("/")[0], ranks)
        for name, value in wanted.items():
            key = f"{mode}:{name}"
            for got in every:
                np.testing.assert_allclose(got[key], value, rtol=2e-5, atol=2e-6)
                np.testing.assert_array_equal(got[key], every[0][key])


@pytest.mark.parametrize("ranks", [2, 3])
def test_training_equals_its_definition(tmp_path, ranks):
    code, output = launch(tmp_path, ranks, MODES)
    assert code == 0, output
    check(tmp_path, ranks, MODES)
    for rank in range(ranks):
        assert f"trainer-{rank} | ops are right 5" in output
        log = (tmp_path / "log" / f"trainer-{rank}.log").read_text()
        assert log == "ops are right 5\n"


def test_mpiexec_alone_and_hierarchical_rings(tmp_path):
    with started(
        MPIEXEC, "-n", "4", sys.executable, RANKS, str(tmp_path), "nccl2/2"
    ) as process:
        output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    check(tmp_path, 4, "nccl2/2")


#: fault of rank 1 -> (exit code, what is said)
FAULTS = {
    "import": (4, ""),
    "kill": (128 + signal.SIGKILL, ""),
    "raise": (1, "ValueError: bad batch"),
    "exit": (5, ""),
    "end": (1, ": rank 1 has ended after "),
    "order": (1, "ClusterError: the ranks run different collectives"),
    "freeze": (1, "waited for 1 s. rank 1 has done collective"),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_one_rank_s_failure_ends_all(tmp_path, fault):
    begun = time.monotonic()
    code, output = launch(
        tmp_path, 2, "grad_allreduce", fault, FLAGS_rpc_deadline="1000"
    )
    wanted, said = FAULTS[fault]
    # hydra tells a signal by its bare number
    assert code in (wanted, wanted - 128), output
    assert said in output
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_launcher_ends(tmp_path, number):
    with started(
        sys.executable, "-m", "fluidx", "launch", "--collective", "--workers", "2",
        "--log-dir", str(tmp_path / "log"),
        RANKS, str(tmp_path), "grad_allreduce", "freeze",
    ) as process:  # fmt: skip
        me = psutil.Process(process.pid)
        deadline = time.monotonic() + 40

        def frozen():
            found = me.children(recursive=True)
            return any(
                p.status() == psutil.STATUS_STOPPED
                for p in found
                if p.is_running() and p.name().startswith("python")
            )

        while not frozen():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        children = me.children(recursive=True)
        process.send_signal(number)
        process.communicate(timeout=30)
        _, alive = psutil.wait_procs(children, timeout=10)
        assert not alive


def test_the_reference_s_launcher(tmp_path):
    script = tmp_path / "show.py"
    script.write_text(
        "import os\n"
        "print(*(os.environ.get(n) for n in ('PADDLE_TRAINER_ID', "
        "'PADDLE_CURRENT_ENDPOINT', 'PADDLE_TRAINERS_NUM', "
        "'PADDLE_TRAINER_ENDPOINTS')))\n"
    )
    with started(
        sys.executable, "-m", "fluidx.distributed.launch", "--selected_gpus=0,1",
        "--started_port=7001", "--log_dir", str(tmp_path / "log"), str(script),
    ) as process:  # fmt: skip
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    ends = ["127.0.0.1:7001", "127.0.0.1:7002"]
    for rank in range(2):
        log = (tmp_path / "log" / f"workerlog.{rank}").read_text()
        assert log == f"{rank} {ends[rank]} 2 {','.join(ends)}\n"
