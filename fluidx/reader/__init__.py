"""Readers and what decorates them (``paddle.reader``).

A reader is a function without arguments that returns an iterable of samples; it can be
called again for another pass. A decorator makes a reader of readers.

    train = batch(shuffle(mnist.train(), 500), 32)
    for samples in train():
        ...

Those that read ahead hold a bounded number of samples, and their threads and processes
end when the pass ends, fails, or is dropped half way.
"""

import sys

from .decorators import (
    ComposeNotAligned,
    batch,
    cache,
    chain,
    compose,
    firstn,
    map_readers,
    shuffle,
)
from .processes import multiprocess_reader
from .threads import buffered, xmap_readers

#: ``paddle.reader.decorator`` has the same names
decorator = sys.modules[__name__]

__all__ = [
    "ComposeNotAligned",
    "batch",
    "buffered",
    "cache",
    "chain",
    "compose",
    "firstn",
    "map_readers",
    "multiprocess_reader",
    "shuffle",
    "xmap_readers",
]
