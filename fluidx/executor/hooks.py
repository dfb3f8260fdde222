"""Where `fluidx.distributed` plugs in: the executor must not import it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["rpc_factory", "serve", "world"]

#: makes the RPC client of an executor, at its first use, in the role's thread
rpc_factory: Callable[[], Any] | None = None

#: runs ``listen_and_serv``: fn(ctx, inputs, attrs)
serve: Callable[[Any, list[Any], dict[str, Any]], None] | None = None

#: the ranks that run collective ops with this process: fn(place)
world: Callable[[Any], Any] | None = None
