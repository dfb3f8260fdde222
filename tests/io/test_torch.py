"""Tensors to PyTorch and back without a copy; its safetensors reader on our files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx import layers
from fluidx.io import dlpack
from fluidx.io.safetensors import load_file, save_file

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

DTYPES = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "float16")


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_looks_at_our_memory_and_back(dtype: str) -> None:
    ours = fluid.LoDTensor(np.arange(6).astype(dtype).reshape(2, 3))
    theirs = torch.from_dlpack(ours)
    assert str(theirs.dtype) == f"torch.{dtype}"
    assert theirs.data_ptr() == ours.value.ctypes.data
    back = dlpack.from_dlpack(theirs)
    assert back.value.ctypes.data == theirs.data_ptr()
    theirs[0, 1] = 9
    assert back.value[0, 1] == ours.value[0, 1] == 9
    capsule = torch.utils.dlpack.from_dlpack(dlpack.to_dlpack(ours))
    assert capsule.data_ptr() == ours.value.ctypes.data


def _net() -> tuple[Any, Any, Any]:
    x = fluid.data("x", [None, 3])
    y = layers.fc(x, 2, param_attr="w", bias_attr=False)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, x, y


def test_feeds_and_fetches() -> None:
    exe, x, y = _net()
    given = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    fed, value = exe.run(feed={"x": given}, fetch_list=[x, y])
    weight = torch.from_dlpack(fluid.global_scope().find_var("w").get_tensor())
    theirs = torch.from_dlpack(value)
    assert theirs.data_ptr() == value.ctypes.data
    torch.testing.assert_close(theirs, given @ weight)
    np.testing.assert_array_equal(fed, given.numpy())


def test_a_feed_is_not_copied_on_its_way_in() -> None:
    """A reader of the fed array sees the very memory of the tensor."""
    exe, x, y = _net()
    given = torch.ones(2, 3)
    seen = []
    out = layers.data("seen", [3])
    layers.py_func(lambda a: (seen.append(a.ctypes.data), a)[1], x, out)
    exe.run(feed={"x": given}, fetch_list=[y])
    assert seen == [given.data_ptr()]


def test_tensors_that_cannot_be_shared() -> None:
    exe, _, y = _net()
    leaf = torch.ones(2, 3, requires_grad=True)
    with pytest.raises((RuntimeError, BufferError), match="grad"):
        exe.run(feed={"x": leaf}, fetch_list=[y])
    strided = torch.arange(12.0).reshape(4, 3)[::2]
    (value,) = exe.run(feed={"x": strided}, fetch_list=[y])
    (same,) = exe.run(feed={"x": strided.contiguous()}, fetch_list=[y])
    np.testing.assert_array_equal(value, same)


def test_training_what_torch_holds() -> None:
    """A parameter in PyTorch's memory: steps here change it there."""
    exe, _, y = _net()
    weight = torch.zeros(3, 2)
    var = fluid.global_scope().find_var("w")
    var.value = dlpack.from_dlpack(weight).value
    fluid.optimizer.SGD(0.5).minimize(layers.mean(y))
    rate = [v for v in fluid.default_main_program().list_vars() if v.persistable]
    exe.run(fluid.default_startup_program().clone(), fetch_list=[])
    var.value = dlpack.from_dlpack(weight).value
    exe.run(feed={"x": np.ones((2, 3), "f4")})
    assert len(rate) == 2
    assert weight.flatten().tolist() == [-0.25] * 6


def test_safetensors_of_torch(tmp_path: Path) -> None:
    """Both ways, where its package is there."""
    theirs = pytest.importorskip(
        "safetensors.torch", reason="safetensors is not installed"
    )
    arrays = {d: np.arange(4).astype(d).reshape(2, 2) for d in (*DTYPES, "bool")}
    save_file(arrays, tmp_path / "ours")
    found = theirs.load_file(tmp_path / "ours")
    assert sorted(found) == sorted(arrays)
    for name, array in arrays.items():
        assert str(found[name].dtype) == f"torch.{name}"
        np.testing.assert_array_equal(found[name].numpy(), array)
    theirs.save_file(found, tmp_path / "theirs", metadata={"format": "pt"})
    back = load_file(tmp_path / "theirs")
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)
