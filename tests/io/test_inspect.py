"""``fluidx inspect``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import fluidx as fluid
from fluidx.cli import main

MODELS = Path(__file__).parents[1] / "golden" / "models"


@pytest.fixture
def inspect(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments):
        code = main(["inspect", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_for_people(inspect):
    code, out, err = inspect(MODELS / "lenet" / "infer_separate")
    assert (code, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0].endswith("version 1008005, 1 block, 12 ops")
    assert "img float32 [any, 1, 12, 12]" in lines
    assert "elementwise_add 2" in lines
    assert "parameters: 8, 2.2 KiB in separate files" in lines
    assert "fc_0.w_0 float32 [100, 5] 2.0 KiB" in lines
    assert lines[-1] == "every op is supported"


def test_for_programs(inspect):
    code, out, _ = inspect("--json", MODELS / "mlp" / "infer_combined")
    found = json.loads(out)
    assert code == 0
    assert found["supported"] is True
    assert found["version"] == 1008005
    assert found["parameters_in"] == "__params__"
    assert found["parameter_bytes"] == 4 * (8 * 6 + 6 + 6 * 3 + 3)
    assert found["feeds"] == [
        {"name": "x", "dtype": "float32", "shape": [-1, 8], "lod_level": 0}
    ]
    assert [f["shape"] for f in found["fetches"]] == [[-1, 3]]
    assert found["ops"]["mul"] == 2
    assert found["parameters"][1] == {
        "name": "fc_0.w_0",
        "dtype": "float32",
        "shape": [8, 6],
        "bytes": 192,
    }


@pytest.mark.parametrize(
    "path", ["mlp/ckpt", "mlp/ckpt/model", "mlp/ckpt/model.pdmodel"]
)
def test_checkpoints(inspect, path):
    code, out, _ = inspect("--json", MODELS / path)
    found = json.loads(out)
    assert code == 0
    assert found["parameters_in"] == "model.pdparams"
    assert len(found["parameters"]) == 21
    assert found["ops"]["adam"] == 4


def test_given_file_names(inspect, tmp_path):
    source = MODELS / "mlp" / "infer_combined"
    shutil.copy(source / "__model__", tmp_path / "m")
    shutil.copy(source / "__params__", tmp_path / "p")
    shutil.copy(source / "__params__", tmp_path / "q")
    code, out, _ = inspect(
        tmp_path, "--model-filename=m", "--params-filename=p", "--json"
    )
    assert (code, json.loads(out)["parameters_in"]) == (0, "p")
    code, out, _ = inspect(tmp_path / "m", "--json")
    assert (code, json.loads(out)["parameters_in"]) == (0, None)
    code, _, err = inspect(tmp_path)
    assert code == 2
    assert "has no __model__" in err


def unsupported(tmp_path):
    path = MODELS / "mlp" / "infer_separate"
    shutil.copytree(path, tmp_path, dirs_exist_ok=True)
    program = fluid.Program.parse_from_string((path / "__model__").read_bytes())
    op = next(op for op in program.all_ops() if op.type == "tanh")
    op.type, op.wire = "warp[drive]", b""
    (tmp_path / "__model__").write_bytes(program.serialize_to_string())


def test_unsupported_ops(inspect, tmp_path):
    unsupported(tmp_path)
    code, out, _ = inspect(tmp_path)
    assert code == 1
    assert "unsupported ops  warp[drive]" in out
    code, out, _ = inspect(tmp_path, "--json")
    assert code == 1
    assert json.loads(out)["unsupported"] == ["warp[drive]"]
    assert json.loads(out)["supported"] is False


def test_unreadable_programs(inspect, tmp_path):
    (tmp_path / "__model__").write_bytes(b"nonsense")
    code, out, err = inspect(tmp_path)
    assert (code, out) == (2, "")
    assert "not a program" in err
    code, out, _ = inspect(tmp_path, "--json")
    assert (code, json.loads(out)["supported"]) == (2, False)
    code, _, err = inspect(tmp_path / "nowhere")
    assert code == 2
    assert "no file or folder" in err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.unlink(), "'fc_0.w_0' has no value"),
        (lambda p: p.write_bytes(b"bad"), "need 4 bytes, but 3 are left"),
        (
            lambda p: shutil.copy(p.parent / "fc_0.b_0", p),
            "is float32[8, 6] in the program, but float32[6] in separate files",
        ),
        (lambda p: p.write_bytes(p.read_bytes() + b"x"), "1 bytes more"),
    ],
)
def test_damaged_parameters(inspect, tmp_path, change, message):
    path = MODELS / "mlp" / "infer_separate"
    shutil.copytree(path, tmp_path, dirs_exist_ok=True)
    change(tmp_path / "fc_0.w_0")
    code, out, _ = inspect(tmp_path)
    assert code == 2
    assert message in out
    code, out, _ = inspect("--json", tmp_path)
    found = json.loads(out)
    assert (code, found["supported"]) == (2, False)
    assert message in found["problems"][0]
