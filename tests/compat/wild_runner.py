"""Runs scripts as ``fluidx run`` does, each in a fork: fluidx is imported once.

A line of standard input is a list in JSON: a folder, then the words behind ``fluidx
run``. The script runs in the folder; ``stdout`` and ``stderr`` there are what it
prints. A line of standard output is its exit code.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import NoReturn

from fluidx import kernels
from fluidx.cli import main

kernels.find("relu")  # all ops are declared before the first fork


def run(folder: str, words: list[str]) -> NoReturn:
    """Never returns: the process ends with the script."""
    code = 1
    try:
        os.chdir(folder)
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1) for n in (1, 2))
        code = main(["run", *words]) or 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


for line in sys.stdin:
    where, *rest = json.loads(line)
    child = os.fork()
    if not child:
        run(where, rest)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
