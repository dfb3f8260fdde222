"""The fleet over PSLib servers: not here, and it says so when it is used.

In the reference these servers (Downpour) are a library that is not open source; its
public builds cannot run them either. What trains with sparse tables on servers here is
``fleet.parameter_server.distribute_transpiler``, with ``embedding(is_sparse=True)``.
"""

from __future__ import annotations

from typing import Any

from fluidx.incubate.fleet.base.fleet_base import DistributedOptimizer, Fleet, Mode

__all__ = ["DownpourOptimizer", "PSLib", "fleet", "fleet_embedding"]

_INSTEAD = (
    "the PSLib servers are not open source and not part of fluidx; use "
    "fluid.incubate.fleet.parameter_server.distribute_transpiler (same Fleet API), "
    "with embedding(is_sparse=True) for tables on servers"
)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"fleet.parameter_server.pslib has no {name!r}: {_INSTEAD}")


def _refuse(what: str) -> NotImplementedError:
    return NotImplementedError(f"pslib {what}: {_INSTEAD}")


class PSLib(Fleet):
    """NotImplementedError at `init` and at every other use says what to use."""

    def __init__(self) -> None:
        super().__init__(Mode.PSLIB)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"PSLib has no {name!r}: {_INSTEAD}")

    def init(self, role_maker: Any = None) -> None:
        raise _refuse("fleet.init")

    def _not_here(self, what: str) -> NotImplementedError:
        return _refuse(f"fleet.{what}")


class DownpourOptimizer(DistributedOptimizer):
    """NotImplementedError."""

    def __init__(self, optimizer: Any, strategy: Any = None) -> None:
        raise _refuse("DownpourOptimizer")


class fleet_embedding:
    """NotImplementedError."""

    def __init__(self, click_name: str, scale_sparse_grad: bool = True) -> None:
        raise _refuse("fleet_embedding")


fleet = PSLib()
"""Refuses to work; see the module."""
