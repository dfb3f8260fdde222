"""Wrong arguments of loaders, feeders, readers and datasets: what is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fluidx as fluid
from fluidx.reader.decorators import batch, shuffle

Case = tuple[Callable[[], Any], type[Exception], str]
Loader = fluid.io.DataLoader


def _x() -> Any:
    return fluid.data("x", [None, 2])


def _dataset() -> Any:
    return fluid.DatasetFactory().create_dataset("QueueDataset")


CASES: dict[str, Case] = {
    "feed_list": (
        lambda: Loader.from_generator(_x(), capacity=2),
        TypeError,
        "DataLoader: feed_list must be a list of Variables, got <data x",
    ),
    "capacity": (
        lambda: Loader.from_generator([_x()], capacity=-1),
        ValueError,
        "DataLoader: capacity must be positive, got -1",
    ),
    "batch": (
        lambda: batch(3, 4),
        TypeError,
        "batch: reader must be a function that begins a new pass .* got 3",
    ),
    "buffer": (
        lambda: shuffle(lambda: iter([1]), "a"),
        ValueError,
        "shuffle: buf_size must be a number, got 'a'",
    ),
    "unknown name": (
        lambda: fluid.DataFeeder(["nope"], fluid.CPUPlace()),
        ValueError,
        "DataFeeder: the program has no variable 'nope'",
    ),
    "samples": (
        lambda: fluid.DataFeeder([_x()], fluid.CPUPlace()).feed(3),
        TypeError,
        "DataFeeder.feed takes a list of samples, got 3",
    ),
    "batch_size": (
        lambda: _dataset().set_batch_size("a"),
        TypeError,
        "set_batch_size: must be an integer, got 'a'",
    ),
    "use_var": (
        lambda: _dataset().set_use_var(["x"]),
        TypeError,
        "set_use_var: takes Variables, got 'x'",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_said(case: Case) -> None:
    call, kind, said = case
    with pytest.raises(kind, match=said):
        call()
