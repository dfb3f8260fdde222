"""Names that 1.x scripts lean on and that NumPy 2 or Python 3.10 dropped.

``numpy.float`` and its like meant Python's own types; ``numpy.Inf``, ``product``, ...
were second names. ``collections.Iterable`` and its like moved to
``collections.abc``; ``time.clock`` measured processor time. Only what is
missing is set.
"""

from __future__ import annotations

import collections
import collections.abc
import fractions
import inspect
import math
import time
import warnings
from typing import Any

import numpy as np

__all__ = ["missing", "restore"]

_NUMPY: dict[str, Any] = {
    "float": float,
    "int": int,
    "bool": bool,
    "object": object,
    "str": str,
    "complex": complex,
    "long": int,
    "unicode": str,
    "float_": np.float64,
    "complex_": np.complex128,
    "unicode_": np.str_,
    "string_": np.bytes_,
    "Inf": np.inf,
    "Infinity": np.inf,
    "infty": np.inf,
    "PINF": np.inf,
    "NINF": -np.inf,
    "NaN": np.nan,
    "NAN": np.nan,
    "product": np.prod,
    "cumproduct": np.cumprod,
    "sometrue": np.any,
    "alltrue": np.all,
    "round_": np.round,
    "row_stack": np.vstack,
    "asfarray": lambda a, dtype=np.float64: np.asarray(a, dtype),
    "asscalar": lambda a: a.item(),
    "in1d": lambda a, b, **more: np.isin(np.ravel(a), b, **more),
    "msort": lambda a: np.sort(a, axis=0),
    "VisibleDeprecationWarning": np.exceptions.VisibleDeprecationWarning,
}


def _getargspec(function: Any) -> Any:
    """``inspect.getargspec``, from what took its place."""
    full = inspect.getfullargspec(function)
    ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")
    return ArgSpec(full.args, full.varargs, full.varkw, full.defaults)


def _names() -> list[tuple[Any, str, Any]]:
    """(module, name, value) of all that may have to be restored."""
    found = [(np, name, value) for name, value in _NUMPY.items()]
    found += [
        (collections, name, getattr(collections.abc, name))
        for name in collections.abc.__all__
    ]
    found += [
        (time, "clock", time.process_time),
        (fractions, "gcd", math.gcd),
        (inspect, "getargspec", _getargspec),
    ]
    return found


def missing() -> list[str]:
    """Those of the names that are not there now: ``numpy.float``, ..."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            f"{owner.__name__}.{name}"
            for owner, name, _ in _names()
            if not hasattr(owner, name)
        ]


def restore() -> None:
    """Set the names that are missing."""
    wanted = set(missing())
    for owner, name, value in _names():
        if f"{owner.__name__}.{name}" in wanted:
            setattr(owner, name, value)
