"""batch_norm, layer_norm, group_norm, instance_norm, lrn, norm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import vision_oracle
from opcase import OpCase, normal, run_op, suite, uniform
from strict_xp import strict_xp

from fluidx import kernels
from fluidx.kernels import GradContext, InferContext, InferError, Meta


def axes_of(x: np.ndarray, last: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Axes to reduce and shape to broadcast for per-channel statistics."""
    channel = x.ndim - 1 if last else 1
    shape = [1] * x.ndim
    shape[channel] = x.shape[channel]
    return tuple(i for i in range(x.ndim) if i != channel), tuple(shape)


def plain_batch_norm(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    axes, wide = axes_of(x["X"], a["data_layout"] == "NHWC")
    mean, variance = x["X"].mean(axes), x["X"].var(axes)
    m = a["momentum"]
    if x.get("MomentumTensor") is not None:
        m = float(x["MomentumTensor"][0])
    out = {
        "MeanOut": m * x["Mean"] + (1 - m) * mean,
        "VarianceOut": m * x["Variance"] + (1 - m) * variance,
        "SavedMean": mean,
        "SavedVariance": 1 / np.sqrt(variance + a["epsilon"]),
    }
    frozen = a["is_test"] and not a["trainable_statistics"]
    if a["use_global_stats"] or frozen:
        mean, variance = x["Mean"], x["Variance"]
        out = {"MeanOut": mean, "VarianceOut": variance}
    normal = (x["X"] - mean.reshape(wide)) / np.sqrt(
        variance.reshape(wide) + a["epsilon"]
    )
    out["Y"] = normal * x["Scale"].reshape(wide) + x["Bias"].reshape(wide)
    return out


def batch(name: str, *shape: int, more: Any = None, **attrs: Any) -> OpCase:
    channels = shape[-1 if attrs.get("data_layout") == "NHWC" else 1]
    inputs = {
        "X": normal(*shape) * 2 + 3,
        "Scale": normal(channels, seed=1),
        "Bias": normal(channels, seed=2),
        "Mean": normal(channels, seed=3),
        "Variance": uniform(channels, low=0.5, high=2, seed=4),
        **(more or {}),
    }
    return OpCase(
        "batch_norm", inputs, attrs, plain_batch_norm, name, weights=["Y"], rtol=2e-5
    )


def plain_layer_norm(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    shape, begin = x["X"].shape, a["begin_norm_axis"]
    rows = x["X"].reshape(int(np.prod(shape[:begin])), -1)
    mean, variance = rows.mean(1), rows.var(1)
    y = (rows - mean[:, None]) / np.sqrt(variance[:, None] + a["epsilon"])
    y = y * x.get("Scale", 1) + x.get("Bias", 0)
    return {"Y": y.reshape(shape), "Mean": mean, "Variance": variance}


def layer(name: str, slots: str = "", **attrs: Any) -> OpCase:
    width = 20 if attrs.get("begin_norm_axis", 1) == 1 else 5
    inputs = {"X": normal(3, 4, 5) + 2}
    for i, slot in enumerate(slots.split()):
        inputs[slot] = normal(width, seed=i + 1)
    return OpCase("layer_norm", inputs, attrs, plain_layer_norm, name)


def plain_group_norm(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    images = x["X"]
    if a["data_layout"] == "NHWC":
        images = images.transpose(0, 3, 1, 2)
    n, channels = images.shape[:2]
    y = np.empty_like(images)
    mean, variance = np.empty((2, n, a["groups"]))
    size = -(-channels // a["groups"])
    for g in range(a["groups"]):
        part = images[:, g * size : (g + 1) * size].reshape(n, -1)
        mean[:, g], variance[:, g] = part.mean(1), part.var(1)
        y[:, g * size : (g + 1) * size] = (
            images[:, g * size : (g + 1) * size] - mean[:, g].reshape(n, 1, 1, 1)
        ) / np.sqrt(variance[:, g].reshape(n, 1, 1, 1) + a["epsilon"])
    for slot, combine in (("Scale", np.multiply), ("Bias", np.add)):
        if slot in x:
            y = combine(y, x[slot].reshape(1, -1, 1, 1))
    if a["data_layout"] == "NHWC":
        y = y.transpose(0, 2, 3, 1)
    return {"Y": y, "Mean": mean, "Variance": variance}


def group(name: str, *shape: int, slots: str = "Scale Bias", **attrs: Any) -> OpCase:
    channels = shape[3 if attrs.get("data_layout") == "NHWC" else 1]
    inputs = {"X": normal(*shape)}
    for i, slot in enumerate(slots.split()):
        inputs[slot] = normal(channels, seed=i + 1)
    return OpCase("group_norm", inputs, attrs, plain_group_norm, name)


def plain_instance_norm(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    axes = tuple(range(2, x["X"].ndim))
    wide = (1, -1) + (1,) * len(axes)
    mean = x["X"].mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(x["X"].var(axes, keepdims=True) + a["epsilon"])
    y = (x["X"] - mean) * inverse * x["Scale"].reshape(wide) + x["Bias"].reshape(wide)
    return {"Y": y, "SavedMean": mean.ravel(), "SavedVariance": inverse.ravel()}


def instance(*shape: int) -> OpCase:
    inputs = {"X": normal(*shape), "Scale": normal(3, seed=1), "Bias": normal(3)}
    return OpCase("instance_norm", inputs, {}, plain_instance_norm, f"{shape}")


def plain_lrn(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    images = x["X"] if a["data_format"] != "NHWC" else x["X"].transpose(0, 3, 1, 2)
    middle = np.full_like(images, a["k"])
    reach = a["n"] // 2
    for c in range(images.shape[1]):
        near = images[:, max(c - reach, 0) : c + reach + 1]
        middle[:, c] += a["alpha"] * (near**2).sum(1)
    out = images * middle ** -a["beta"]
    if a["data_format"] == "NHWC":
        out, middle = out.transpose(0, 2, 3, 1), middle.transpose(0, 2, 3, 1)
    return {"Out": out, "MidOut": middle}


def lrn(name: str, *shape: int, **attrs: Any) -> OpCase:
    attrs = {"alpha": 0.3, **attrs}
    return OpCase("lrn", {"X": normal(*shape)}, attrs, plain_lrn, name, weights=["Out"])


def plain_norm(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    length = np.sqrt((x["X"] ** 2).sum(a["axis"], keepdims=True) + a["epsilon"])
    return {"Norm": length, "Out": x["X"] / length}


CASES = [
    batch("4-d", 3, 2, 2, 3),
    batch("2-d", 5, 3),
    batch("3-d", 3, 2, 4, momentum=0.5, epsilon=0.001),
    batch("5-d", 2, 2, 2, 1, 2),
    batch("nhwc", 2, 2, 3, 4, data_layout="NHWC"),
    batch("test", 3, 2, 2, 3, is_test=True),
    batch("test nhwc", 3, 2, 2, 3, is_test=True, data_layout="NHWC"),
    batch("trainable", 3, 2, 2, 3, is_test=True, trainable_statistics=True),
    batch("global", 3, 2, 2, 3, use_global_stats=True),
    batch("momentum", 5, 3, more={"MomentumTensor": np.array([0.25])}),
    layer("plain", "Scale Bias"),
    layer("bare"),
    layer("scale", "Scale", begin_norm_axis=2),
    layer("bias", "Bias", begin_norm_axis=2, epsilon=0.001),
    group("plain", 2, 4, 2, 3, groups=2),
    group("one group", 2, 3, 2, 2, groups=1, slots="Scale"),
    group("each channel", 2, 3, 2, 2, groups=3, slots="Bias"),
    group("nhwc", 2, 2, 3, 4, groups=2, data_layout="NHWC"),
    group("uneven", 2, 5, 2, 2, groups=2),
    group("uneven nhwc", 2, 1, 2, 5, groups=3, data_layout="NHWC"),
    instance(2, 3, 2, 2),
    instance(2, 3, 4),
    lrn("plain", 2, 7, 1, 2),
    lrn("wide", 2, 3, 1, 2, n=9, k=1.0, beta=0.5),
    lrn("nhwc", 1, 2, 1, 6, n=3, data_format="NHWC"),
    OpCase("norm", {"X": normal(3, 4, 2)}, {"axis": 1}, plain_norm, weights=["Out"]),
    OpCase(
        "norm",
        {"X": normal(3, 4)},
        {"axis": -1, "epsilon": 0.1},
        plain_norm,
        weights=["Out"],
    ),
]

test_norm = suite(CASES)

# what the reference leaves in these when it does not compute them is its own affair
UNDEFINED = ("SavedMean", "SavedVariance")


@pytest.mark.parametrize("record", vision_oracle.cases("norm"))
def test_as_the_reference(record: dict[str, Any]) -> None:
    frozen = record["name"] in ("test", "global")
    vision_oracle.check(record, UNDEFINED if frozen else (), 5e-5)


def test_running_statistics_are_updated_in_place() -> None:
    inputs = {k: v.astype("float32") for k, v in batch("", 3, 2, 2, 3).inputs.items()}
    outs = run_op("batch_norm", inputs, {})
    assert outs["MeanOut"] is inputs["Mean"]
    assert outs["VarianceOut"] is inputs["Variance"]
    assert all(outs[s].dtype == np.float32 for s in ("Y", "MeanOut", "SavedVariance"))


def test_batch_statistics_far_from_zero_keep_their_digits() -> None:
    """A mean 10,000 times the deviation must not drown the variance (float32)."""
    inputs = {k: v.astype("float32") for k, v in batch("", 8, 2, 4, 4).inputs.items()}
    inputs["X"] = (normal(8, 2, 4, 4) + 1e4).astype("float32")
    wanted = inputs["X"].astype("float64").var((0, 2, 3))
    got = run_op("batch_norm", inputs, {"momentum": 0.0})["VarianceOut"]
    np.testing.assert_allclose(got, wanted, 1e-3)


def specs(**attrs: Any) -> Any:
    definition = kernels.find("batch_norm")
    inputs = {s.name: [s.name.lower()] for s in definition.ins[:5]}
    outputs = {s.name: [s.name.lower()] for s in definition.outs[:5]}
    every = {**definition.defaults, **attrs}
    frozen = frozenset(["x"])
    (spec,) = definition.grad_specs(
        GradContext("batch_norm", inputs, outputs, every, frozen)
    )
    return spec


def test_batch_norm_gradient_takes_running_statistics_only_where_used() -> None:
    plain = specs()
    assert list(plain.inputs) == [
        "X",
        "Scale",
        "Bias",
        "SavedMean",
        "SavedVariance",
        "Y@GRAD",
    ]
    assert plain.outputs == {
        "X@GRAD": ["@EMPTY@"],
        "Scale@GRAD": ["scale@GRAD"],
        "Bias@GRAD": ["bias@GRAD"],
    }
    assert specs(use_global_stats=True).inputs["Variance"] == ["varianceout"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_under_strict_xp(case: OpCase) -> None:
    """The gradient kernel uses what CuPy has; float32 stays float32."""
    inputs = {k: v.astype("float32") for k, v in case.inputs.items()}
    outs = run_op(case.op, inputs, case.attrs)
    definition = kernels.find(f"{case.op}_grad")
    values = {**inputs, **outs}
    for slot in definition.ins:
        if slot.name.endswith("@GRAD"):
            like = outs[slot.name[:-5]]
            values[slot.name] = normal(*like.shape).astype("float32")
    given = {s.name: values[s.name] for s in definition.ins if s.name in values}
    plain = run_op(definition.type, given, case.attrs)
    strict = run_op(definition.type, given, case.attrs, xp=strict_xp())
    for slot, value in plain.items():
        assert value.dtype == np.float32
        np.testing.assert_allclose(strict[slot], value, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("type", "shapes", "attrs", "message"),
    [
        ("batch_norm", {"X": (2, 3, 4, 4), "Scale": (4,)}, {}, r"Scale needs .*\(3,\)"),
        ("batch_norm", {"X": (2,)}, {}, "2 to 5 dimensions"),
        ("batch_norm", {"X": (2, 3)}, {"epsilon": 0.1}, "epsilon"),
        ("layer_norm", {"X": (2, 3)}, {"begin_norm_axis": 2}, "begin_norm_axis"),
        ("layer_norm", {"X": (2, 3), "Bias": (2,)}, {}, r"Bias needs shape \(3,\)"),
        ("group_norm", {"X": (2, 3, 1, 1)}, {"groups": 4}, "4 groups"),
        ("lrn", {"X": (2, 3, 1, 1)}, {"n": 4}, "n must be odd"),
        ("norm", {"X": (2, 3)}, {"axis": 2}, "axis 2"),
    ],
)
def test_refusals(type: str, shapes: Any, attrs: Any, message: str) -> None:
    definition = kernels.find(type)
    metas = {slot: [Meta(shape)] for slot, shape in shapes.items()}
    context = InferContext(type, metas, {**definition.defaults, **attrs}, {"Y": 1})
    with pytest.raises(InferError, match=message):
        definition.infer(context)
