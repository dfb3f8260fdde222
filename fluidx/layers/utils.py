"""Nested structures (``fluid.layers.utils``): lists, tuples and dicts of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fluidx.type_checks import (
    check_dtype,
    check_type,
    check_variable_and_dtype,
    convert_dtype,
)

__all__ = [
    "assert_same_structure",
    "check_dtype",
    "check_type",
    "check_variable_and_dtype",
    "convert_dtype",
    "convert_to_list",
    "flatten",
    "is_sequence",
    "map_structure",
    "pack_sequence_as",
]


def is_sequence(seq: Any) -> bool:
    """Whether it is a list, a tuple, or a dict.

    >>> is_sequence([1]), is_sequence({}), is_sequence("a")
    (True, True, False)
    """
    return isinstance(seq, (Sequence, Mapping)) and not isinstance(seq, (str, bytes))


def _parts(structure: Any) -> list[Any]:
    """Its values; those of a dict by sorted keys."""
    if isinstance(structure, Mapping):
        return [structure[key] for key in sorted(structure)]
    return list(structure)


def flatten(nest: Any) -> list[Any]:
    """All values inside, in order; dicts by sorted keys.

    >>> flatten([1, (2, [3])]), flatten({"b": 1, "a": 2})
    ([1, 2, 3], [2, 1])
    """
    if not is_sequence(nest):
        return [nest]
    return [leaf for part in _parts(nest) for leaf in flatten(part)]


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_sequence(structure):
        return next(leaves)
    made = [_packed(part, leaves) for part in _parts(structure)]
    kind = type(structure)
    if isinstance(structure, Mapping):
        values = dict(zip(sorted(structure), made))
        return kind((key, values[key]) for key in structure)
    return kind(*made) if hasattr(structure, "_fields") else kind(made)


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """Values in the form of a structure. ValueError: too many or too few of them.

    >>> pack_sequence_as([0, (0,)], [5, 6])
    [5, (6,)]
    """
    if not is_sequence(flat_sequence):
        raise TypeError(f"pack_sequence_as: values must be a list: {flat_sequence!r}")
    count = len(flatten(structure))
    if count != len(flat_sequence):
        raise ValueError(
            f"pack_sequence_as: the structure has {count} places for "
            f"{len(flat_sequence)} values"
        )
    return _packed(structure, iter(flat_sequence))


def map_structure(func: Callable[..., Any], *structure: Any) -> Any:
    """A function of the values that stand at the same place of some structures.

    >>> map_structure(lambda a, b: a + b, [1, (2,)], [3, (4,)])
    [4, (6,)]
    """
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types=False)
    columns = zip(*(flatten(s) for s in structure))
    return pack_sequence_as(structure[0], [func(*values) for values in columns])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """ValueError unless both nest alike; TypeError for a list beside a tuple."""
    if is_sequence(nest1) != is_sequence(nest2):
        raise ValueError(f"the structures differ: {nest1!r} beside {nest2!r}")
    if not is_sequence(nest1):
        return
    if check_types and type(nest1) is not type(nest2):
        raise TypeError(f"the structures differ: {nest1!r} beside {nest2!r}")
    one, two = _parts(nest1), _parts(nest2)
    keys = isinstance(nest1, Mapping) and isinstance(nest2, Mapping)
    if len(one) != len(two) or (keys and set(nest1) != set(nest2)):
        raise ValueError(f"the structures differ: {nest1!r} beside {nest2!r}")
    for a, b in zip(one, two):
        assert_same_structure(a, b, check_types)


def convert_to_list(
    value: Any, n: int, name: str, dtype: Callable[[Any], Any] = int
) -> list[Any]:
    """One value n times, or n values as a list.

    ValueError: another number of them, or one that is not of the type.
    """
    if isinstance(value, dtype):  # type: ignore[arg-type]
        return [value] * n
    try:
        many = list(value)
        good = [dtype(v) for v in many]
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a {dtype.__name__} or {n} of them, got {value!r}"
        ) from None
    if len(good) != n:
        raise ValueError(f"{name} must have {n} values, got {value!r}")
    return many
