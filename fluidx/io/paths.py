"""Files: where a variable's is, and writing that leaves the old one or the new."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from .errors import MissingFileError, ModelFileError

__all__ = ["open_read", "open_write", "read_bytes", "var_path"]

Path = str | os.PathLike[str]


def var_path(dirname: Path, name: str) -> str:
    """The file of a variable, which may lie in a folder below (``scope/fc.w_0``).

    ModelFileError: a name that leads out of the directory, as a hostile program
    could have it.
    """
    parts = name.replace(os.sep, "/").split("/")
    if os.path.isabs(name) or ".." in parts or "\0" in name or not name:
        raise ModelFileError(f"variable {name!r} cannot be a file in {dirname}")
    return os.path.join(dirname, name)


@contextlib.contextmanager
def open_read(path: Path) -> Iterator[BinaryIO]:
    """A file to read. MissingFileError, or ModelFileError for what is no file."""
    try:
        file = open(path, "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise MissingFileError(f"there is no file {os.fspath(path)!r}") from None
    except (OSError, ValueError) as error:
        raise ModelFileError(f"cannot read {os.fspath(path)!r}: {error}") from None
    with file:
        yield file


def read_bytes(path: Path) -> bytes:
    """All bytes of a file; errors as in `open_read`."""
    with open_read(path) as file:
        return file.read()


@contextlib.contextmanager
def open_write(path: Path) -> Iterator[BinaryIO]:
    """A file to write; it takes its place when it is complete.

    Folders are made. An old file stays as it is if anything fails on the way.
    """
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    if os.path.isdir(path):
        raise ModelFileError(f"cannot write to {path!r}: it is a directory")
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as device:
            yield device
        return
    draft = f"{path}.{os.getpid()}.tmp"
    file: Any = open(draft, "wb")  # noqa: SIM115
    try:
        with file:
            yield file
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
