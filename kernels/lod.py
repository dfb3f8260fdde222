"""Arithmetic on the offsets of sequences. All of it runs on numpy, on the host.

A LoD is a list of levels, each a list of offsets that starts with 0; those of the last
level are rows of the tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "chosen_sequences",
    "host",
    "innermost",
    "joined",
    "lengths_of",
    "owners",
    "ranges",
    "sole_level",
]


def host(values: Any) -> Any:
    """A numpy array of what may lie on a device."""
    return values.get() if hasattr(values, "get") else np.asarray(values)


def innermost(op_name: str, slot: str, levels: Any, rows: int) -> Any:
    """The offsets of the last level. ValueError unless they end at `rows`."""
    if not levels:
        raise ValueError(f"{op_name}: {slot} has no LoD, so no sequences")
    offsets = np.asarray(levels[-1])
    if offsets[-1] != rows:
        raise ValueError(
            f"{op_name}: the LoD of {slot} ends at {offsets[-1]}, {slot} has {rows} "
            "rows"
        )
    return offsets


def sole_level(op_name: str, slot: str, levels: Any, rows: int) -> Any:
    """The offsets of a LoD that must have one level."""
    if levels and len(levels) != 1:
        raise ValueError(
            f"{op_name}: takes one level of sequences, the LoD of {slot} has "
            f"{len(levels)}"
        )
    return innermost(op_name, slot, levels, rows)


def lengths_of(offsets: Any) -> Any:
    """Each sequence's number of rows."""
    return offsets[1:] - offsets[:-1]


def owners(lengths: Any) -> Any:
    """For each row, the number of its sequence."""
    return np.repeat(np.arange(len(lengths)), lengths)


def ranges(starts: Any, lengths: Any) -> Any:
    """start, start + 1, ... of each range, one range after the other.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - ends + lengths, lengths) + np.arange(total)


def chosen_sequences(levels: Any, chosen: Any) -> tuple[list[list[int]], Any]:
    """The LoD of these sequences, one after the other, and the rows that they hold.

    chosen: numbers of sequences of the first level; rows if there are no levels.

    >>> chosen_sequences([[0, 2, 5]], np.array([1, 0]))
    ([[0, 3, 5]], array([2, 3, 4, 0, 1]))
    """
    made = []
    for level in levels:
        offsets = np.asarray(level)
        lengths = lengths_of(offsets)[chosen]
        made.append(joined(lengths))
        chosen = ranges(offsets[:-1][chosen], lengths)
    return made, chosen


def joined(lengths: Any) -> list[int]:
    """The offsets of sequences of these lengths.

    >>> joined([2, 0, 3])
    [0, 2, 2, 5]
    """
    return [0, *np.cumsum(np.asarray(lengths, "i8")).tolist()]
