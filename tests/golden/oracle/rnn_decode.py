"""Runs under the reference: writes the programs of `rnn_decode_cases` and what they
compute to rnn_decode.json.xz. PYTHON rnn_decode.py [CASE ...]; see dynamic_rnn.py.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

from dynamic_rnn import record  # noqa: E402
from rnn_decode_cases import CASES  # noqa: E402

if __name__ == "__main__":
    record(CASES, os.path.join(HERE, "rnn_decode.json.xz"), sys.argv[1:])
