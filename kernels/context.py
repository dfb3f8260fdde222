"""What the executor offers to kernels that ask for ``ctx``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

__all__ = ["Between", "Group", "Rpc", "RunContext", "World"]


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

    def checkpoint(
        self, endpoints: Sequence[str], folder: str, table: str, trainer_id: int
    ) -> None:
        """Have servers save their slices of a table, each in a file of its name."""
        ...

    def between(self, ctx: Any) -> Between | None:
        """What sends and receives of this run go through; None: straight to servers."""
        ...

    def close(self) -> None:
        """Tell every server that this trainer is done; may be called again."""
        ...


class Between(Protocol):
    """A communicator: it gathers what a trainer sends, and knows what to receive."""

    def send(
        self,
        names: Sequence[str],
        values: list[Any],
        attrs: Mapping[str, Any],
        received: Mapping[str, Any],
    ) -> None:
        """A `send` op: its variables, attributes, and what `recv` ops right before it
        got."""
        ...

    def receive(self, wanted: Sequence[tuple[str, str]], trainer_id: int) -> list[Any]:
        """Values of the (endpoint, name) `wanted`."""
        ...


class Group(Protocol):
    """A ring: ranks that run collective ops together, in the same order.

    Arrays are the place's; those given are left as they are, results are fresh.
    names tell in messages which variables these are. ClusterError: a rank is gone,
    late, or runs another op.
    """

    ring_id: int
    rank: int
    nranks: int

    def all_reduce(
        self, values: Sequence[Any], op: str, names: Sequence[str]
    ) -> list[Any]:
        """Each value combined over all ranks; op: "sum", "max", "min" or "prod".

        `SelectedRows` are summed by putting all ranks' rows one after the other.
        """
        ...

    def broadcast(self, value: Any, root: int, name: str) -> Any:
        """The root's `value`, on every rank; all have the same shape."""
        ...

    def all_gather(self, value: Any, name: str) -> Any:
        """All ranks' values along axis 0, in rank order; all of the same shape."""
        ...

    def reduce_scatter(self, value: Any, name: str) -> Any:
        """This rank's part, along axis 0, of the sum over all ranks."""
        ...

    def barrier(self) -> None:
        """Return when every rank has come here."""
        ...


class World(Protocol):
    """All ranks that this process can run collective ops with, and their rings."""

    def ring_key(self, name: str, rank: int, endpoints: Sequence[str]) -> Any:
        """What the ranks must agree on to open a ring (NCCL: its unique id)."""
        ...

    def open_ring(
        self, ring_id: int, rank: int, nranks: int, key: Any = None, inner: int = 0
    ) -> None:
        """Make a ring, together with all other ranks.

        inner: ranks per inner ring; reductions then run inside these, between their
        first ranks, and back. A ring that exists with the same facts stays.
        """
        ...

    def open_alone(self, ring_id: int) -> None:
        """A ring of this process alone."""
        ...

    def group(self, ring_id: int) -> Group:
        """An open ring; ClusterError where there is none."""
        ...

    def settle(self, ring_id: int | None) -> None:
        """Wait until the device has done a ring's ops (None: all that was asked)."""
        ...


class Files(Protocol):
    """Reads and writes variables in the files of saved models."""

    def save(
        self,
        path: str,
        names: Sequence[str],
        values: Sequence[Any],
        lod: Any,
        overwrite: bool,
        as_fp16: bool,
    ) -> None:
        """Write variables into one file. lod: of the first; None: as the scope has."""
        ...

    def load(
        self,
        source: str | bytes,
        names: Sequence[str],
        as_fp16: bool,
        part: tuple[int, tuple[int, ...]] | None,
    ) -> list[Any]:
        """The values that a file (or bytes) holds for these variables.

        part: only (from which element, which shape) of a single tensor.
        """
        ...


class RunContext(Protocol):
    """The world of one run, for kernels with effects or random numbers."""

    xp: Any
    scope: Any
    place: Any
    rpc: Rpc
    world: World

    def generator(self, seed: int = 0) -> Any:
        """A random generator (numpy's `Generator`, or CuPy's).

        seed 0: the program's own, which goes on from run to run. Any other: a
        fresh one, so that the op draws the same numbers in every run.
        """
        ...

    def host_generator(self, seed: int = 0) -> Any:
        """The same, always numpy's: for draws that devices do not offer."""
        ...

    def run_block(
        self,
        index: int,
        scope: Any = None,
        feed: Mapping[str, Any] | None = None,
        fetch: Sequence[str] = (),
    ) -> Sequence[Any]:
        """Run a sub-block of the program; returns the values of `fetch`.

        scope: home of the variables that the block declares (by default they come
        and go with the run). feed: values of variables by name. A fetched name that
        the block does not make gives None.
        """
        ...

    def step_scope(self, parent: Any = None) -> Any:
        """A new scope inside the current one, or inside `parent`."""
        ...

    def keeps(self, index: int) -> bool:
        """Whether a gradient block will look at what this sub-block computes."""
        ...

    def serve(self, names: list[str], attrs: dict[str, Any]) -> None:
        """Serve parameters (``listen_and_serv``) until all trainers are done.

        names: the variables that the gradients go to.
        """
        ...
