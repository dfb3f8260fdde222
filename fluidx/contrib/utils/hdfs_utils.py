"""Files on HDFS, through the ``hadoop`` tool (``fluid.contrib.utils.hdfs_utils``)."""

from __future__ import annotations

import os
import threading
import zipfile
from pathlib import Path

from .hdfs_client import HDFSBase, at_once

__all__ = ["HDFSClient", "getfilelist", "multi_download", "multi_upload"]


class HDFSClient(HDFSBase):
    """See `HDFSBase`. hadoop_home: folder of the tool, or None: it is on PATH.
    configs: ``fs.default.name``, ``hadoop.job.ugi`` and the like."""

    def upload(
        self,
        hdfs_path: str,
        local_path: str,
        overwrite: bool = False,
        retry_times: int = 5,
    ) -> bool:
        """Put a local file into a folder of HDFS, or to a path that ends in its name.

        FileNotFoundError: there is no such file. False: a folder (`multi_upload`
        takes these), or it did not work.
        """
        local = Path(local_path)
        if not local.exists():
            raise FileNotFoundError(f"upload: {local_path} does not exist")
        if local.is_dir():
            return False
        target = hdfs_path.rstrip("/")
        if target.rpartition("/")[2] != local.name:
            target = f"{target}/{local.name}"
        return self._put(local_path, target, overwrite, retry_times)

    def download(
        self,
        hdfs_path: str,
        local_path: str,
        overwrite: bool = False,
        unzip: bool = False,
    ) -> bool:
        """Get a file or a folder. unzip: unpack a zip archive beside itself."""
        local = local_path
        if Path(local).is_dir() and not self.is_dir(hdfs_path):
            local = os.path.join(local, hdfs_path.rstrip("/").rpartition("/")[2])
        done = self._get(hdfs_path, local, overwrite, self._hadoop.tries)
        if done and unzip and Path(local).is_file():
            with zipfile.ZipFile(local) as archive:
                archive.extractall(Path(local).parent)
        return done

    def lsr(
        self, hdfs_path: str, only_file: bool = True, sort: bool = True
    ) -> list[str]:
        """All paths below a folder. sort: by time, oldest first."""
        if not self.is_exist(hdfs_path):
            return []
        found = self._hadoop.entries(hdfs_path, deep=True)
        found = [e for e in found if not (only_file and e.is_dir)]
        if sort:
            found.sort(key=lambda e: e.time)
        return [e.path for e in found]


def getfilelist(path: str) -> list[str]:
    """All files below a local folder."""
    return sorted(str(p) for p in Path(path).rglob("*") if p.is_file())


def multi_download(
    client: HDFSClient,
    hdfs_path: str,
    local_path: str,
    trainer_id: int,
    trainers: int,
    multi_processes: int = 5,
) -> list[str]:
    """Download this trainer's share of the files of a folder; the local paths.

    Every `trainers`-th file, in the order of their paths. RuntimeError: one failed.
    """
    if not 0 <= trainer_id < trainers:
        raise ValueError(f"trainer_id {trainer_id} is not below trainers {trainers}")
    root = hdfs_path.rstrip("/")
    mine = sorted(client.lsr(root))[trainer_id::trainers]
    targets = [os.path.join(local_path, os.path.relpath(f, root)) for f in mine]
    client.make_local_dirs(local_path)

    def get(pair: tuple[str, str]) -> bool:
        return client.download(*pair, overwrite=True)

    done = at_once(get, zip(mine, targets), multi_processes)
    failed = [f for f, well in zip(mine, done) if not well]
    if failed:
        raise RuntimeError(f"multi_download: {failed} did not come")
    return targets


def multi_upload(
    client: HDFSClient,
    hdfs_path: str,
    local_path: str,
    multi_processes: int = 5,
    overwrite: bool = False,
    sync: bool = True,
) -> None:
    """Upload all files below a folder. sync: wait until they are there.

    RuntimeError (if `sync`): one failed.
    """
    files = getfilelist(local_path)

    def put(file: str) -> bool:
        folder = os.path.relpath(os.path.dirname(file), local_path)
        target = hdfs_path.rstrip("/") + ("" if folder == "." else f"/{folder}")
        return client.upload(target, file, overwrite)

    if not sync:
        threading.Thread(
            target=at_once, args=(put, files, multi_processes), name="fluidx-upload"
        ).start()
        return
    done = at_once(put, files, multi_processes)
    failed = [f for f, well in zip(files, done) if not well]
    if failed:
        raise RuntimeError(f"multi_upload: {failed} did not go")
