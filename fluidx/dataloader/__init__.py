"""Feeding data: `DataLoader`, `PyReader`, and readers that stand in a program.

An iterable loader gives feeds for `Executor.run`; one that is not iterable puts a
`read` op into the program (`program`), which takes its batches from a `BatchQueue`
(`queue`). Either way batches are read ahead, a bounded number of them, by a thread or a
worker process that ends with the pass, however that ends.
"""

from .generator import GeneratorLoader, PyReader
from .loader import DataLoader, DatasetLoader
from .map_style import BatchSampler, Dataset, default_collate_fn

__all__ = [
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "DatasetLoader",
    "GeneratorLoader",
    "PyReader",
    "default_collate_fn",
]
