"""What the reference found when it loaded models that fluidx wrote.

``golden/load_models.json`` is its record; here the same models are written again: the
files of values must be the very ones that it loaded, the programs must have the ops
that it read.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import model_files
import pytest

import fluidx as fluid

RECORD = json.loads(
    (Path(__file__).parents[1] / "golden" / "load_models.json").read_text()
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    model_files.write(made)
    return made


def test_results_agree():
    assert len(RECORD["far"]) == 13
    assert max(RECORD["far"].values()) < 1e-5
    exact = [v for k, v in RECORD["far"].items() if k.startswith("variables/")]
    assert exact == [0.0] * 8


def test_files_of_values_are_those_that_were_loaded(folder):
    found = {}
    for path in folder.rglob("*"):
        program = path.name == "__model__" or path.suffix in (".pdmodel", ".npz")
        if path.is_file() and not program:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(folder))] = digest
    assert found == RECORD["sha256"]


@pytest.mark.parametrize("name", RECORD["ops"])
def test_programs_have_the_ops_that_were_read(folder, name):
    data = (folder / name / "__model__").read_bytes()
    program = fluid.Program.parse_from_string(data)
    found = [
        [
            op.type,
            {s: n for s, n in op.inputs.items() if n},
            {s: n for s, n in op.outputs.items() if n},
        ]
        for op in program.global_block().ops
    ]
    assert found == RECORD["ops"][name]
