"""Names that 1.x scripts lean on and that NumPy 2 or Python 3.10 dropped.

``numpy.float`` and its like meant Python's own types; ``numpy.Inf``, ``product``, ...
were second names. ``collections.Iterable`` and its like moved to
``collections.abc``; ``time.clock`` measured processor time; of distutils, which Python
3.12 dropped, ``strtobool`` comes back. Only what is missing is set, and nothing is
taken away.
"""

from __future__ import annotations

import base64
import collections
import collections.abc
import errno
import fractions
import importlib.util
import inspect
import math
import os
import sys
import threading
import time
import types
import warnings
from typing import Any

import numpy as np

__all__ = ["gone", "missing", "restore"]

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
    "trapz": np.trapezoid,
    "mat": np.asmatrix,
    "bool8": np.bool_,
    "int0": np.intp,
    "uint0": np.uintp,
    "object0": np.object_,
    "str0": np.str_,
    "bytes0": np.bytes_,
    "void0": np.void,
    "cfloat": np.complex128,
    "singlecomplex": np.complex64,
    "longfloat": np.longdouble,
    "longcomplex": np.clongdouble,
    "clongfloat": np.clongdouble,
    "find_common_type": lambda a, b: np.result_type(*a, *b),
    "issubclass_": lambda a, b: isinstance(a, type) and issubclass(a, b),
    "alen": lambda a: len(np.atleast_1d(a)),
    "rank": np.ndim,
    "math": math,
    "typeDict": np.sctypeDict,
    "AxisError": np.exceptions.AxisError,
    "ComplexWarning": np.exceptions.ComplexWarning,
    "RankWarning": np.exceptions.RankWarning,
    "TooHardError": np.exceptions.TooHardError,
    "VisibleDeprecationWarning": np.exceptions.VisibleDeprecationWarning,
}


def _getargspec(function: Any) -> Any:
    """``inspect.getargspec``, from what took its place."""
    full = inspect.getfullargspec(function)
    ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")
    return ArgSpec(full.args, full.varargs, full.varkw, full.defaults)


def _names() -> list[tuple[Any, str, Any]]:
    """(module, name, value) of all that may have to be restored."""
    found: list[tuple[Any, str, Any]]
    found = [(np, name, value) for name, value in _NUMPY.items()]
    found += [
        (collections, name, getattr(collections.abc, name))
        for name in collections.abc.__all__
    ]
    found += [
        (time, "clock", time.process_time),
        (fractions, "gcd", math.gcd),
        (inspect, "getargspec", _getargspec),
        (threading.Thread, "isAlive", threading.Thread.is_alive),
        (base64, "encodestring", base64.encodebytes),
        (base64, "decodestring", base64.decodebytes),
        (os, "errno", errno),
    ]
    return found


#: what `restore` has set in this process
_restored: set[str] = set()


def gone() -> set[str]:
    """The names that this NumPy and Python have not, restored or not."""
    return {*missing(), *_restored}


def _full(owner: Any, name: str) -> str:
    module = getattr(owner, "__module__", None)  # of a class
    return f"{module}.{owner.__name__}.{name}" if module else f"{owner.__name__}.{name}"


def missing() -> list[str]:
    """Those of the names that are not there now: ``numpy.float``, ..."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            _full(owner, name)
            for owner, name, _ in _names()
            if not hasattr(owner, name)
        ]


def _strtobool(value: str) -> int:
    """``distutils.util.strtobool``: 1 for "yes", "true" ..., 0 for "no", "false" ..."""
    word = value.lower()
    if word in ("y", "yes", "t", "true", "on", "1"):
        return 1
    if word in ("n", "no", "f", "false", "off", "0"):
        return 0
    raise ValueError(f"invalid truth value {value!r}")


def _restore_strtobool() -> None:
    """What 1.x scripts take from distutils, where Python (3.12) has none of it.

    ``argparse`` has no type of its own for true and false, so they use this one.
    """
    if importlib.util.find_spec("distutils") is not None:
        return
    package, util = types.ModuleType("distutils"), types.ModuleType("distutils.util")
    package.__path__ = []  # so that other submodules are missed by name
    util.strtobool = _strtobool  # type: ignore[attr-defined]
    package.util = util  # type: ignore[attr-defined]
    sys.modules.update({"distutils": package, "distutils.util": util})


def restore() -> None:
    """Set the names that are missing."""
    _restore_strtobool()
    wanted = set(missing())
    for owner, name, value in _names():
        if _full(owner, name) in wanted:
            setattr(owner, name, value)
            _restored.add(_full(owner, name))
