"""Runs under the reference: writes the programs of `ctc_cases` and what they compute
to ctc.json. PYTHON ctc.py [CASE ...]; see dynamic_rnn.py.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

from ctc_cases import CASES  # noqa: E402
from dynamic_rnn import record  # noqa: E402

if __name__ == "__main__":
    record(CASES, os.path.join(HERE, "ctc.json"), sys.argv[1:])
