"""Datasets of files for `Executor.train_from_dataset` (``fluid.dataset``).

dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
dataset.set_batch_size(32)
dataset.set_use_var([words, label])
dataset.set_filelist(["part-0", "part-1"])
dataset.set_pipe_command("python make_slots.py")
dataset.load_into_memory()
dataset.local_shuffle()
exe.train_from_dataset(main, dataset)
"""

from .datasets import DatasetBase, QueueDataset
from .desc import DataFeedDesc
from .factory import DatasetFactory
from .in_memory import InMemoryDataset

__all__ = [
    "DataFeedDesc",
    "DatasetBase",
    "DatasetFactory",
    "InMemoryDataset",
    "QueueDataset",
]
