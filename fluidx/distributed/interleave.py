"""Clusters in one process whose order of events is chosen, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .inprocess import InProcessCluster

__all__ = ["ChosenCluster", "every_order"]


class _Chooser:
    """Stands in for the cluster's random generator: no delays, and a script of choices.

    Servers go first, so that a message is dealt with before the next trainer moves.
    Among several trainers that are training, the script says who is next.
    """

    def __init__(
        self,
        script: Sequence[int],
        training: Callable[[str], bool],
        turns: Mapping[str, int],
    ) -> None:
        self.script = list(script)
        self.widths: list[int] = []
        self.taken: Counter[str] = Counter()
        self._training = training
        self._turns = turns

    def uniform(self, low: float, high: float) -> float:
        return 0.0

    def choice(self, ready: Sequence[Any]) -> Any:
        free = [r for r in ready if not self._matters(r.name)]
        if free or len(ready) == 1:
            chosen = (free or ready)[0]
        else:
            at = len(self.widths)
            self.widths.append(len(ready))
            chosen = ready[self.script[at] if at < len(self.script) else 0]
        if self._training(chosen.name):
            self.taken[chosen.name] += 1
        return chosen

    def _matters(self, name: str) -> bool:
        """Whether it makes a difference when this role has its next turn."""
        if not self._training(name):
            return False
        # in its last turn a trainer takes the last answer, and sends nothing more
        return self.taken[name] < self._turns.get(name, 1 << 60) - 1


class ChosenCluster(InProcessCluster):
    """A cluster that follows a script.

    training: whether a role (by name) is a trainer between its first and last step:
    only then its order matters. turns: how many turns each takes there, as an earlier
    run told (`taken`). `widths`: how many roles each choice was among.
    """

    def __init__(
        self,
        script: Sequence[int],
        training: Callable[[str], bool],
        turns: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__()
        self._chooser = _Chooser(script, training, turns or {})
        self._random = self._chooser  # type: ignore[assignment]

    @property
    def widths(self) -> list[int]:
        return self._chooser.widths

    @property
    def taken(self) -> Mapping[str, int]:
        return self._chooser.taken


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
