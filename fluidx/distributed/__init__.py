"""The runtime of a cluster: parameter servers, their trainers, and how they talk.

Importing it gives the executor its RPC client and ``listen_and_serv``; the transport
itself (pyzmq) is loaded when a program first sends or serves.
"""

from __future__ import annotations

import os
from typing import Any

from fluidx.executor import hooks
from fluidx.transpiler import _LATER

from .collective.environment import adopt as _adopt
from .errors import ClusterError, PeerLost, WaitTimeout, WireError

__all__ = ["ClusterError", "PeerLost", "WaitTimeout", "WireError", "stats"]


def stats() -> dict[str, Any]:
    """What this role has sent and received so far.

    ``sent_bytes``, ``received_bytes``, ``sent_messages``, ``received_messages``, and
    ``peers``: peer -> "sent" | "received" -> kind of message -> messages and bytes.
    """
    from .counting import counters

    return counters().as_dict()


def _rpc_factory() -> Any:
    from .client import Client

    return Client()


def _serve(ctx: Any, names: list[Any], attrs: dict[str, Any]) -> None:
    from .server import serve

    serve(ctx, names, attrs)


def _world(place: Any) -> Any:
    from .collective import world

    return world(place)


def _equivalent() -> Any:
    from .equivalent import equivalent

    return equivalent


_LATER["equivalent"] = _equivalent
hooks.world = _world
hooks.rpc_factory = _rpc_factory
hooks.serve = _serve

# under a bare mpiexec, scripts find their rank where the reference's launcher puts it
_adopt(os.environ)
