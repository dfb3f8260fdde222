"""The async communicator: threads that merge, send and receive while training goes on.

`send` puts a copy of a gradient into its queue and returns; it waits only while the
queue is full. The sending thread takes what waits, merges it and sends it. `recv` gives
the parameters that came last, without waiting, so that they change between steps and
never within one; only the first `recv` of a parameter asks the server itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fluidx.distributed.config import RpcConfig
from fluidx.distributed.errors import ClusterError, WaitTimeout
from fluidx.distributed.transport import network

from .queues import Queue
from .settings import Settings

__all__ = ["Background"]

_PAUSE = 0.01  # of send_wait_times
Taken = list[tuple[Queue, list[list[Any]]]]


class Background:
    """See the module. Every wait for a server is the client's, bounded and named; a
    failure in a thread is raised at the trainer's next send, receive or stop."""

    def __init__(self, settings: Settings, config: RpcConfig | None = None) -> None:
        self.settings = settings
        self.config = config or RpcConfig.from_env()
        self._queues: dict[tuple[str, ...], Queue] = {}
        self._latest: dict[tuple[str, str], Any] = {}
        self._client: Any = None

    # ------------------------------------------------ what the role calls

    def begin(self) -> None:
        """Start the threads."""
        self._ending = self._drained = False
        self._failure: BaseException | None = None
        # gradients sent since the last receive, and messages nobody answered
        self._sent = self._unanswered = 0
        self._latest.clear()
        self._network = network()
        self._lock = self._network.condition()
        bodies = {"send": self._sending}
        if self.settings.independent_recv_thread:
            bodies["recv"] = self._receiving
        self._workers = {
            name: self._network.spawn(f"communicator-{name}", self._guard(body))
            for name, body in bodies.items()
        }

    def serves(self, client: Any) -> bool:
        """Whether this client's ops come here."""
        return self._client is client

    def between(self, client: Any, ctx: Any) -> Background:
        with self._lock:
            if self._client is None:
                self._client = client
            elif self._client is not client:
                raise ClusterError("a Communicator works for one Executor")
        return self

    def send(
        self,
        names: Sequence[str],
        values: list[Any],
        attrs: Mapping[str, Any],
        received: Mapping[str, Any],
    ) -> None:
        with self._lock:
            self._check()
            queue = self._queues.setdefault(tuple(names), Queue(names, attrs))
            self._until(
                lambda: len(queue.waiting) < self.settings.send_queue_size,
                lambda: (
                    f"room in the send queue of {', '.join(names)}, in which "
                    f"{len(queue.waiting)} gradients for pserver "
                    f"{', '.join(dict.fromkeys(attrs['epmap']))} wait"
                ),
            )
            queue.put(values)
            self._lock.notify_all()

    def receive(self, wanted: Sequence[tuple[str, str]], trainer_id: int) -> list[Any]:
        with self._lock:
            self._check()
            missing = [w for w in wanted if w not in self._latest]
        if missing:
            first = self._client.exchange([], missing, trainer_id)
            with self._lock:
                self._latest.update(zip(missing, first))
                self._lock.notify_all()
        with self._lock:
            return [self._latest[w] for w in wanted]

    def end(self) -> None:
        """Send what waits, then end the threads."""
        with self._lock:
            self._ending = True
            self._lock.notify_all()
        for name, worker in self._workers.items():
            if not worker.join(self.config.deadline):
                raise WaitTimeout(self._waited(f"its communicator's {name} thread"))
        self._check()

    # ------------------------------------------------ waiting

    def _check(self) -> None:
        if self._failure is not None:
            kind = type(self._failure)
            text = f"communicator: {self._failure}"
            raise (kind if issubclass(kind, ClusterError) else ClusterError)(
                text
            ) from self._failure

    def _waited(self, what: str) -> str:
        number = "" if self._client is None else f" {self._client.trainer}"
        return f"trainer{number} waited {self.config.deadline:g} s for {what}"

    def _until(self, ready: Callable[[], bool], what: Callable[[], str]) -> None:
        bound = self._network.now() + self.config.deadline
        while not ready():
            left = bound - self._network.now()
            if left <= 0:
                raise WaitTimeout(self._waited(what()))
            self._lock.wait(left)
            self._check()

    # ------------------------------------------------ the threads

    def _guard(self, body: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                body()
            except Exception as error:
                with self._lock:
                    self._failure = self._failure or error
                    self._ending = self._drained = True
                    self._lock.notify_all()

        return run

    def _sending(self) -> None:
        while True:
            taken = self._take()
            if not taken:
                break
            count = 0
            for queue, steps in taken:
                count += len(steps) * len(queue.names)
                for endpoint, name, value in queue.pushed(steps, self.settings):
                    self._client.push(endpoint, name, value)
            if self.settings.independent_recv_thread:
                self._client.flush()
                with self._lock:
                    self._sent += count
                    self._unanswered += 1
                    self._lock.notify_all()
            else:
                self._refresh()
        with self._lock:
            self._drained = True
            self._lock.notify_all()

    def _take(self) -> Taken:
        """Wait for something to send; nothing: the end has come."""
        settings = self.settings
        queues = self._queues
        with self._lock:
            while not any(q.waiting for q in queues.values()) or self._ahead():
                if self._ending and not any(q.waiting for q in queues.values()):
                    return []
                if self._failure is not None:
                    return []
                self._lock.wait()
            # a little time for more of the same to merge with
            until = self._network.now() + settings.send_wait_times * _PAUSE
            while not self._ending and self._network.now() < until:
                longest = max(len(q.waiting) for q in queues.values())
                if longest >= min(settings.max_merge_var_num, settings.send_queue_size):
                    break
                self._lock.wait(until - self._network.now())
            taken = [
                (queue, queue.take(settings.max_merge_var_num))
                for queue in queues.values()
                if queue.waiting
            ]
            self._lock.notify_all()
        return taken

    def _ahead(self) -> bool:
        """Too many messages without an answer: the servers do not keep up."""
        return (
            self.settings.independent_recv_thread
            and bool(self._latest)
            and self._unanswered >= self.settings.send_queue_size
        )

    def _receiving(self) -> None:
        while True:
            with self._lock:
                while not self._due():
                    if self._drained:
                        return
                    self._lock.wait()
                self._sent = self._unanswered = 0
            self._refresh()

    def _due(self) -> bool:
        enough = self._sent >= self.settings.min_send_grad_num_before_recv
        asked = bool(self._latest) and self._failure is None
        return asked and (enough or self._ahead())

    def _refresh(self) -> None:
        """Receive every parameter that the trainer's program receives."""
        with self._lock:
            wanted = list(self._latest)
        values = self._client.exchange([], wanted, self._client.trainer)
        with self._lock:
            self._latest.update(zip(wanted, values))
            self._lock.notify_all()
