"""Runs the scripts of tests/compat/wild under the reference, keeps what they print.

    python wild.py [NAME ...]

Output: wild/NAME.txt beside this file, one for each line of tests/compat/wild/RUNS.
"""

from __future__ import print_function

import os
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.abspath(os.path.join(HERE, "..", "..", "compat", "wild"))


def main(wanted):
    env = dict(os.environ, OMP_NUM_THREADS="1", CPU_NUM="1")
    with open(os.path.join(SCRIPTS, "RUNS")) as lines:
        runs = [shlex.split(line) for line in lines]
    for run in runs:
        if wanted and run[0] not in wanted:
            continue
        folder = tempfile.mkdtemp()
        command = [sys.executable, "-W", "ignore", os.path.join(SCRIPTS, run[1])]
        with open(os.path.join(HERE, "wild", run[0] + ".txt"), "w") as out:
            subprocess.check_call(command + run[2:], stdout=out, env=env, cwd=folder)
        shutil.rmtree(folder)
        print(run[0])


if __name__ == "__main__":
    main(sys.argv[1:])
