"""Runs the scripts of examples/compat under the reference, and keeps what they print.

    python compat_scripts.py [NAME ...]

Output: tests/golden/compat/NAME.txt, one file per line of RUNS.
"""

from __future__ import print_function

import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(os.path.dirname(HERE), "compat")
SCRIPTS = os.path.join(HERE, "..", "..", "..", "examples", "compat")


def runs():
    """(name, script, arguments) of every run, from the list beside the outputs."""
    with open(os.path.join(GOLDEN, "RUNS")) as lines:
        for line in lines:
            words = line.split()
            if words:
                yield words[0], words[1], words[2:]


def main(wanted):
    folder = tempfile.mkdtemp()
    env = dict(os.environ, OMP_NUM_THREADS="1")
    for name, script, arguments in runs():
        if wanted and name not in wanted:
            continue
        command = [sys.executable, os.path.abspath(os.path.join(SCRIPTS, script))]
        with open(os.path.join(GOLDEN, name + ".txt"), "w") as out:
            subprocess.check_call(command + arguments, stdout=out, env=env, cwd=folder)
        print(name)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
