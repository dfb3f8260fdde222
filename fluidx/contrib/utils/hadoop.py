"""Runs ``hadoop fs`` commands."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Entry", "Hadoop"]


@dataclass(frozen=True)
class Entry:
    """One line of a listing."""

    path: str
    is_dir: bool
    time: str = ""

    @property
    def name(self) -> str:
        return self.path.rstrip("/").rpartition("/")[2]


class Hadoop:
    """The command line tool. home: its folder (default $HADOOP_HOME; without one the
    command is found on PATH). configs: ``-D`` settings. tries: how often a failing
    command runs, with `pause` seconds between.
    """

    def __init__(
        self,
        home: str | None,
        configs: Mapping[str, str],
        tries: int = 5,
        pause: float = 3.0,
    ) -> None:
        home = os.environ.get("HADOOP_HOME") if home is None else home
        tool = os.path.join(os.path.expandvars(home), "bin", "hadoop") if home else ""
        self.pre_commands = [tool or "hadoop", "fs"]
        self.pre_commands += [f"-D{k}={v}" for k, v in configs.items()]
        self.tries, self.pause = tries, pause

    def run(self, *command: str, tries: int | None = None) -> tuple[int, str, str]:
        """(exit code, output, error output) of the last try.

        RuntimeError: there is no such tool.
        """
        tries = self.tries if tries is None else tries
        for left in range(max(1, tries) - 1, -1, -1):
            try:
                done = subprocess.run(
                    [*self.pre_commands, *command],
                    capture_output=True,
                    text=True,
                    errors="replace",
                )
            except OSError as error:
                raise RuntimeError(
                    f"{self.pre_commands[0]} cannot be run: {error}; HDFS is reached "
                    "through the hadoop command line tool"
                ) from None
            if done.returncode == 0 or not left:
                break
            time.sleep(self.pause)
        return done.returncode, done.stdout, done.stderr

    def must(self, *command: str) -> str:
        """Its output; RuntimeError where it fails."""
        code, out, error = self.run(*command)
        if code:
            text = error.strip() or out.strip()
            raise RuntimeError(f"hadoop fs {' '.join(command)}: code {code}: {text}")
        return out

    def test(self, flag: str, path: str) -> bool:
        """``-test -e`` and the like: "no" is an answer, so it is asked once."""
        return self.run("-test", flag, path, tries=1)[0] == 0

    def entries(self, path: str, deep: bool = False) -> list[Entry]:
        """What is in a folder, or all below it."""
        lines = self.must("-lsr" if deep else "-ls", path).splitlines()
        return [e for e in map(_entry, lines) if e is not None]


def _entry(line: str) -> Entry | None:
    """Mode, replicas, user, group, size, date, time, path; other lines are remarks."""
    parts = line.split(None, 7)
    if len(parts) != 8:
        return None
    return Entry(parts[7], parts[0].startswith("d"), f"{parts[5]} {parts[6]}")
