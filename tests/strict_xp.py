"""numpy behind a proxy that refuses what CuPy would refuse.

Names and keyword arguments are checked against CuPy's own signatures where CuPy is
installed (no GPU needed), else against a recorded list of them
(tests/golden/cupy_signatures.json, refreshed by `python tests/strict_xp.py`).
"""

from __future__ import annotations

import functools
import inspect
import json
import types
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).parent / "golden" / "cupy_signatures.json"
# CuPy's ufunc.at exists for these only
_AT = {"add", "subtract", "maximum", "minimum"}


class StrictXP:
    """One namespace of numpy, narrowed to what the record of CuPy allows."""

    def __init__(self, module: Any, record: dict[str, Any], name: str) -> None:
        self._module, self._record, self._name = module, record, name

    def __getattr__(self, attribute: str) -> Any:
        known = self._record.get(attribute)
        if known is None:
            raise AttributeError(f"cupy has no {self._name}.{attribute}")
        found = getattr(self._module, attribute)
        if isinstance(known, dict):
            return StrictXP(found, known, f"{self._name}.{attribute}")
        if isinstance(found, np.ufunc) and attribute not in _AT:
            return _NoAt(found)
        if known == "any" or isinstance(found, (type, np.ufunc)) or not callable(found):
            return found
        return _bound(found, known, f"{self._name}.{attribute}")


class _NoAt:
    """A ufunc without `at`."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ufunc(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "at":
            raise AttributeError(f"cupy.{self._ufunc.__name__} has no at")
        return getattr(self._ufunc, name)


def _bound(function: Any, parameters: list[list[Any]], name: str) -> Any:
    signature = inspect.Signature(
        [
            inspect.Parameter(
                p,
                inspect._ParameterKind(kind),
                default=None if optional else inspect.Parameter.empty,
            )
            for p, kind, optional in parameters
        ]
    )

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"cupy.{name}: {error}") from None
        return function(*args, **kwargs)

    return call


def record() -> dict[str, Any]:
    """What CuPy offers of numpy's names: "any", a signature, or a sub-namespace."""
    import cupy

    def visit(ours: Any, theirs: Any, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in sorted(dir(ours)):
            if name.startswith("_") or not hasattr(theirs, name):
                continue
            value, other = getattr(ours, name), getattr(theirs, name)
            if isinstance(value, types.ModuleType):
                if depth < 2:
                    found[name] = visit(value, other, depth + 1)
                continue
            try:
                parameters = inspect.signature(other).parameters.values()
                found[name] = [
                    [p.name, int(p.kind), p.default is not p.empty] for p in parameters
                ]
            except (TypeError, ValueError):
                found[name] = "any"
        return found

    return visit(np, cupy, 0)


@functools.cache
def strict_xp() -> Any:
    """The proxy."""
    return StrictXP(np, json.loads(RECORD.read_text()), "cupy")


if __name__ == "__main__":
    RECORD.write_text(json.dumps(record(), indent=None, sort_keys=True) + "\n")
