"""`DatasetFactory`: datasets by the name of their class."""

from __future__ import annotations

from .datasets import DatasetBase, QueueDataset
from .in_memory import InMemoryDataset

__all__ = ["DatasetFactory"]


class DatasetFactory:
    """Makes datasets by the name of their class (``fluid.DatasetFactory``)."""

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """A QueueDataset or InMemoryDataset. ValueError: another name."""
        kinds = {"QueueDataset": QueueDataset, "InMemoryDataset": InMemoryDataset}
        if datafeed_class not in kinds:
            raise ValueError(
                f"dataset class {datafeed_class!r} does not exist; there are "
                f"{', '.join(kinds)}"
            )
        return kinds[datafeed_class]()
