"""Files of samples, through shell commands if wanted, in chunks of lines."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .columns import Columns, Slot, parse
from .prefixes import Prefixes

__all__ = ["Source", "chunks_of"]

CHUNK = 1 << 19
_REMOTE = ("hdfs:", "afs:")
#: how a process ends whose reader has had enough; the second from a shell
_BROKEN_PIPE = (-signal.SIGPIPE, 128 + signal.SIGPIPE)


@dataclass(frozen=True)
class Source:
    """How files are read.

    command: what the shell runs, with a file as input and MultiSlot text as output.
    hdfs: (name of the file system, "user,password") for files that lie there, which
    ``hadoop fs -cat`` reads. download: a shell command in its place, which gets the
    file's name as last argument. prefixes: what stands before the slots of a line.
    """

    command: str = "cat"
    hdfs: tuple[str, str] | None = None
    download: str = ""
    prefixes: Prefixes = field(default_factory=Prefixes)

    def reader(self, path: str) -> list[str] | None:
        """The command that writes a remote file to its output; None: it is here.

        RuntimeError: there is no ``hadoop``.
        """
        if not path.startswith(_REMOTE):
            return None
        if self.download:
            return ["/bin/sh", "-c", f'{self.download} "$1"', "sh", path]
        tool = shutil.which("hadoop")
        if tool is None:
            raise RuntimeError(
                f"{path}: the command line tool `hadoop` reads such files, and is not "
                "on the PATH; install it, name another with set_download_cmd, or copy "
                "the files to this machine"
            )
        made = [tool, "fs"]
        if self.hdfs is not None:
            made += [f"-Dfs.default.name={self.hdfs[0]}"]
            made += [f"-Dhadoop.job.ugi={self.hdfs[1]}"]
        return [*made, "-cat", path]


def chunks_of(path: str, source: Source, slots: Sequence[Slot]) -> Iterator[Columns]:
    """The samples of a file, some hundred kilobytes of text at a time.

    ValueError: a line is wrong. RuntimeError: a command failed, or is not there.
    """
    number = 1
    for lines in _lines(path, source):
        bare = source.prefixes.bare(lines, path, number) if source.prefixes else lines
        yield parse(bare, slots, path, number)
        number += len(lines)


def _lines(path: str, source: Source) -> Iterator[list[bytes]]:
    with contextlib.ExitStack() as stack:
        reader = source.reader(path)
        if reader is None:
            file: Any = stack.enter_context(open(path, "rb"))
        else:
            file = stack.enter_context(_running(reader, None, path))
        if source.command.strip() not in ("", "cat"):
            given, file = (
                file,
                stack.enter_context(_running(source.command, file, path)),
            )
            given.close()  # else who writes to it waits where the command has ended
        while lines := file.readlines(CHUNK):
            yield lines


@contextlib.contextmanager
def _running(command: str | list[str], given: Any, path: str) -> Iterator[Any]:
    """The output of a command, whose input is `given`. It dies with the block.

    RuntimeError: all was read, and it failed.
    """
    with tempfile.TemporaryFile() as errors:
        shell = isinstance(command, str)
        child = subprocess.Popen(
            command, shell=shell, stdin=given, stdout=subprocess.PIPE, stderr=errors
        )
        try:
            yield child.stdout
            code = child.wait()
        finally:
            if child.stdout is not None:
                child.stdout.close()
            if child.poll() is None:
                child.kill()
                child.wait()
        if code and not (isinstance(command, list) and code in _BROKEN_PIPE):
            errors.seek(0)
            said = errors.read()[-2000:].decode(errors="replace").strip()
            what = f"pipe command {command!r}" if shell else " ".join(command)
            raise RuntimeError(
                f"{what} failed with exit code {code} on {path}: "
                f"{said or 'it said nothing'}"
            )
