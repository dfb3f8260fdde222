"""Readers of distributed training (``fluid.contrib.reader``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["distributed_batch_reader"]


def distributed_batch_reader(
    batch_reader: Callable[[], Iterable[Any]],
) -> Callable[[], Iterator[Any]]:
    """A reader of this trainer's batches: every trainer takes one in turn.

    PADDLE_TRAINERS_NUM and PADDLE_TRAINER_ID tell which. Batches left over, fewer than
    there are trainers, are dropped: all trainers get the same number. ValueError: the
    variables do not fit. Mirrors ``fluid.contrib.distributed_batch_reader``.
    """
    trainers = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
    own = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    if not 0 <= own < trainers:
        raise ValueError(
            f"PADDLE_TRAINER_ID {own} is not below PADDLE_TRAINERS_NUM {trainers}"
        )

    def batches() -> Iterator[Any]:
        mine = None
        for number, batch in enumerate(batch_reader()):
            turn = number % trainers
            if turn == own:
                mine = batch
            if turn == trainers - 1:
                yield mine

    return batches
