"""Every test starts with fresh programs, names and scope, and leaves nothing behind."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

import fluidx.tensor.scope as scopes
from fluidx import ir
from fluidx.ir import names
from fluidx.kernels.threads import NAME

GRACE_S = 5.0


def _settled(leftover: Callable[[], list[str]]) -> list[str]:
    """What is left over once it had a moment to end."""
    deadline = time.monotonic() + GRACE_S
    found = leftover()
    while found and time.monotonic() < deadline:
        time.sleep(0.02)
        found = leftover()
    return found


@pytest.fixture(autouse=True)
def fresh_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fresh default programs, unique names, name scopes and global scope."""
    monkeypatch.setattr(names, "_used", [defaultdict(int)])
    monkeypatch.setattr(names, "_scopes", [])
    monkeypatch.setattr(scopes, "_root", scopes.Scope())
    with (
        ir.unique_name.guard(),
        ir.program_guard(ir.Program(), ir.Program()),
        scopes.scope_guard(scopes._root),
    ):
        yield


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Fail a test that leaves a thread running."""
    before = set(threading.enumerate())
    yield

    def leftover() -> list[str]:
        now = [t for t in threading.enumerate() if t not in before and t.is_alive()]
        # those of the kernels wait for more as long as the process lives
        kept = ("pytest_timeout", NAME)
        return [t.name for t in now if not t.name.startswith(kept)]

    if len(threading.enumerate()) > len(before):
        found = _settled(leftover)
        assert not found, f"the test left threads running: {found}"


def _sockets(process: psutil.Process) -> set[Any]:
    return {(c.fd, c.laddr, c.raddr) for c in process.net_connections()}


@pytest.fixture(autouse=True, scope="module")
def no_process_or_socket_left() -> Iterator[None]:
    """Fail a module that leaves a child process or a socket behind."""
    me = psutil.Process(os.getpid())
    children = {c.pid for c in me.children(recursive=True)}
    sockets = _sockets(me)
    yield

    def leftover() -> list[str]:
        found = []
        for child in me.children(recursive=True):
            try:
                line = " ".join(child.cmdline())
                dead = child.status() == psutil.STATUS_ZOMBIE
            except psutil.NoSuchProcess:
                continue
            # multiprocessing's own helper lives as long as this process
            if child.pid not in children and not dead and "resource_track" not in line:
                found.append(f"process {child.pid}: {line:.200}")
        return found + [f"socket {s}" for s in _sockets(me) - sockets]

    found = _settled(leftover)
    assert not found, "the tests of this module left behind: " + "; ".join(found)
