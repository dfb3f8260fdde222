"""Data to try a program with: the script's own, rows of its batch, or random ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fluidx.ir import Program, Variable
from fluidx.kernels import to_numpy
from fluidx.tensor import LoDTensor

from .scripts import Captured

__all__ = ["FUNCTION", "feed_function", "random_feed"]

#: what a script calls its own feed function
FUNCTION = "fluidx_feed"
FeedFn = Callable[[int, int, int], Mapping[str, Any]]

# ops that hand ids on as they are
_THROUGH = ("reshape", "squeeze", "unsqueeze", "flatten", "cast", "assign", "transpose")
_FEW = 2  # ids of which nothing is known: 0 and 1


def feed_function(captured: Captured, batch: int, seed: int) -> tuple[FeedFn, str]:
    """(feed_fn, what it is): the best that there is for a script."""
    own = captured.names.get(FUNCTION)
    if callable(own):
        return own, f"the script's {FUNCTION}"
    if captured.feed and _rows(captured.feed) is not None:
        return _sampled(captured.feed, batch, seed), (
            f"rows of the batch that the script feeds, drawn at random, {batch} each"
        )
    return random_feed(captured.main, batch, seed), (
        f"random data for the program's declarations, {batch} rows each"
    )


def _rows(feed: Mapping[str, Any]) -> int | None:
    """How many rows all fed arrays have; None if they differ or have LoD."""
    counts = set()
    for value in feed.values():
        if isinstance(value, LoDTensor):
            return None
        shape = np.shape(value)
        counts.add(shape[0] if shape else 0)
    return counts.pop() if len(counts) == 1 and min(counts) > 0 else None


def _sampled(feed: Mapping[str, Any], batch: int, seed: int) -> FeedFn:
    arrays = {name: np.asarray(value) for name, value in feed.items()}
    rows = _rows(feed) or 1

    def feed_fn(step: int, trainer: int, trainers: int) -> Mapping[str, Any]:
        rng = np.random.default_rng([seed, step, trainer])
        chosen = rng.integers(0, rows, batch)
        return {name: array[chosen] for name, array in arrays.items()}

    return feed_fn


def random_feed(main: Program, batch: int = 8, seed: int = 0) -> FeedFn:
    """Random arrays for all ``fluid.data`` that the program reads.

    Numbers are uniform in [-1, 1). Whole numbers stay below the rows of the tables
    that they look up and below the classes that they name (else they are 0 or 1).
    Sequences have 1 to 3 rows.
    """
    block = main.global_block()
    read = {n for op in main.all_ops() for n in op.input_arg_names}
    variables = [v for v in block.vars.values() if v.is_data and v.name in read]
    bounds = {v.name: _bound(main, v.name) for v in variables}

    def feed_fn(step: int, trainer: int, trainers: int) -> Mapping[str, Any]:
        rng = np.random.default_rng([seed, step, trainer])
        return {v.name: _value(v, bounds[v.name], batch, rng) for v in variables}

    return feed_fn


def _value(var: Variable, bound: int, batch: int, rng: np.random.Generator) -> Any:
    dtype = to_numpy(var.dtype)
    lengths = rng.integers(1, 4, batch) if var.lod_level else None
    rows = batch if lengths is None else int(lengths.sum())
    sizes = [d if d >= 0 else rows if i == 0 else 4 for i, d in enumerate(var.shape)]
    if dtype.kind == "f":
        value = rng.uniform(-1, 1, sizes).astype(dtype)
    else:
        value = rng.integers(0, bound, sizes).astype(dtype)
    if lengths is None:
        return value
    made = LoDTensor(value)
    levels = [[1] * batch for _ in range(var.lod_level - 1)]
    made.set_recursive_sequence_lengths([*levels, [int(n) for n in lengths]])
    return made


def _bound(main: Program, name: str) -> int:
    """One more than the largest whole number that may be fed."""
    names, found = {name}, []
    for op in main.all_ops():
        taken = names.intersection(op.input_arg_names)
        if not taken or op.role & 1:
            continue
        if op.type.startswith(_THROUGH):
            names.update(op.output_arg_names)
        size = _limit(op)
        if size > 0:
            found.append(size)
    return min(found, default=_FEW)


def _limit(op: Any) -> int:
    """What the op allows of its ids or labels; 0: it does not say."""
    block = op.block
    if op.type in ("lookup_table", "lookup_table_v2", "nce", "hierarchical_sigmoid"):
        if op.type in ("nce", "hierarchical_sigmoid"):
            return int(
                op.attr("num_total_classes" if op.type == "nce" else "num_classes")
            )
        return int(block._var_recursive(op.inputs["W"][0]).shape[0])
    if op.type.startswith("one_hot"):
        return int(op.attr("depth"))
    for slot in ("Logits", "X"):
        if op.inputs.get("Label") and op.inputs.get(slot) and "entropy" in op.type:
            return int(block._var_recursive(op.inputs[slot][0]).shape[-1])
    return 0
