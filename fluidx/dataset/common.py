"""Files of public data sets: downloaded once, checked, kept.

``DATA_HOME`` is ``~/.cache/paddle/dataset``; the files of module ``mnist`` are in
``DATA_HOME/mnist``. A file that is there and has the right MD5 is used; without a
network, put it there by hand.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import urllib.error
import urllib.request
from pathlib import Path

__all__ = ["DATA_HOME", "DownloadError", "download", "md5file"]

DATA_HOME = os.path.expanduser("~/.cache/paddle/dataset")
TRIES = 3
TIMEOUT_S = 30


class DownloadError(RuntimeError):
    """A file is not there and cannot be fetched, or is not the right one."""


def md5file(fname: str) -> str:
    """The MD5 of a file, in hexadecimal."""
    digest = hashlib.md5(usedforsecurity=False)
    with open(fname, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def download(
    url: str, module_name: str, md5sum: str, save_name: str | None = None
) -> str:
    """The path of a file of a data set, fetched if it is not there.

    DownloadError: it cannot be fetched; the message says which file to put where.
    """
    folder = Path(DATA_HOME) / module_name
    path = folder / (url.rpartition("/")[2] if save_name is None else save_name)
    if path.exists() and md5file(os.fspath(path)) == md5sum:
        return os.fspath(path)
    folder.mkdir(parents=True, exist_ok=True)
    wrong = ""
    for _ in range(TRIES):
        print(f"fetching {url} to {path}", file=sys.stderr, flush=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            _fetch(url, partial)
            found = md5file(os.fspath(partial))
            if found == md5sum:
                os.replace(partial, path)
                return os.fspath(path)
            wrong = f"its MD5 is {found}"
        except (OSError, urllib.error.URLError) as error:
            raise DownloadError(_message(url, path, md5sum, str(error))) from error
        finally:
            partial.unlink(missing_ok=True)
    raise DownloadError(_message(url, path, md5sum, wrong))


def _fetch(url: str, path: Path) -> None:
    with (
        urllib.request.urlopen(url, timeout=TIMEOUT_S) as source,
        open(path, "wb") as to,
    ):
        shutil.copyfileobj(source, to)


def _message(url: str, path: Path, md5sum: str, why: str) -> str:
    return (
        f"{url} could not be fetched: {why}. Put the file {path.name!r} (MD5 {md5sum}) "
        f"into the folder {path.parent} yourself"
    )
