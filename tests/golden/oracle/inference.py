"""Runs `inference_cases` under the reference: inference.json beside this file."""

import json
import os
import tempfile

import paddle.fluid as fluid
from inference_cases import all_cases
from paddle.fluid import core

HERE = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    found = all_cases(fluid, core, tempfile.mkdtemp())
    with open(os.path.join(HERE, "inference.json"), "w") as file:
        json.dump(found, file, sort_keys=True)
        file.write("\n")
