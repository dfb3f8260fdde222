"""`Executor.train_from_dataset` and `infer_from_dataset`: a pass over a dataset."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidx.ir import Variable
from fluidx.reader.threads import Ahead, Closed
from fluidx.tensor import Scope, global_scope

from .cuda import to_host

if TYPE_CHECKING:
    from .executor import Executor

__all__ = ["FetchHandler", "run_dataset"]

#: batches that are read while the program runs
CAPACITY = 8


class FetchHandler:
    """Watches variables during a pass (``fluid.executor.FetchHandler``).

    var_dict: key -> variable (or name) of the scope. `handler` is called every
    `period_secs` seconds, between two batches, and after the last one.
    """

    def __init__(
        self,
        var_dict: Mapping[str, Variable | str] | None = None,
        period_secs: float = 60,
    ) -> None:
        if var_dict is None:
            raise ValueError("FetchHandler: var_dict must name the variables")
        self.var_dict = dict(var_dict)
        self.period_secs = period_secs

    def handler(self, res_dict: dict[str, Any]) -> None:
        """To be overridden; res_dict: key -> array, None for what has no value."""
        for key, value in res_dict.items():
            if isinstance(value, np.ndarray):
                print(f"{key}[0]: {value.ravel()[0]} ")

    @staticmethod
    def help() -> None:
        """Print how to write one."""
        print(
            "class Watch(fluid.executor.FetchHandler):\n"
            "    def handler(self, res_dict):\n"
            "        print(res_dict['loss'])\n"
            "\n"
            "watch = Watch(var_dict={'loss': loss}, period_secs=10)\n"
            "exe.train_from_dataset(main, dataset, fetch_handler=watch)"
        )


class _Watch:
    """Calls a handler when it is time."""

    def __init__(self, handler: FetchHandler, scope: Scope) -> None:
        self._handler = handler
        self._scope = scope
        self._next = time.monotonic() + handler.period_secs

    def __call__(self, at_end: bool = False) -> None:
        if not at_end and time.monotonic() < self._next:
            return
        found: dict[str, Any] = {}
        for key, var in self._handler.var_dict.items():
            held = self._scope.find_var(var if isinstance(var, str) else var.name)
            value = None if held is None else held.value
            found[key] = None if value is None else np.array(to_host(value))
        self._handler.handler(found)
        self._next = time.monotonic() + self._handler.period_secs


def run_dataset(
    executor: Executor,
    program: Any,
    dataset: Any,
    scope: Scope | None,
    thread: int,
    debug: bool,
    fetch_list: Sequence[Any] | None,
    fetch_info: Sequence[str] | None,
    print_period: int,
    fetch_handler: FetchHandler | None,
) -> None:
    """Run a program once for each batch of a dataset.

    RuntimeError: no dataset. ValueError: fetch_info does not fit fetch_list.
    """
    if dataset is None:
        raise RuntimeError("train_from_dataset: a dataset is needed")
    fetches = list(fetch_list or ())
    names = [v if isinstance(v, str) else v.name for v in fetches]
    titles = list(fetch_info) if fetch_info else names
    if len(titles) != len(names):
        raise ValueError(
            f"fetch_info has {len(titles)} entries, fetch_list {len(names)}"
        )
    scope = scope or global_scope()
    watch = _Watch(fetch_handler, scope) if fetch_handler is not None else None
    batches = dataset._batches(threads=thread or None)
    feeds = _Ahead(lambda: batches)
    began, step = time.perf_counter(), 0
    try:
        for step, feed in enumerate(feeds, 1):
            shown = fetches if fetches and step % print_period == 0 else None
            got = executor.run(
                program, feed, shown, scope=scope, return_numpy=shown is None
            )
            if shown:
                parts = [f"{t}: {_brief(v)}" for t, v in zip(titles, got)]
                print(f"step {step}  {'  '.join(parts)}", flush=True)
            if watch is not None:
                watch()
    finally:
        feeds.close()
    if watch is not None:
        watch(at_end=True)
    if debug:
        whole = time.perf_counter() - began
        print(
            f"{step} batches in {whole:.3f} s; {feeds.waited:.3f} s of it were spent "
            "waiting for data",
            flush=True,
        )


def _brief(value: Any) -> str:
    return np.array2string(np.asarray(value), threshold=20, precision=6)


class _Ahead:
    """Batches read ahead; counts the seconds that the consumer waits."""

    def __init__(self, batches: Callable[[], Iterator[Any]]) -> None:
        self.waited = 0.0
        self._source = Ahead(batches, CAPACITY, "fluidx dataset")

    def __iter__(self) -> Iterator[Any]:
        while True:
            began = time.perf_counter()
            try:
                feed = self._source.take()
            except Closed:
                return
            finally:
                self.waited += time.perf_counter() - began
            yield feed

    def close(self) -> None:
        self._source.close()
