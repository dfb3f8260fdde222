"""The checks in conftest.py: they see what a test leaves behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LEAKS = {
    "thread": (
        "import threading\n_stop = threading.Event()\n"
        "def test_leak():\n"
        "    threading.Thread(target=_stop.wait, name='stray', daemon=True).start()",
        "the test left threads running: ['stray']",
    ),
    "socket": (
        "import socket\n_kept = []\n"
        "def test_leak():\n"
        "    _kept.append(socket.create_server(('127.0.0.1', 0)))",
        "left behind: socket",
    ),
    "process": (
        "import subprocess, sys\n_kept = []\n"
        "def test_leak():\n"
        "    code = 'import time; time.sleep(3)'\n"
        "    _kept.append(subprocess.Popen([sys.executable, '-c', code]))\n"
        "def teardown_module():\n    pass",
        "left behind: process",
    ),
    "nothing": ("def test_leak():\n    pass", "1 passed"),
}


@pytest.mark.parametrize("what", LEAKS)
def test_leaks_are_seen(what, tmp_path):
    source, expected = LEAKS[what]
    file = tmp_path / "test_leak.py"
    file.write_text(f"import conftest\nconftest.GRACE_S = 0.2\n{source}\n")
    # an ini file of its own, so that warnings about the leak are no errors
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = ignore\n")
    plugins = ["-p", "conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-q", str(file)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert expected in done.stdout, done.stdout
    assert (done.returncode == 0) == (what == "nothing")
