"""Clusters in one process whose order of events is chosen, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .inprocess import InProcessCluster

__all__ = ["ChosenCluster", "every_order"]


class _Chooser:
    """Stands in for the cluster's random generator: no delays, and a script of choices.

    Servers go first, so that a message is dealt with before the next trainer moves.
    Among several trainers that are training, the script says who is next.
    """

    def __init__(self, script: Sequence[int], training: Callable[[str], bool]) -> None:
        self.script = list(script)
        self.widths: list[int] = []
        self._training = training

    def uniform(self, low: float, high: float) -> float:
        return 0.0

    def choice(self, ready: Sequence[Any]) -> Any:
        free = [r for r in ready if not self._training(r.name)]
        if free or len(ready) == 1:
            return (free or ready)[0]
        at = len(self.widths)
        self.widths.append(len(ready))
        return ready[self.script[at] if at < len(self.script) else 0]


class ChosenCluster(InProcessCluster):
    """A cluster that follows a script.

    training: whether a role (by name) is a trainer between its first and last step:
    only then its order matters. `widths`: how many roles each choice was among.
    """

    def __init__(self, script: Sequence[int], training: Callable[[str], bool]) -> None:
        super().__init__()
        self._chooser = _Chooser(script, training)
        self._random = self._chooser  # type: ignore[assignment]

    @property
    def widths(self) -> list[int]:
        return self._chooser.widths


def every_order(
    run: Callable[[Sequence[int]], Sequence[int]], limit: int
) -> Iterator[int]:
    """Run every script of choices, depth first; yields how many so far.

    run: takes a script and returns the widths it met. Stops behind `limit` runs: the
    caller sees that by the count.
    """
    script: list[int] = []
    for count in range(1, limit + 1):
        widths = run(script)
        yield count
        script += [0] * (len(widths) - len(script))
        while script and script[-1] + 1 >= widths[len(script) - 1]:
            script.pop()
        if not script:
            return
        script[-1] += 1
    yield limit + 1
