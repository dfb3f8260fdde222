"""Files of samples: numbers, texts, bytes, arrays, and lists, tuples and dicts of them.

A file is an ``.npz`` archive of the arrays, in which ``tree`` says in JSON what they
stand in: nothing that is read can run code. The reference's files are pickles; these
are read by `fluidx.io`'s restricted unpickler.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np

from fluidx.io.unpickle import loads

__all__ = ["dump", "load"]

_TREE = "tree"


def dump(samples: Any, file: Any) -> None:
    """Write samples to a binary file. TypeError: one holds something else.

    >>> import io
    >>> file = io.BytesIO()
    >>> dump([(np.float32([1, 2]), 7)], file)
    >>> _ = file.seek(0)
    >>> load(file)
    [(array([1., 2.], dtype=float32), 7)]
    """
    arrays: list[Any] = []
    tree = json.dumps(_stripped(samples, arrays))
    held = {str(number): array for number, array in enumerate(arrays)}
    np.savez(file, allow_pickle=False, **{_TREE: np.array(tree)}, **held)


def load(file: Any) -> Any:
    """What `dump` wrote, or the reference. ValueError: it is no such file."""
    data = file.read()
    if not data.startswith(b"PK"):
        return loads(data, getattr(file, "name", "a file of samples"))
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as held:
            return _filled(json.loads(str(held[_TREE])), held)
    except (KeyError, IndexError, TypeError, zipfile.BadZipFile) as error:
        name = getattr(file, "name", "the file")
        raise ValueError(f"{name}: a damaged file of samples: {error}") from None


def _stripped(value: Any, arrays: list[Any]) -> Any:
    """JSON of the value: a list that begins with what it is, or a plain value."""
    if value is None or value.__class__ in (bool, int, float, str):
        return value
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return [kind, *(_stripped(v, arrays) for v in value)]
    if isinstance(value, dict):
        items = [[_stripped(part, arrays) for part in item] for item in value.items()]
        return ["dict", *items]
    kind = "array"
    if isinstance(value, bytes):
        kind, value = "bytes", np.frombuffer(value, "uint8")
    elif isinstance(value, np.generic):
        kind, value = "scalar", np.asarray(value)
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        raise TypeError(
            "a file of samples holds numbers, strings, bytes, arrays, and lists, "
            f"tuples and dicts of these; got {value!r:.60}"
        )
    arrays.append(value)
    return [kind, len(arrays) - 1]


def _filled(tree: Any, held: Any) -> Any:
    if not isinstance(tree, list):
        return tree
    kind, *parts = tree
    if kind in ("list", "tuple"):
        found = [_filled(part, held) for part in parts]
        return found if kind == "list" else tuple(found)
    if kind == "dict":
        return {_filled(key, held): _filled(value, held) for key, value in parts}
    array = held[str(parts[0])]
    if kind == "bytes":
        return array.tobytes()
    return array[()] if kind == "scalar" else array
