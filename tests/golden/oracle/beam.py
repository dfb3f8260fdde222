"""Runs under the reference: writes the programs of `beam_cases` and what they compute
to beam.json. PYTHON beam.py [CASE ...]; see dynamic_rnn.py.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

from beam_cases import CASES  # noqa: E402
from dynamic_rnn import record  # noqa: E402

if __name__ == "__main__":
    record(CASES, os.path.join(HERE, "beam.json"), sys.argv[1:])
