"""What ``fluidx launch --collective`` runs as each rank: ``rank.py OUT SCRIPT ...``.

It joins MPI before the script begins, so that a script that fails early ends all
ranks instead of leaving them to wait in their start, and writes to the pipe OUT that
the launcher reads ("-": its own output), so that lines of ranks do not mix.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

from .mpi import abort_on_failure, start_mpi

__all__ = ["run"]


def _write_to(path: str) -> None:
    target = os.open(path, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(target, number)
    os.close(target)


def run(output: str, script: list[str]) -> None:
    """Run a script as ``python SCRIPT ...`` would; a failure aborts all ranks."""
    if output != "-":
        _write_to(output)
    mpi = start_mpi()
    abort_on_failure(mpi.COMM_WORLD)
    sys.argv[:] = script
    sys.path[0] = str(Path(script[0]).resolve().parent)
    try:
        runpy.run_path(script[0], run_name="__main__")
    except SystemExit as end:
        status = _status(end.code)
        if status:
            sys.stdout.flush()
            sys.stderr.flush()
            mpi.COMM_WORLD.Abort(status)
        raise


def _status(code: Any) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
