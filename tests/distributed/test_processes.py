"""Clusters of real processes over ZeroMQ, started by the launcher."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from distributed import toy

pytestmark = pytest.mark.cluster

ROLES = str(Path(__file__).with_name("roles.py"))
NAMES = ["w", "b", "v"]


@contextlib.contextmanager
def started(*arguments, **env):
    """A launcher as a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
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


def launch(tmp_path, servers, steps, *more, options=(), **env):
    """Run ``fluidx launch`` to its end: (exit code, output)."""
    counts = ",".join(map(str, steps))
    with started(
        "fluidx", "launch",
        "--workers", str(len(steps)), "--servers", str(servers),
        "--log-dir", str(tmp_path / "log"), *options, ROLES, counts, *more,
        **env,
    ) as process:  # fmt: skip
        output, _ = process.communicate(timeout=60)
        return process.returncode, output


def roles_left(process):
    """Living descendants, to be asked for before the launcher ends."""
    return psutil.Process(process.pid).children(recursive=True)


def results(output):
    """role -> parameter -> sum, from what the trainers printed."""
    found = {}
    for role, name, value in re.findall(
        r"^(\S+) +\| result (\S+) (\S+)$", output, re.M
    ):
        found.setdefault(role, {})[name] = float(value)
    return found


def check_results(output, steps):
    got = results(output)
    assert len(got) == len(steps)
    best = steps.index(max(steps))
    for name, value in toy.expected(NAMES, steps).items():
        wanted = float(value.astype("f8").sum())
        assert got[f"trainer-{best}"][name] == pytest.approx(wanted, abs=1e-3)


def test_sync_and_a_trainer_that_comes_late(tmp_path):
    code, output = launch(tmp_path, 3, [5] * 3, LATE="trainer-1")
    assert code == 0, output
    check_results(output, [5] * 3)


def test_uneven_data_logs_and_a_server_that_comes_late(tmp_path):
    code, output = launch(tmp_path, 2, [6, 2], LATE="pserver-0")
    assert code == 0, output
    check_results(output, [6, 2])
    logs = sorted(p.name for p in (tmp_path / "log").iterdir())
    assert logs == ["pserver-0.log", "pserver-1.log", "trainer-0.log", "trainer-1.log"]
    assert (tmp_path / "log" / "pserver-0.log").read_text() == "served\n"
    assert "result w" in (tmp_path / "log" / "trainer-0.log").read_text()


@pytest.mark.parametrize("mode", ["0", "2"])
def test_small_chunks_over_tcp(tmp_path, mode):
    """Synchronous and asynchronous: for one trainer it is the same."""
    small = {"FLUIDX_CHUNK_BYTES": "10000", "FLUIDX_UNIX_SOCKETS": "never"}
    code, output = launch(tmp_path, 1, [3], mode, **small)
    assert code == 0, output
    check_results(output, [3])


DEAD = {
    "trainer-0": "trainer 0 died",
    "trainer-1": "trainer 1 died",
    "pserver-0": r"pserver 127\.0\.0\.1:\d+ died",
    "pserver-1": r"pserver 127\.0\.0\.1:\d+ died",
}


@pytest.mark.parametrize("victim", ["trainer-0", "pserver-1"])
def test_a_killed_role_ends_all_others_naming_it(tmp_path, victim):
    begun = time.monotonic()
    code, output = launch(tmp_path, 2, [9999, 9999], "0", "kill", FAULTY=victim)
    assert code == 128 + signal.SIGKILL, output
    assert f"{victim} failed: ended by SIGKILL" in output
    for role in DEAD:
        if role != victim:
            log = (tmp_path / "log" / f"{role}.log").read_text()
            assert re.search(
                f"ClusterError.*{DEAD[victim]}|PeerLost.*{DEAD[victim]}", log
            )
    assert time.monotonic() - begun < 20


def test_the_first_failure_gives_the_exit_code(tmp_path):
    code, output = launch(tmp_path, 1, [50, 50], "0", "exit", FAULTY="trainer-1")
    assert code == 5, output
    assert "trainer-1 failed: exit code 5" in output
    assert "trainer 1 died or ended without exe.close()" in output


def test_a_frozen_role_is_given_up_after_the_deadline(tmp_path):
    code, output = launch(
        tmp_path, 1, [50, 50], "0", "freeze",
        options=["--grace", "1"], FAULTY="trainer-1", FLAGS_rpc_deadline="1500",
    )  # fmt: skip
    assert code == 1, output
    assert re.search(r"(gradients|nothing) of trainer 1", output)


def test_the_time_limit(tmp_path):
    code, output = launch(
        tmp_path, 1, [50, 50], "0", "freeze",
        options=["--timeout", "2"], FAULTY="trainer-1",
    )  # fmt: skip
    assert code == 124, output
    assert "not done after 2 s" in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_launcher_ends(tmp_path, number):
    with started(
        "fluidx", "launch", "--log-dir", str(tmp_path), ROLES, "999999,999999"
    ) as process:
        deadline = time.monotonic() + 30
        while len(roles_left(process)) < 4 or not (tmp_path / "trainer-1.log").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        children = roles_left(process)
        time.sleep(0.5)
        process.send_signal(number)
        process.communicate(timeout=30)
        expected = 128 + number if number != signal.SIGKILL else -number
        assert process.returncode == expected
        _, alive = psutil.wait_procs(children, timeout=10)
        assert not alive


def test_launch_ps_has_the_reference_s_flags(tmp_path, ports):
    endpoints = ",".join(ports(2))
    with started(
        "fluidx.distributed.launch_ps", "--worker_num=2", "--server_num", "2",
        "--endpoints", endpoints, "--log_dir", str(tmp_path), "--print_config=False",
        ROLES, "4,4",
    ) as process:  # fmt: skip
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    check_results(output, [4, 4])
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "serverlog.0", "serverlog.1", "workerlog.0", "workerlog.1",
    ]  # fmt: skip


def test_launch_ps_start_port(tmp_path):
    script = tmp_path / "show.py"
    script.write_text(
        "import os\n"
        "print(*(os.environ.get(n) for n in ('TRAINING_ROLE', 'PADDLE_PORT', "
        "'PADDLE_TRAINER_ID', 'PADDLE_PSERVERS_IP_PORT_LIST', 'POD_IP')))\n"
    )
    with started(
        "fluidx.distributed.launch_ps", "--worker_num=1", "--server_num=2",
        "--start_port=7001", "--log_dir", str(tmp_path / "log"), str(script),
    ) as process:  # fmt: skip
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    eps = "127.0.0.1:7001,127.0.0.1:7002"
    logs = {p.name: p.read_text() for p in (tmp_path / "log").iterdir()}
    assert logs["serverlog.1"] == f"PSERVER 7002 None {eps} 127.0.0.1\n"
    assert logs["workerlog.0"].startswith("TRAINER ")
    assert logs["workerlog.0"].endswith(f" 0 {eps} 127.0.0.1\n")
