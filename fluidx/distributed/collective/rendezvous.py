"""How ranks without MPI agree on a few bytes: rank 0 hands them to the others.

Each other rank listens on its own endpoint; rank 0 connects to all of them, tries
again until they are there, and waits for their acknowledgement. NCCL's unique ids
travel so, as in the reference.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Sequence

from fluidx.distributed.errors import ClusterError, WaitTimeout

__all__ = ["share"]

_MAGIC = b"FLX1"
_HEAD = struct.Struct("<4sHI")
_LIMIT = 1 << 16
_PAUSE = 0.1


def share(
    name: str, value: bytes, rank: int, endpoints: Sequence[str], deadline: float
) -> bytes:
    """Rank 0's `value`, on every rank. name: what it is for; the same everywhere.

    WaitTimeout after `deadline` seconds says who did not come.
    """
    until = time.monotonic() + deadline
    if rank:
        return _take(name, rank, endpoints[rank], until, deadline)
    for other, endpoint in enumerate(endpoints[1:], 1):
        _give(name, value, other, endpoint, until, deadline)
    return value


def _address(endpoint: str) -> tuple[str, int]:
    host, _, port = endpoint.rpartition(":")
    if not host or not port.isdecimal():
        raise ClusterError(f"endpoint {endpoint!r}: HOST:PORT is expected")
    return host, int(port)


def _give(
    name: str, value: bytes, other: int, endpoint: str, until: float, deadline: float
) -> None:
    raw = name.encode()
    message = _HEAD.pack(_MAGIC, len(raw), len(value)) + raw + value
    while time.monotonic() < until:
        left = max(0.1, until - time.monotonic())
        with (
            contextlib.suppress(OSError),
            socket.create_connection(_address(endpoint), left) as line,
        ):
            line.sendall(message)
            if line.recv(1) == b"+":
                return
        time.sleep(_PAUSE)
    raise WaitTimeout(
        f"rank 0 waited {deadline:g} s for rank {other} at {endpoint}, to give it "
        f"{name}"
    )


def _take(name: str, rank: int, endpoint: str, until: float, deadline: float) -> bytes:
    host, port = _address(endpoint)
    try:
        server = socket.create_server((host, port))
    except OSError as error:
        raise ClusterError(
            f"rank {rank} cannot listen on {endpoint}: {error}"
        ) from None
    with server:
        while (left := until - time.monotonic()) > 0:
            server.settimeout(left)
            with contextlib.suppress(OSError):
                line, _ = server.accept()
                with line:
                    line.settimeout(max(0.1, until - time.monotonic()))
                    got = _read(line)
                    if got is not None and got[0] == name:
                        line.sendall(b"+")
                        return got[1]
                    line.sendall(b"-")  # of another ring: to be tried again
    raise WaitTimeout(
        f"rank {rank} at {endpoint} waited {deadline:g} s for {name} from rank 0"
    )


def _read(line: socket.socket) -> tuple[str, bytes] | None:
    """(name, value), or None for bytes that are no such message."""
    magic, names, size = _HEAD.unpack(_exactly(line, _HEAD.size))
    if magic != _MAGIC or size > _LIMIT:
        return None
    name = _exactly(line, names).decode(errors="replace")
    return name, _exactly(line, size)


def _exactly(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = line.recv(size - len(data))
        if not more:
            raise ConnectionError("the connection ended early")
        data += more
    return data
