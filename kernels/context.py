"""What the executor offers to kernels that ask for ``ctx``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["Ring", "Rpc", "RunContext"]


class Rpc(Protocol):
    """A trainer's line to its parameter servers. Values are numpy's."""

    def register(self, endpoints: Sequence[str], trainer_id: int) -> None:
        """Say that this trainer takes part on these servers."""
        ...

    def push(self, endpoint: str, name: str, value: Any) -> None:
        """Give a server a gradient. It travels with the next exchange at the latest,
        and must not be changed until that has returned."""
        ...

    def exchange(
        self,
        barriers: Sequence[str],
        wanted: Sequence[tuple[str, str]],
        trainer_id: int,
    ) -> list[Any]:
        """Send what was pushed, end the round on the servers `barriers`, and return
        the values of the (endpoint, name) `wanted`: one round trip per server."""
        ...

    def lookup(
        self, requests: Sequence[tuple[str, str, Any]], trainer_id: int
    ) -> list[Any]:
        """Rows of tables: (endpoint, table, row numbers) each gives an array."""
        ...

    def close(self) -> None:
        """Tell every server that this trainer is done; may be called again."""
        ...


class Ring(Protocol):
    """A group of ranks that run collective ops together."""

    def allreduce(self, x: Any, op: str) -> Any:
        """`x` combined over all ranks (op: "sum")."""
        ...

    def broadcast(self, x: Any, root: int) -> Any:
        """The root's `x`, on every rank."""
        ...


class RunContext(Protocol):
    """The world of one run, for kernels with effects or random numbers."""

    xp: Any
    scope: Any
    place: Any
    rpc: Rpc
    collective: Callable[[int], Ring | None] | None

    def generator(self, seed: int = 0) -> Any:
        """A random generator (numpy's `Generator`, or CuPy's).

        seed 0: the program's own, which goes on from run to run. Any other: a
        fresh one, so that the op draws the same numbers in every run.
        """
        ...

    def host_generator(self, seed: int = 0) -> Any:
        """The same, always numpy's: for draws that devices do not offer."""
        ...

    def run_block(self, index: int) -> None:
        """Run a sub-block of the program on the current scope."""
        ...

    def serve(self, names: list[str], attrs: dict[str, Any]) -> None:
        """Serve parameters (``listen_and_serv``) until all trainers are done.

        names: the variables that the gradients go to.
        """
        ...
