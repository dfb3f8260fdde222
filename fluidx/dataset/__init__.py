"""Public data sets as readers (``paddle.dataset``), and datasets of files.

Each module reads one data set: `cifar`, `conll05`, `flowers`, `imdb`, `imikolov`,
`mnist`, `movielens`, `mq2007`, `sentiment`, `uci_housing`, `voc2012`, `wmt14`, `wmt16`.
Its files are downloaded at first use, checked, and kept in
``~/.cache/paddle/dataset/<module>`` (`common`); without a network, put them there.
`image` prepares pictures.

The names of ``fluid.dataset`` (`DatasetFactory` and its classes) stand here as well:
both are called dataset.
"""

from __future__ import annotations

import importlib
from typing import Any

from fluidx.dataset_factory import (
    DatasetBase,
    DatasetFactory,
    InMemoryDataset,
    QueueDataset,
)

_MODULES = (
    "cifar",
    "common",
    "conll05",
    "flowers",
    "image",
    "imdb",
    "imikolov",
    "mnist",
    "movielens",
    "mq2007",
    "sentiment",
    "uci_housing",
    "voc2012",
    "wmt14",
    "wmt16",
)

__all__ = ["DatasetBase", "DatasetFactory", "InMemoryDataset", "QueueDataset"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
