"""File systems that checkpoints go to: this machine's, or one behind ``hadoop``.

Mirrors ``paddle.distributed.fs_wrapper``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from fluidx.contrib.utils.hadoop import Hadoop

__all__ = ["BDFS", "FS", "LocalFS"]


class FS:
    """What a checkpoint needs of a file system; all names are paths on it."""

    def list_dirs(self, fs_path: str) -> list[str]:
        """Names of the folders in a folder; [] where it is none."""
        raise NotImplementedError(f"{self.__class__.__name__}.list_dirs")

    def ls_dir(self, fs_path: str) -> list[str]:
        """Names of all that is in a folder."""
        raise NotImplementedError(f"{self.__class__.__name__}.ls_dir")

    def stat(self, fs_path: str) -> bool:
        """Whether it exists."""
        raise NotImplementedError(f"{self.__class__.__name__}.stat")

    def upload(self, local_path: str, fs_path: str) -> None:
        """Copy from this machine; nothing where that is the file system."""
        raise NotImplementedError(f"{self.__class__.__name__}.upload")

    def download(self, fs_path: str, local_path: str) -> None:
        """Copy to this machine; nothing where that is the file system."""
        raise NotImplementedError(f"{self.__class__.__name__}.download")

    def mkdir(self, fs_path: str) -> None:
        """Make a folder and those above it; it may be there."""
        raise NotImplementedError(f"{self.__class__.__name__}.mkdir")

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        """Rename."""
        raise NotImplementedError(f"{self.__class__.__name__}.mv")

    def rm(self, fs_path: str) -> None:
        """Remove a file."""
        raise NotImplementedError(f"{self.__class__.__name__}.rm")

    def rmr(self, fs_path: str) -> None:
        """Remove a folder with all that is in it."""
        raise NotImplementedError(f"{self.__class__.__name__}.rmr")

    def delete(self, fs_path: str) -> None:
        """Remove a file or a folder, if it is there."""
        raise NotImplementedError(f"{self.__class__.__name__}.delete")

    def need_upload_download(self) -> bool:
        """Whether files are elsewhere."""
        raise NotImplementedError(f"{self.__class__.__name__}.need_upload_download")


class LocalFS(FS):
    """This machine's files."""

    def list_dirs(self, fs_path: str) -> list[str]:
        folder = Path(fs_path)
        if not folder.is_dir():
            return []
        return sorted(p.name for p in folder.iterdir() if p.is_dir())

    def ls_dir(self, fs_path: str) -> list[str]:
        return sorted(p.name for p in Path(fs_path).iterdir())

    def stat(self, fs_path: str) -> bool:
        return Path(fs_path).exists()

    def upload(self, local_path: str, fs_path: str) -> None:
        """Nothing: files are here."""

    def download(self, fs_path: str, local_path: str) -> None:
        """Nothing: files are here."""

    def mkdir(self, fs_path: str) -> None:
        Path(fs_path).mkdir(parents=True, exist_ok=True)

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        Path(fs_src_path).rename(fs_dst_path)

    def rm(self, fs_path: str) -> None:
        Path(fs_path).unlink()

    def rmr(self, fs_path: str) -> None:
        shutil.rmtree(fs_path)

    def delete(self, fs_path: str) -> None:
        if Path(fs_path).is_dir():
            self.rmr(fs_path)
        elif self.stat(fs_path):
            self.rm(fs_path)

    def need_upload_download(self) -> bool:
        return False


class BDFS(FS):
    """Files behind the ``hadoop`` command (of $HADOOP_HOME, or on PATH).

    hdfs_name, hdfs_ugi: of the cluster. time_out, sleep_inter: milliseconds that a
    failing command is tried for, and between tries. RuntimeError: one failed.
    """

    def __init__(
        self,
        hdfs_name: str,
        hdfs_ugi: str,
        time_out: int = 20 * 60 * 1000,
        sleep_inter: int = 1000,
    ) -> None:
        configs = {"fs.default.name": hdfs_name, "hadoop.job.ugi": hdfs_ugi}
        tries = max(1, time_out // max(1, sleep_inter))
        self._hadoop = Hadoop(None, configs, tries, sleep_inter / 1000)

    def list_dirs(self, fs_path: str) -> list[str]:
        if not self.stat(fs_path):
            return []
        return [e.name for e in self._hadoop.entries(fs_path) if e.is_dir]

    def ls_dir(self, fs_path: str) -> list[str]:
        return [e.name for e in self._hadoop.entries(fs_path)]

    def is_dir(self, fs_path: str) -> bool:
        return self._hadoop.test("-d", fs_path)

    def stat(self, fs_path: str) -> bool:
        return self._hadoop.test("-e", fs_path)

    def upload(self, local_path: str, fs_path: str) -> None:
        self._hadoop.must("-put", local_path, fs_path)

    def download(self, fs_path: str, local_path: str) -> None:
        self._hadoop.must("-get", fs_path, local_path)

    def mkdir(self, fs_path: str) -> None:
        if not self.stat(fs_path):
            self._hadoop.must("-mkdir", fs_path)

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        self._hadoop.must("-mv", fs_src_path, fs_dst_path)

    def rm(self, fs_path: str) -> None:
        self._hadoop.must("-rm", fs_path)

    def rmr(self, fs_path: str) -> None:
        self._hadoop.must("-rmr", fs_path)

    def delete(self, fs_path: str) -> None:
        if self.stat(fs_path):
            self._hadoop.must("-rmr" if self.is_dir(fs_path) else "-rm", fs_path)

    def need_upload_download(self) -> bool:
        return True
