"""`threading.Condition` for roles of which only one runs at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["TurnCondition"]

_NEVER = float("inf")


class TurnCondition:
    """A re-entrant lock to wait on: who cannot go on gives the baton away.

    cluster: the `InProcessCluster`. here: which of its threads is running.
    """

    def __init__(self, cluster: Any, here: Callable[[], Any]) -> None:
        self._cluster = cluster
        self._here = here
        self._owner: Any = None
        self._depth = 0
        self._blocked: list[Any] = []
        self._waiting: list[Any] = []

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock; False (only if not blocking): another thread has it."""
        me = self._here()
        while self._owner not in (None, me):
            if not blocking:
                return False
            self._blocked.append(me)
            self._cluster.wait(me, _NEVER)
        self._owner = me
        self._depth += 1
        return True

    def release(self) -> None:
        """Give it back. A thread that was crashed while it waited has nothing to."""
        if self._owner is not self._here():
            return
        self._depth -= 1
        if not self._depth:
            self._let_go()

    def _let_go(self) -> None:
        self._owner, self._depth = None, 0
        self._wake(self._blocked)

    def _wake(self, roles: list[Any]) -> None:
        for role in roles:
            role.wake = self._cluster._now
        roles.clear()

    def __enter__(self) -> TurnCondition:
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    def wait(self, timeout: float | None = None) -> None:
        """Let others have the lock until `notify_all`, or so many seconds long."""
        me, depth = self._here(), self._depth
        until = _NEVER if timeout is None else self._cluster._now + max(0.0, timeout)
        self._let_go()
        self._waiting.append(me)
        self._cluster.wait(me, until)
        if me in self._waiting:
            self._waiting.remove(me)
        self.acquire()
        self._depth = depth

    def notify_all(self) -> None:
        """Wake all that wait."""
        self._wake(self._waiting)
