"""Who gets which slice: dispatchers of variables over parameter servers.

Mirrors ``fluid.transpiler.ps_dispatcher``. A dispatcher of your own is a class with
``__init__(pserver_endpoints)`` and ``dispatch(varlist)``; it must decide by the
variables alone, so that every role decides alike.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

__all__ = ["PSDispatcher", "HashName", "RoundRobin"]


class PSDispatcher:
    """Base class: holds the endpoints."""

    def __init__(self, pserver_endpoints: Sequence[str]) -> None:
        self._eps = list(pserver_endpoints)
        self._step = 0

    @property
    def eps(self) -> list[str]:
        """All endpoints."""
        return self._eps

    def reset(self) -> None:
        """Begin anew with the first endpoint."""
        self._step = 0

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """The endpoint of each variable (objects with ``name`` and ``shape``)."""
        raise NotImplementedError("a dispatcher must define dispatch(varlist)")


class HashName(PSDispatcher):
    """By a checksum (CRC-32) of the variable's name: the same in every process.

    >>> class Var: name = "fc_0.w_0@GRAD.block1"
    >>> HashName(["a:1", "b:2"]).dispatch([Var, Var])
    ['b:2', 'b:2']
    """

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """One endpoint per variable; equal names, equal endpoints."""
        return [
            self._eps[zlib.crc32(var.name.encode()) % len(self._eps)] for var in varlist
        ]


class RoundRobin(PSDispatcher):
    """One after the other, going on where the last call stopped.

    >>> robin = RoundRobin(["a:1", "b:2"])
    >>> robin.dispatch([0, 1, 2]), robin.dispatch([3])
    (['a:1', 'b:2', 'a:1'], ['b:2'])
    """

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """One endpoint per variable, in turn."""
        found = []
        for _ in varlist:
            found.append(self._eps[self._step % len(self._eps)])
            self._step += 1
        return found
