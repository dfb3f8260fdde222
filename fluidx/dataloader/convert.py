"""From what generators give to lists of tensors, one for each variable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from fluidx.data_feeder import DataFeeder
from fluidx.ir import Variable
from fluidx.kernels import to_numpy
from fluidx.reader import batch
from fluidx.tensor import LoDTensor

from .queue import Batches

__all__ = ["from_batches", "from_lists", "from_samples"]

Generator = Callable[[], Iterable[Any]]


def from_batches(generator: Generator, variables: Sequence[Variable]) -> Batches:
    """Of a generator of whole batches: tuples or lists of arrays and LoDTensors.

    Arrays are copied: a generator may fill the same one again. ValueError: the number
    of arrays is not that of the variables.
    """
    _must_be_callable(generator)
    names = [v.name for v in variables]
    dtypes = [to_numpy(v.dtype) for v in variables]

    def batches() -> Iterator[list[Any]]:
        for given in generator():
            if isinstance(given, dict):
                raise TypeError(
                    f"a batch is a dict of {sorted(map(str, given))}; give the arrays "
                    f"alone, as a tuple in the order of the variables: {names}"
                )
            if not isinstance(given, (list, tuple)):
                given = (given,)
            if len(given) != len(names):
                raise ValueError(
                    f"a batch has {len(given)} arrays, but there are {len(names)} "
                    f"variables: {names}. If the generator gives lists of samples "
                    "(paddle.batch), use set_sample_list_generator"
                )
            yield [_tensor(v, dtype) for v, dtype in zip(given, dtypes)]

    return batches


def _must_be_callable(generator: Any) -> None:
    if not callable(generator):
        raise TypeError(
            "a reader takes a function that begins a new pass each time it is called, "
            f"got {generator!r:.60}; give the function itself: without ()"
        )


def _tensor(value: Any, dtype: Any) -> LoDTensor:
    if isinstance(value, LoDTensor):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return LoDTensor(np.array(value))
    return LoDTensor(np.array(value, dtype))


def from_lists(generator: Generator, variables: Sequence[Variable]) -> Batches:
    """Of a generator of lists of samples."""
    _must_be_callable(generator)
    feeder = DataFeeder(variables, None)
    names = feeder.feed_names

    def batches() -> Iterator[list[Any]]:
        for samples in generator():
            feed = feeder.feed(samples)
            yield [feed[name] for name in names]

    return batches


def from_samples(
    generator: Generator,
    variables: Sequence[Variable],
    batch_size: int,
    drop_last: bool,
) -> Batches:
    """Of a generator of samples. ValueError: batch_size below 1."""
    _must_be_callable(generator)
    count = len(variables)

    def samples() -> Iterator[Any]:
        for sample in generator():
            # one variable: the sample may be its field itself
            alone = count == 1 and not isinstance(sample, (list, tuple))
            yield (sample,) if alone else sample

    return from_lists(batch(samples, batch_size, drop_last), variables)
