"""`DataFeeder`: batches of samples as users have them -> what `Executor.run` is fed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from fluidx.ir import Program, Variable, default_main_program
from fluidx.kernels import to_numpy
from fluidx.tensor import LoDTensor, Place
from fluidx.type_checks import (
    check_dtype,
    check_type,
    check_variable_and_dtype,
    convert_dtype,
)

__all__ = [
    "DataFeeder",
    "check_dtype",
    "check_type",
    "check_variable_and_dtype",
    "convert_dtype",
]

Feed = dict[str, LoDTensor]


class DataFeeder:
    """Turns lists of samples into a feed (``fluid.DataFeeder``).

    feed_list: variables, or names of variables of `program` (by default the default
    main program); a sample has one field for each. A field of a variable without LoD
    is an array or nested lists of the variable's dtype, and is reshaped if it came
    flat. A field of a variable with lod_level 1 is a sequence, with 2 a list of
    sequences, and so on.

    >>> import fluidx as fluid
    >>> words = fluid.data("words", [None, 1], "int64", lod_level=1)
    >>> feeder = DataFeeder([words], fluid.CPUPlace())
    >>> feeder.feed([([1, 2, 3],), ([4],)])["words"].recursive_sequence_lengths()
    [[3, 1]]
    """

    def __init__(
        self,
        feed_list: Sequence[Variable | str],
        place: Place | None,
        program: Program | None = None,
    ) -> None:
        block = (program or default_main_program()).global_block()
        unknown = [n for n in feed_list if isinstance(n, str) and not block.has_var(n)]
        if unknown:
            raise ValueError(f"DataFeeder: the program has no variable {unknown[0]!r}")
        self.place = place
        self._fields: list[_Field] = []
        for item in feed_list:
            var = block.var(item) if isinstance(item, str) else item
            if not isinstance(var, Variable):
                raise TypeError(
                    f"DataFeeder: feed_list takes variables and names, got {item!r:.60}"
                )
            self._fields.append(_Field(var))
        self.feed_names = [field.name for field in self._fields]

    def feed(self, iterable: Iterable[Any]) -> Feed:
        """One batch: name -> LoDTensor. ValueError: a sample does not fit."""
        count = len(self._fields)
        try:
            samples = list(iterable)
        except TypeError:
            raise TypeError(
                f"DataFeeder.feed takes a list of samples, got {iterable!r:.60}"
            ) from None
        for sample in samples:
            if len(sample) != count:
                raise ValueError(
                    f"DataFeeder: a sample has {len(sample)} fields, but there are "
                    f"{count} variables: {self.feed_names}"
                )
        return {
            field.name: field.tensor([sample[i] for sample in samples])
            for i, field in enumerate(self._fields)
        }

    def feed_parallel(
        self, iterable: Iterable[Iterable[Any]], num_places: int | None = None
    ) -> Iterator[Feed]:
        """A feed for each of `num_places` batches. ValueError: not that many came."""
        batches = list(iterable)
        number = 1 if num_places is None else int(num_places)
        if len(batches) != number:
            raise ValueError(
                f"feed_parallel: {number} places take as many batches, came "
                f"{len(batches)}"
            )
        for batch in batches:
            yield self.feed(batch)

    def decorate_reader(
        self,
        reader: Callable[[], Iterable[Any]],
        multi_devices: bool,
        num_places: int | None = None,
        drop_last: bool = True,
    ) -> Callable[[], Iterator[Any]]:
        """A reader of feeds from a reader of batches.

        multi_devices: of lists of `num_places` feeds; batches that do not fill one are
        dropped, or a ValueError if `drop_last` is false.
        """

        def feeds() -> Iterator[Any]:
            if not multi_devices:
                for batch in reader():
                    yield self.feed(batch)
                return
            number = 1 if num_places is None else int(num_places)
            group: list[Any] = []
            for batch in reader():
                group.append(batch)
                if len(group) == number:
                    yield list(self.feed_parallel(group, number))
                    group = []
            if group and not drop_last:
                raise ValueError(
                    f"decorate_reader: {len(group)} batches are left over, too few for "
                    f"{number} places; only drop_last=True can go on"
                )

        return feeds


class _Field:
    """One variable, and how its part of the samples becomes a tensor."""

    def __init__(self, var: Variable) -> None:
        self.name = var.name
        self._dtype = to_numpy(var.dtype)
        self._shape = tuple(var.shape)
        self._level = var.lod_level

    def tensor(self, values: list[Any]) -> LoDTensor:
        if self._level:
            return self._sequences(values)
        try:
            array = np.array(values, self._dtype)
        except (ValueError, TypeError) as error:
            array = self._one_by_one(values, error)
        return LoDTensor(self._shaped(array))

    def _one_by_one(self, values: list[Any], error: Exception) -> Any:
        """Where the samples differ in rank: each with the shape of the variable."""
        rest = self._shape[1:]
        try:
            return np.stack([np.array(v, self._dtype).reshape(rest) for v in values])
        except (ValueError, TypeError):
            raise self._unfit(values, error) from error

    def _shaped(self, array: Any) -> Any:
        """With the rank of the variable. ValueError: its shape cannot be had.

        An array of that rank stays as it is, and any where the shape is not known:
        their sizes are the executor's to check.
        """
        shape = self._shape
        if array.size == 0:
            return array.reshape([max(0, d) for d in (0, *shape[1:])])
        if len(shape) == array.ndim or any(d < 0 for d in shape[1:]):
            return array
        try:
            return array.reshape(shape)
        except ValueError:
            raise ValueError(
                f"DataFeeder: {self.name} is {list(shape)}, which a batch of "
                f"{list(array.shape)} cannot be reshaped to"
            ) from None

    def _sequences(self, values: list[Any]) -> LoDTensor:
        lengths: list[list[int]] = []
        for _ in range(self._level):
            lengths.append([self._length(v) for v in values])
            values = [item for v in values for item in v]
        made = LoDTensor(self._rows(values))
        made.set_recursive_sequence_lengths(lengths)
        return made

    def _length(self, sequence: Any) -> int:
        try:
            return len(sequence)
        except TypeError:
            raise TypeError(
                f"DataFeeder: {self.name} has lod_level {self._level}, so in a sample "
                f"sequences nest {self._level} deep; where one belongs came "
                f"{sequence!r:.60}"
            ) from None

    def _rows(self, values: list[Any]) -> Any:
        """The items of all sequences, a row for each."""
        rest = self._shape[1:]
        if not values:
            return np.zeros((0, *(abs(d) for d in rest)), self._dtype)
        try:
            array = np.array(values, self._dtype)
        except (ValueError, TypeError) as error:
            return self._one_by_one(values, error)
        known = all(d >= 0 for d in rest)
        if known and array.size == len(values) * prod(rest):
            return array.reshape((len(values), *rest))
        if known and array.ndim != len(self._shape):
            count = f"{prod(rest)} values of an item in {list(self._shape)}"
            raise self._unfit(values, ValueError(f"expected {count}"))
        return array

    def _unfit(self, values: list[Any], error: Exception) -> ValueError:
        shapes = sorted({_shape_of(value) for value in values})[:4]
        return ValueError(
            f"DataFeeder: the samples of {self.name} make no array of {self._dtype} "
            f"{list(self._shape)}: {error} (shapes of the samples: {', '.join(shapes)})"
        )


def _shape_of(value: Any) -> str:
    try:
        return str(list(np.shape(value)))
    except ValueError:
        return "uneven"
