"""``fluidx export``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import fluidx as fluid
from fluidx.cli import main

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")

GOLDEN = Path(__file__).parent.parent / "golden" / "models" / "mlp"


def test_saved_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "mlp.onnx"
    for folder, more in (
        ("infer_separate", []),
        ("infer_combined", ["--params-filename", "__params__"]),
    ):
        arguments = ["export", str(GOLDEN / folder), "--to", "onnx", str(out), *more]
        assert main(arguments) == 0
        model = onnx.load(out)
        weights = {
            t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer
        }
        assert {"fc_0.w_0", "fc_1.b_0"} <= set(weights)
        assert np.isfinite(weights["fc_0.w_0"]).all()
    assert f"{out}: x -> " in capsys.readouterr().out
    assert fluid.global_scope().find_var("fc_0.w_0") is None


def test_what_cannot_be_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    x = fluid.data("x", [None, 4])
    label = fluid.data("label", [None, 1], "int64")
    loss = fluid.layers.hsigmoid(x, label, 6)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path / "m"), ["x", "label"], [loss], exe)
    out = tmp_path / "out.onnx"
    assert main(["export", str(tmp_path / "m"), "--to", "onnx", str(out)]) == 1
    assert "op hierarchical_sigmoid: it has no ONNX rule" in capsys.readouterr().err
    assert not out.exists()


def test_no_model(tmp_path: Path):
    arguments = ["export", str(tmp_path / "no"), "--to", "onnx", str(tmp_path / "o")]
    assert main(arguments) == 2


def test_without_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(sys.modules, "onnx", None)
    arguments = ["export", str(GOLDEN / "infer_separate"), "--to", "onnx"]
    assert main([*arguments, str(tmp_path / "o")]) == 2
    assert "pip install 'fluidx[onnx]'" in capsys.readouterr().err
