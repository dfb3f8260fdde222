"""The half-async communicator, and the synchronous one, which does nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .queues import Queue
from .settings import Settings

__all__ = ["Batches", "Straight"]


class Batches:
    """Everything that was sent since the last exchange is merged, sent, and the
    parameters come back, while the trainer waits for its servers (and for no other
    trainer). Has no thread."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._queues: dict[tuple[str, ...], Queue] = {}
        self._client: Any = None

    def begin(self) -> None:
        """Nothing is to be made ready."""

    def serves(self, client: Any) -> bool:
        """Whether this client's ops come here."""
        return self._client is client

    def between(self, client: Any, ctx: Any) -> Batches:
        self._client = client
        return self

    def send(
        self,
        names: Sequence[str],
        values: list[Any],
        attrs: Mapping[str, Any],
        received: Mapping[str, Any],
    ) -> None:
        queue = self._queues.setdefault(tuple(names), Queue(names, attrs))
        queue.put(values)

    def receive(self, wanted: Sequence[tuple[str, str]], trainer_id: int) -> list[Any]:
        self._push()
        values: list[Any] = self._client.exchange([], wanted, trainer_id)
        return values

    def _push(self) -> None:
        for queue in self._queues.values():
            while queue.waiting:
                taken = queue.take(self.settings.max_merge_var_num)
                for endpoint, name, value in queue.pushed(taken, self.settings):
                    self._client.push(endpoint, name, value)

    def end(self) -> None:
        """Send what is left."""
        if self._client is not None and any(q.waiting for q in self._queues.values()):
            self._push()
            self._client.exchange([], [], self._client.trainer)


class Straight:
    """Synchronous programs exchange by their barriers: nothing stands in between."""

    def __init__(self) -> None:
        self._client: Any = None

    def begin(self) -> None:
        """Nothing is to be made ready."""

    def serves(self, client: Any) -> bool:
        """Whether this client's ops come by here."""
        return self._client is client

    def between(self, client: Any, ctx: Any) -> None:
        self._client = client

    def end(self) -> None:
        """Nothing is left."""
