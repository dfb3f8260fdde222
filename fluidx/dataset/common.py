"""Files of public data sets: downloaded once, checked, kept.

``DATA_HOME`` is ``~/.cache/paddle/dataset``; the files of module ``mnist`` are in
``DATA_HOME/mnist``. A file that is there and has the right MD5 is used; without a
network, put it there by hand.
"""

from __future__ import annotations

import glob
import hashlib
import importlib
import os
import pkgutil
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from . import samples

__all__ = [
    "DATA_HOME",
    "DownloadError",
    "cluster_files_reader",
    "download",
    "fetch_all",
    "md5file",
    "must_mkdirs",
    "split",
]

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


def must_mkdirs(path: str) -> None:
    """Make a folder, and those above it, unless they are there."""
    os.makedirs(path, exist_ok=True)


def fetch_all() -> None:
    """Download the files of every data set."""
    package = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        fetch = getattr(
            importlib.import_module(f"{__package__}.{module.name}"), "fetch", None
        )
        if fetch is not None:
            fetch()


# ---------------------------------------------------------------- files of samples

#: modules whose functions scripts give as dumper or loader
_PICKLES = ("_pickle", "pickle")


def split(
    reader: Callable[[], Iterator[Any]],
    line_count: int,
    suffix: str = "%05d.pickle",
    dumper: Callable[[Any, Any], Any] = samples.dump,
) -> None:
    """Write a reader's samples to files, `line_count` in each; one more in the first,
    as in the reference.

    suffix: the path, with ``%d`` for the number of the file. dumper: called with a list
    of samples and a file, a binary one by default (`samples.dump`, in place of the
    reference's pickles) and for ``pickle.dump``, a text file for any other.
    """
    if not callable(dumper):
        raise TypeError("dumper should be callable.")
    given, number, count = reader(), 0, line_count + 1
    while lines := list(islice(given, count)):
        with open(suffix % number, "wb" if _is_binary(dumper) else "w") as file:
            dumper(lines, file)
        number, count = number + 1, line_count


def cluster_files_reader(
    files_pattern: str,
    trainer_count: int,
    trainer_id: int,
    loader: Callable[[Any], Any] = samples.load,
) -> Callable[[], Iterator[Any]]:
    """A reader of this trainer's share of the files that `split` has written.

    files_pattern: as for `glob`; every `trainer_count`-th of the sorted files is this
    trainer's, from `trainer_id` on. loader: the counterpart of `split`'s dumper; the
    default reads the reference's files, too, and runs nothing that they say.
    """

    def read() -> Iterator[Any]:
        for path in sorted(glob.glob(files_pattern))[trainer_id::trainer_count]:
            print(f"append file: {path}")
            with open(path, "rb" if _is_binary(loader) else "r") as file:
                yield from loader(file)

    return read


def _is_binary(act: Any) -> bool:
    """Whether a dumper or loader takes binary files."""
    return act in (samples.dump, samples.load) or act.__module__ in _PICKLES
