"""Memory that arrays gave back stays with the process, for the next step's arrays."""

from __future__ import annotations

import ctypes
import functools
import os

__all__ = ["keep_freed_memory"]

# numbers of glibc's mallopt, and the sizes for them: larger blocks are mapped apart
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER, _APART = 2**31 - 1, 1 << 28


@functools.cache
def keep_freed_memory() -> None:
    """Tell glibc's malloc not to hand large free blocks back to the system.

    By default every step gives its arrays back and gets fresh pages for the next ones,
    which the system must find and clear: 13,000 page faults and a tenth of the time of
    a Transformer's step, of LeNet's as much. The process stays as large as its largest
    step, which it would be again a moment later. ``FLUIDX_KEEP_MEMORY=0`` in the
    environment leaves malloc as it is; so does any other C library.
    """
    if os.environ.get("FLUIDX_KEEP_MEMORY", "1") == "0":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_MMAP_THRESHOLD, _APART)
    mallopt(_TRIM_THRESHOLD, _NEVER)
