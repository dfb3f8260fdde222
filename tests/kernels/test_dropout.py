"""dropout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import vision_oracle
from opcase import OpCase, TestContext, normal, run_op, suite

from fluidx import kernels
from fluidx.kernels import InferContext, InferError, Meta

IMPLEMENTATIONS = ("downgrade_in_infer", "upscale_in_train")


def at_test(x: Any, a: dict[str, Any]) -> dict[str, Any]:
    down = a["dropout_implementation"] == "downgrade_in_infer"
    return {"Out": x["X"] * (1 - a["dropout_prob"] if down else 1)}


def case(name: str, expected: Any = None, **attrs: Any) -> OpCase:
    return OpCase("dropout", {"X": normal(4, 5)}, attrs, expected, name)


# finite differences need the same mask in every run: a fixed seed
test_dropout = suite(
    [
        case(
            f"{how} {p}",
            dropout_prob=p,
            dropout_implementation=how,
            fix_seed=True,
            seed=3,
        )
        for how in IMPLEMENTATIONS
        for p in (0.0, 0.3, 1.0)
    ]
    + [
        case(
            f"{how} test",
            at_test,
            dropout_prob=0.3,
            dropout_implementation=how,
            is_test=True,
        )
        for how in IMPLEMENTATIONS
    ]
)


@pytest.mark.parametrize("record", vision_oracle.cases("dropout"))
def test_as_the_reference(
    record: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given the same mask, outputs and gradients are the same."""
    mask = record["steps"][0]["Mask"]
    if mask:
        kept = np.array(mask["data"]).reshape(mask["shape"]).astype(bool)

        class Draws:
            def random(self, shape: Any, dtype: str) -> Any:
                # a kept element needs a draw not below dropout_prob
                return np.where(kept, 0.999, 0.0).astype(dtype).reshape(shape)

        monkeypatch.setattr(TestContext, "generator", lambda self, seed=0: Draws())
    vision_oracle.check(record)


def run(x: Any, context: TestContext, **attrs: Any) -> Any:
    definition = kernels.find("dropout")
    every = {**definition.defaults, **attrs, "ctx": context, "out": None}
    given = {k: every[k] for k in definition.keywords}
    seed = attrs.pop("Seed", None)
    return definition.run(np, x, seed, **given)


def test_the_share_of_zeros_is_dropout_prob() -> None:
    x = np.ones((200, 500), "float32")
    for how, kept in zip(IMPLEMENTATIONS, (1.0, 1 / 0.7)):
        out, mask = run(x, TestContext(), dropout_prob=0.3, dropout_implementation=how)
        assert mask.dtype == np.uint8
        assert out.dtype == np.float32
        np.testing.assert_allclose(out, mask * kept, 1e-6)
        # 6 standard deviations of the share of 100,000 draws
        assert abs(mask.mean() - 0.7) < 6 * np.sqrt(0.3 * 0.7 / mask.size)


def test_seeds() -> None:
    x, context = normal(20, 20), TestContext()
    first, second = (run(x, context)[1] for _ in range(2))
    assert (first != second).any()
    for seed in (0, 5, -1):  # a fixed 0 is a seed too
        first, second = (run(x, context, fix_seed=True, seed=seed)[1] for _ in "ab")
        np.testing.assert_array_equal(first, second)
    first, second = (run(x, context, seed=5)[1] for _ in "ab")  # not fixed: unused
    assert (first != second).any()
    tensor = np.array([9], "int32")
    first, second = (run(x, context, Seed=tensor)[1] for _ in "ab")
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("is_test", [False, True])
def test_output_buffer(is_test: bool) -> None:
    """The kernel may write over its input."""
    x = normal(4, 5)
    attrs = {"fix_seed": True, "seed": 1, "is_test": is_test}
    wanted = run_op("dropout", {"X": x.copy()}, attrs)["Out"]
    definition = kernels.find("dropout")
    every = {**definition.defaults, **attrs, "ctx": TestContext(), "out": x}
    out, _ = definition.run(np, x, None, **{k: every[k] for k in definition.keywords})
    assert out is x
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"dropout_prob": 1.5}, "dropout_prob"),
        ({"dropout_implementation": "none"}, "dropout_implementation"),
    ],
)
def test_refusals(attrs: Any, message: str) -> None:
    definition = kernels.find("dropout")
    context = InferContext(
        "dropout", {"X": [Meta((2, 3))]}, {**definition.defaults, **attrs}, {"Out": 1}
    )
    with pytest.raises(InferError, match=message):
        definition.infer(context)
