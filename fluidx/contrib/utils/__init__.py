"""HDFS files, and tables of trainers' programs (``fluid.contrib.utils``)."""

from typing import Any

from . import hdfs_utils, lookup_table_utils
from .hdfs_utils import HDFSClient, multi_download, multi_upload
from .lookup_table_utils import (
    convert_dist_to_sparse_program,
    load_persistables_for_increment,
    load_persistables_for_inference,
)

__all__ = [
    "HDFSClient",
    "convert_dist_to_sparse_program",
    "hdfs_utils",
    "load_persistables_for_increment",
    "load_persistables_for_inference",
    "lookup_table_utils",
    "multi_download",
    "multi_upload",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"fluid.contrib.utils has no {name!r} in fluidx")
