"""What both HDFS clients of the reference have in common."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .hadoop import Hadoop

__all__ = ["HDFSBase", "at_once"]

_log = logging.getLogger("fluidx.hdfs")


def at_once(
    work: Callable[[Any], Any], items: Iterable[Any], workers: int
) -> list[Any]:
    """`work` on all items, some at a time: each is a process of the hadoop tool."""
    with ThreadPoolExecutor(max(1, workers)) as pool:
        return list(pool.map(work, items))


class HDFSBase:
    """Drives ``hadoop_home/bin/hadoop fs``; see `fluidx.contrib.utils.hadoop`.

    Methods say in what they return whether it went well, and log why not.
    RuntimeError: there is no such tool.
    """

    def __init__(self, hadoop_home: str | None, configs: Mapping[str, str]) -> None:
        self._hadoop = Hadoop(hadoop_home, configs)
        self.pre_commands = self._hadoop.pre_commands

    def _done(self, *command: str, tries: int | None = None) -> bool:
        code, out, error = self._hadoop.run(*command, tries=tries)
        if code:
            text = error.strip() or out.strip()
            _log.error("hadoop fs %s: code %d: %s", " ".join(command), code, text)
        return code == 0

    def is_exist(self, hdfs_path: str | None = None) -> bool:
        """Whether there is such a path."""
        return self._hadoop.test("-e", hdfs_path or "")

    def is_dir(self, hdfs_path: str | None = None) -> bool:
        """Whether it is a folder."""
        return self.is_exist(hdfs_path) and self._hadoop.test("-d", hdfs_path or "")

    def delete(self, hdfs_path: str) -> bool:
        """Remove a file or a folder; true where there is none."""
        if not self.is_exist(hdfs_path):
            return True
        return self._done("-rmr" if self.is_dir(hdfs_path) else "-rm", hdfs_path)

    def rename(
        self, hdfs_src_path: str, hdfs_dst_path: str, overwrite: bool = False
    ) -> bool:
        """Move. overwrite: what is at the other path goes first."""
        if overwrite and self.is_exist(hdfs_dst_path):
            self.delete(hdfs_dst_path)
        return self._done("-mv", hdfs_src_path, hdfs_dst_path)

    def makedirs(self, hdfs_path: str) -> bool:
        """Make a folder; true where it is there."""
        return self.is_exist(hdfs_path) or self._done("-mkdir", hdfs_path)

    @staticmethod
    def make_local_dirs(local_path: str) -> None:
        """Make a folder of this machine."""
        os.makedirs(local_path, exist_ok=True)

    def ls(self, hdfs_path: str) -> list[str]:
        """Paths of what is in a folder; [] where it is none."""
        if not self.is_exist(hdfs_path):
            return []
        return [e.path for e in self._hadoop.entries(hdfs_path)]

    def _put(self, local: str, target: str, overwrite: bool, tries: int) -> bool:
        """One file or folder to a path whose folder is made."""
        if self.is_exist(target):
            if not overwrite:
                _log.error("%s is there, overwrite is False", target)
                return False
            self.delete(target)
        self.makedirs(target.rpartition("/")[0] or "/")
        return self._done("-put", local, target, tries=tries)

    def _get(self, hdfs_path: str, local: str, overwrite: bool, tries: int) -> bool:
        """One file or folder to a local path whose folder is made."""
        if not self.is_exist(hdfs_path):
            _log.error("%s does not exist", hdfs_path)
            return False
        path = Path(local)
        if path.is_file():
            if not overwrite:
                _log.error("%s is there, overwrite is False", local)
                return False
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        return self._done("-get", hdfs_path, local, tries=tries)
