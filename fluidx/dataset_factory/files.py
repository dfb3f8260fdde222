"""Files of samples, through a shell command if wanted, in chunks of lines."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from .columns import Columns, Slot, parse

__all__ = ["chunks_of"]

CHUNK = 1 << 19
_REMOTE = ("hdfs:", "afs:")


def chunks_of(path: str, command: str, slots: Sequence[Slot]) -> Iterator[Columns]:
    """The samples of a file, some hundred kilobytes of text at a time.

    command: what the shell runs, with the file as input and MultiSlot text as output.
    ValueError: a line is wrong. RuntimeError: the command failed.
    """
    if path.startswith(_REMOTE):
        raise ValueError(
            f"{path}: files must be on this machine; let the pipe command of a local "
            "file fetch remote ones, or copy them first"
        )
    number = 1
    for lines in _lines(path, command):
        yield parse(lines, slots, path, number)
        number += len(lines)


def _lines(path: str, command: str) -> Iterator[list[bytes]]:
    with open(path, "rb") as file:
        if command.strip() in ("", "cat"):
            yield from _read(file)
            return
        with tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(
                command, shell=True, stdin=file, stdout=subprocess.PIPE, stderr=errors
            )
            try:
                yield from _read(child.stdout)
                code = child.wait()
            finally:
                if child.stdout is not None:
                    child.stdout.close()
                if child.poll() is None:
                    child.kill()
                    child.wait()
            if code:
                errors.seek(0)
                said = errors.read()[-2000:].decode(errors="replace").strip()
                raise RuntimeError(
                    f"pipe command {command!r} failed with exit code {code} on "
                    f"{path}: {said or 'it said nothing'}"
                )


def _read(file: Any) -> Iterator[list[bytes]]:
    while lines := file.readlines(CHUNK):
        yield lines
