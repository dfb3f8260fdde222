"""Nothing may be left behind: sockets, threads, processes."""

from __future__ import annotations

import socket
import threading
import time

import psutil
import pytest
import zmq

from fluidx.kernels.threads import NAME as KERNELS

# pyzmq's own thread, which lets go of sent arrays, starts with the first such send
with zmq.Context() as _context, _context.socket(zmq.PAIR) as _socket:
    _socket.bind("inproc://warm")
    with _context.socket(zmq.PAIR) as _other:
        _other.connect("inproc://warm")
        _socket.send(bytes(1 << 20), copy=False)
        _other.recv()


def _state():
    me = psutil.Process()
    running = [t for t in threading.enumerate() if t.is_alive()]
    # those of the kernels stay for the process, as BLAS's do
    threads = {t for t in running if not t.name.startswith(KERNELS)}
    return threads, set(me.children(recursive=True)), _sockets(me)


def _sockets(process):
    found = set()
    for entry in process.net_connections(kind="all"):
        found.add(entry.fd)
    return found


@pytest.fixture(autouse=True)
def _nothing_left_behind():
    threads, children, sockets = _state()
    yield
    deadline = time.monotonic() + 3.0
    while True:
        now = _state()
        left = [now[0] - threads, now[1] - children, now[2] - sockets]
        if not any(left):
            return
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    pytest.fail(f"left behind: threads {left[0]}, children {left[1]}, fds {left[2]}")


@pytest.fixture
def ports():
    """Free ports of this machine, as endpoints: ports(2)."""

    def find(count):
        taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        found = ["{}:{}".format(*s.getsockname()) for s in taken]
        for s in taken:
            s.close()
        return found

    return find
