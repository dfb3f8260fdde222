"""``listen_and_serv`` as a server needs it: where gradients go, and what they start."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["SYNC", "ServeSpec", "split_name"]

_SUFFIX = re.compile(r"(.*)\.trainer_(\d+)")
SYNC, GEO = 0, 3  # distributed_mode; 1 and 2 are asynchronous ones


@dataclass(frozen=True)
class ServeSpec:
    """What ``listen_and_serv`` says, made ready for look-ups.

    sinks: (gradient, trainer) -> variable that the gradient goes to.
    blocks: gradient -> block that applies it.
    order: the optimize blocks, without the learning rate's.
    lr_start: where the schedule's counter stands before the first round, for trainers
        that tell their steps but go in step (completely_not_async).
    """

    endpoint: str
    fanin: int
    mode: int
    sinks: Mapping[tuple[str, int], str]
    blocks: Mapping[str, int]
    order: Sequence[int]
    lr_block: int = -1
    dc_asgd: bool = False
    lr_start: int = 0

    @classmethod
    def from_attrs(
        cls, names: Sequence[str], attrs: Mapping[str, Any], lr_start: int = 0
    ) -> ServeSpec:
        """From the op's variables X and its attributes."""
        fanin, mode = attrs["Fanin"], attrs.get("distributed_mode", SYNC)
        sinks: dict[tuple[str, int], str] = {}
        for name in names:
            base, trainer = split_name(name)
            takers = range(fanin) if trainer is None else (trainer,)
            sinks.update(((base, t), name) for t in takers)
        blocks: dict[str, int] = {}
        for entry in attrs["grad_to_block_id"]:
            grad, _, block = entry.rpartition(":")
            base = split_name(grad)[0]
            blocks[base] = int(block)
            if mode == GEO:  # what comes is told by the blocks alone
                sinks.update(((base, t), grad) for t in range(fanin))
        lr = attrs.get("lr_decay_block_id", -1)
        return cls(
            attrs["endpoint"],
            fanin,
            mode,
            sinks,
            blocks,
            tuple(b for b in attrs["optimize_blocks"] if b != lr),
            lr,
            attrs.get("dc_asgd", False),
            lr_start,
        )


def split_name(name: str) -> tuple[str, int | None]:
    """ "G.trainer_1" is gradient G of trainer 1; "G" of nobody in particular."""
    found = _SUFFIX.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, None)
