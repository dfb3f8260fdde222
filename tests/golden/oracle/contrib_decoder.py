"""Runs under the reference: writes the programs of `contrib_decoder_cases` and what
they compute to contrib_decoder.json.xz. PYTHON contrib_decoder.py [CASE ...]; see
dynamic_rnn.py.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

from contrib_decoder_cases import CASES  # noqa: E402
from dynamic_rnn import record  # noqa: E402

if __name__ == "__main__":
    record(CASES, os.path.join(HERE, "contrib_decoder.json.xz"), sys.argv[1:])
