"""Runs under the reference: writes the programs of `basic_rnn_cases` and what they
compute to basic_rnn.json.xz. PYTHON basic_rnn.py [CASE ...]; see dynamic_rnn.py.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

from basic_rnn_cases import CASES  # noqa: E402
from dynamic_rnn import record  # noqa: E402

if __name__ == "__main__":
    record(CASES, os.path.join(HERE, "basic_rnn.json.xz"), sys.argv[1:])
