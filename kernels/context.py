"""What the executor offers to kernels that ask for ``ctx``."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["RunContext"]


class RunContext(Protocol):
    """The world of one run, for kernels with effects or random numbers."""

    xp: Any
    scope: Any
    place: Any
    rpc: Any

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

    def serve(self, xs: list[Any], attrs: dict[str, Any]) -> None:
        """Serve parameters (``listen_and_serv``) until all trainers are done."""
        ...
