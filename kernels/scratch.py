"""Buffers that are used again from call to call."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

__all__ = ["scratch"]

_local = threading.local()


def scratch(xp: Any, key: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """An array with any content that lives until this thread asks for `key` again.

    Fresh pages cost more than the copy into them, so numpy buffers are kept (one
    per thread and key, as large as the largest so far); CuPy pools by itself. A
    kernel must not return such an array, nor a view of it.
    """
    if xp is not np:
        return xp.empty(shape, dtype)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    kept = _local.__dict__.get(key)
    if kept is None or kept.nbytes < size:
        kept = _local.__dict__[key] = np.empty(size, np.uint8)
    return kept[:size].view(dtype).reshape(shape)
