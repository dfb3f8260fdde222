"""HDFS as fleets use it (``fleet.utils.hdfs``)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fluidx.contrib.utils.hdfs_client import HDFSBase, at_once

__all__ = ["HDFSClient"]


class HDFSClient(HDFSBase):
    """See `HDFSBase`. hadoop_home: folder of the tool. configs: ``fs.default.name``,
    ``hadoop.job.ugi`` and the like."""

    def cat(self, hdfs_path: str | None = None) -> str:
        """The text of a file; "" where there is none."""
        if not self.is_file(hdfs_path):
            return ""
        return self._hadoop.must("-cat", hdfs_path or "").rstrip("\n")

    def is_file(self, hdfs_path: str | None = None) -> bool:
        """Whether it exists and is no folder."""
        there = self.is_exist(hdfs_path)
        return there and not self._hadoop.test("-d", hdfs_path or "")

    def lsr(self, hdfs_path: str, excludes: Sequence[str] = ()) -> list[str]:
        """All files below a folder, oldest first, but for names in `excludes`."""
        if not self.is_exist(hdfs_path):
            return []
        found = self._hadoop.entries(hdfs_path, deep=True)
        found = [e for e in found if not e.is_dir and e.name not in excludes]
        return [e.path for e in sorted(found, key=lambda e: e.time)]

    def upload_dir(
        self, dest_dir: str, local_dir: str, overwrite: bool = False
    ) -> bool:
        """Put a local folder below a folder of HDFS."""
        name = Path(local_dir.rstrip("/")).name
        target = f"{dest_dir.rstrip('/')}/{name}"
        return self._put(local_dir, target, overwrite, self._hadoop.tries)

    def upload(
        self,
        hdfs_path: str,
        local_path: str,
        multi_processes: int = 5,
        overwrite: bool = False,
        retry_times: int = 5,
    ) -> bool:
        """Put a file, or each file of a folder, into a folder of HDFS.

        FileNotFoundError: there is nothing at local_path.
        """
        local = Path(local_path)
        if not local.exists():
            raise FileNotFoundError(f"upload: {local_path} does not exist")
        files = [local]
        if local.is_dir():
            files = sorted(p for p in local.iterdir() if p.is_file())
        root = hdfs_path.rstrip("/")

        def put(file: Path) -> bool:
            return self._put(str(file), f"{root}/{file.name}", overwrite, retry_times)

        return all(at_once(put, files, multi_processes))

    def download(
        self,
        hdfs_path: str,
        local_path: str,
        multi_processes: int = 5,
        overwrite: bool = False,
        retry_times: int = 5,
    ) -> bool:
        """Get a file, or each file of a folder, into a local folder."""
        if not self.is_exist(hdfs_path):
            return False
        files = [hdfs_path]
        if self.is_dir(hdfs_path):
            entries = self._hadoop.entries(hdfs_path)
            files = [e.path for e in entries if not e.is_dir]
        os.makedirs(local_path, exist_ok=True)

        def get(file: str) -> bool:
            local = os.path.join(local_path, file.rstrip("/").rpartition("/")[2])
            return self._get(file, local, overwrite, retry_times)

        return all(at_once(get, files, multi_processes))

    @staticmethod
    def split_files(files: Sequence[Any], trainer_id: int, trainers: int) -> list[Any]:
        """A trainer's share: neighbours, the first trainers get one more."""
        each, more = divmod(len(files), trainers)
        begin = trainer_id * each + min(trainer_id, more)
        return list(files[begin : begin + each + (trainer_id < more)])
