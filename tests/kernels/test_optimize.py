"""sgd, momentum, adam, adagrad: dense and sparse, alone and in batches."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite, uniform
from replay_oracle import FOLDER

from fluidx import kernels
from fluidx.kernels import Call, InferContext, InferError, Meta, SelectedRows

RECORDED = json.loads((FOLDER / "update_steps.json").read_text())
RATE = np.array([0.1])
PARAM, GRAD, STATE = normal(4, 3), normal(4, 3, seed=1), uniform(4, 3, seed=2)


def f32(value: float) -> float:
    return float(np.float32(value))


def _sgd(x: dict, attrs: dict) -> dict:
    return {"ParamOut": x["Param"] - x["LearningRate"] * x["Grad"]}


def _momentum(x: dict, attrs: dict) -> dict:
    g, mu, rate = x["Grad"], f32(attrs["mu"]), x["LearningRate"]
    v = mu * x["Velocity"] + g
    step = g + mu * v if attrs["use_nesterov"] else v
    return {"ParamOut": x["Param"] - rate * step, "VelocityOut": v}


def _adam(x: dict, attrs: dict) -> dict:
    b1, b2, g = f32(attrs["beta1"]), f32(attrs["beta2"]), x["Grad"]
    m = b1 * x["Moment1"] + (1 - b1) * g
    v = b2 * x["Moment2"] + (1 - b2) * g * g
    p1, p2 = x["Beta1Pow"], x["Beta2Pow"]
    rate = x["LearningRate"] * np.sqrt(1 - p2) / (1 - p1)
    return {
        "ParamOut": x["Param"] - rate * m / (np.sqrt(v) + attrs["epsilon"]),
        "Moment1Out": m,
        "Moment2Out": v,
        "Beta1PowOut": p1 * b1,
        "Beta2PowOut": p2 * b2,
    }


def _adagrad(x: dict, attrs: dict) -> dict:
    moment = x["Moment"] + x["Grad"] ** 2
    step = x["LearningRate"] * x["Grad"] / (np.sqrt(moment) + attrs["epsilon"])
    return {"ParamOut": x["Param"] - step, "MomentOut": moment}


BASE = {"Param": PARAM, "Grad": GRAD, "LearningRate": RATE}
MOMENTS = {
    "Moment1": normal(4, 3, seed=3),
    "Moment2": STATE,
    "Beta1Pow": np.array([0.81]),
    "Beta2Pow": np.array([0.998]),
}
CASES = [
    OpCase("sgd", BASE, {}, _sgd),
    OpCase("momentum", {**BASE, "Velocity": STATE}, {"mu": 0.9}, _momentum),
    OpCase(
        "momentum",
        {**BASE, "Velocity": STATE},
        {"mu": 0.9, "use_nesterov": True},
        _momentum,
        "nesterov",
    ),
    OpCase("adam", {**BASE, **MOMENTS}, {}, _adam),
    OpCase("adam", {**BASE, **MOMENTS}, {"epsilon": 0.1, "beta1": 0.5}, _adam, "odd"),
    OpCase("adagrad", {**BASE, "Moment": STATE}, {}, _adagrad),
]
test_optimize = suite(CASES)


def _gradient(plain: Any) -> Any:
    if isinstance(plain, dict):
        return SelectedRows(
            np.array(plain["rows"], "i8"), np.array(plain["value"], "f4"), 5
        )
    return np.array(plain, "f4")


@pytest.mark.parametrize("name", RECORDED["single"])
def test_trajectory_equals_the_reference(name: str) -> None:
    recorded = RECORDED["single"][name]
    state = {s: np.array(v, "f4") for s, v in recorded["state"].items()}
    state["Param"] = np.array(RECORDED["param"], "f4")
    rate = np.array([0.1], "f4")
    kind = name.rpartition("-")[2]
    for plain, wanted in zip(RECORDED["gradients"][kind], recorded["steps"]):
        inputs = {**state, "LearningRate": rate, "Grad": _gradient(plain)}
        outs = run_op(recorded["op"], inputs, recorded["attrs"])
        for slot, value in wanted.items():
            assert outs[slot + "Out"] is state[slot], f"{slot}: not in place"
            np.testing.assert_allclose(state[slot], value, 2e-6, 1e-6, err_msg=slot)


UPDATES: dict[str, tuple[str, dict, dict]] = {
    "sgd": ("sgd", {}, {}),
    "momentum": ("momentum", {"Velocity": 0.0}, {"mu": 0.9}),
    "adam": ("adam", {"Moment1": 0.0, "Moment2": 0.0}, {}),
    "adam-lazy": ("adam", {"Moment1": 0.0, "Moment2": 0.0}, {"lazy_mode": True}),
    "adagrad": ("adagrad", {"Moment": 0.0}, {"epsilon": 0.05}),
}


@pytest.mark.parametrize("name", UPDATES)
def test_training_a_sparse_embedding_equals_the_reference(name: str) -> None:
    """Duplicate and padding ids, gradient and update together."""
    op, initial, attrs = UPDATES[name]
    table = np.array(RECORDED["param"], "f4")
    state = {s: np.full_like(table, v) for s, v in initial.items()}
    if op == "adam":
        state["Beta1Pow"] = np.array([0.9], "f4")
        state["Beta2Pow"] = np.array([0.999], "f4")
    look_up = {"padding_idx": 2, "is_sparse": True}
    for chosen, weights, wanted in zip(
        RECORDED["ids"], RECORDED["weights"], RECORDED["trained"][name]
    ):
        ids, d_out = np.array(chosen).reshape(-1, 1), np.array(weights, "f4")
        rows = run_op("lookup_table", {"W": table, "Ids": ids}, look_up)["Out"]
        assert float((rows * d_out).sum()) == pytest.approx(
            np.ravel(wanted["loss"])[0], abs=1e-5
        )
        given = {"W": table, "Ids": ids, "Out@GRAD": d_out}
        grad = run_op("lookup_table_grad", given, look_up)["W@GRAD"]
        inputs = {"Param": table, "Grad": grad, "LearningRate": np.array([0.1], "f4")}
        run_op(op, {**inputs, **state}, attrs)
        np.testing.assert_allclose(table, wanted["table"], 2e-6, 2e-6)


# --- batches, pieces, odd layouts ---------------------------------------------

SHAPES = [(3,), (7, 5), (300, 301), (200_000,), (1,), (2, 1)]


def _inputs(op: str, shape: tuple[int, ...], seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)

    def make() -> Any:
        return rng.random(shape, np.float32) + np.float32(0.1)

    inputs = {"Param": make(), "Grad": make(), "LearningRate": np.full(1, 0.1, "f4")}
    for slot in kernels.find(op).ins:
        if slot.name.endswith("Pow"):
            inputs[slot.name] = np.full(1, 0.9, "f4")
        elif slot.name in ("Velocity", "Moment", "Moment1", "Moment2"):
            inputs[slot.name] = make()
    return inputs


OPS = {
    "sgd": {},
    "momentum": {"mu": 0.9, "use_nesterov": True},
    "adam": {},
    "adagrad": {},
}


@pytest.mark.parametrize("op", OPS)
def test_batch_equals_single_calls_bit_for_bit(op: str) -> None:
    definition = kernels.find(op)
    assert definition.batch == op
    attrs = {**definition.defaults, **OPS[op]}
    run = kernels.batch_of(op)
    assert run is not None
    single = [_inputs(op, shape, i) for i, shape in enumerate(SHAPES)]
    batch = [_inputs(op, shape, i) for i, shape in enumerate(SHAPES)]
    rate = batch[0]["LearningRate"]
    calls = []
    for inputs in batch[:-1]:
        inputs["LearningRate"] = rate
        slots = [inputs.get(s.name) for s in definition.ins]
        calls.append(Call(definition, slots, attrs, {}))
    # another rate in the same batch
    single[-1]["LearningRate"][0] = batch[-1]["LearningRate"][0] = 0.5
    slots = [batch[-1].get(s.name) for s in definition.ins]
    calls.append(Call(definition, slots, attrs, {}))
    results = run(np, None, calls)
    for alone, together, outs in zip(single, batch, results):
        wanted = run_op(op, alone, attrs)
        for slot, got in zip(definition.outs, outs):
            assert got is together[slot.name[:-3]]
            assert np.array_equal(got, wanted[slot.name]), slot.name


@pytest.mark.parametrize("op", OPS)
def test_long_and_strided_arrays_equal_short_ones(op: str) -> None:
    """Pieces and memory layout make no difference to a single bit."""
    whole = _inputs(op, (500, 301), 3)
    slots = [s for s in whole if whole[s].ndim == 2]
    rows = [{s: v.copy() for s, v in whole.items()} for _ in range(500)]
    for i, row in enumerate(rows):
        row.update((s, whole[s][i].copy()) for s in slots)
    turned = {s: v.copy() for s, v in whole.items()}
    turned.update((s, np.asfortranarray(whole[s])) for s in slots)
    run_op(op, whole, OPS[op])
    run_op(op, turned, OPS[op])
    for row in rows:
        run_op(op, row, OPS[op])
    for slot in slots:
        assert np.array_equal(turned[slot], whole[slot]), slot
        assert np.array_equal(np.stack([r[slot] for r in rows]), whole[slot]), slot


@pytest.mark.parametrize("op", OPS)
def test_sparse_equals_dense_where_it_should(op: str) -> None:
    """One step from fresh state with every row present is the dense step."""
    rows = np.array([3, 0, 1, 2, 0, 3])
    value = normal(6, 2).astype("f8")
    dense = {**_inputs(op, (4, 2), 5), "Grad": SelectedRows(rows, value, 4).to_dense()}
    dense = {s: v.astype("f8") for s, v in dense.items()}
    sparse = {s: v.copy() for s, v in dense.items()}
    sparse["Grad"] = SelectedRows(rows, value, 4)
    if op == "adam":  # sparse adam corrects by the powers after the step
        dense["Beta1Pow"] *= f32(0.9)
        dense["Beta2Pow"] *= f32(0.999)
    run_op(op, dense, OPS[op])
    run_op(op, sparse, OPS[op])
    np.testing.assert_allclose(sparse["Param"], dense["Param"], 1e-12)


def test_threads_do_not_share_scratch() -> None:
    wanted = _inputs("adam", (40_000,), 1)
    run_op("adam", wanted, {})
    wrong = []

    def work() -> None:
        for _ in range(20):
            mine = _inputs("adam", (40_000,), 1)
            run_op("adam", mine, {})
            if not np.array_equal(mine["Param"], wanted["Param"]):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_beta_tensors_replace_the_attributes() -> None:
    plain, given = _inputs("adam", (4, 3), 2), _inputs("adam", (4, 3), 2)
    run_op("adam", plain, {"beta1": 0.5, "beta2": 0.75})
    betas = {
        "Beta1Tensor": np.full(1, 0.5, "f4"),
        "Beta2Tensor": np.full(1, 0.75, "f4"),
    }
    run_op("adam", {**given, **betas}, {})
    assert np.array_equal(plain["Param"], given["Param"])
    assert np.array_equal(plain["Beta1Pow"], given["Beta1Pow"])


@pytest.mark.parametrize("height", [7, 5000])
def test_merging_rows(height: int) -> None:
    """Low and tall tables go different ways to the same result."""
    rows = np.array([6, 2, 6, 0, 2, 6])
    value = normal(6, 2, 2)
    merged = SelectedRows(rows, value, height).merged()
    assert merged.rows.tolist() == [0, 2, 6]
    assert merged.height == height
    wanted = [value[3], value[1] + value[4], value[0] + value[2] + value[5]]
    np.testing.assert_allclose(merged.value, wanted, 1e-14)
    single = SelectedRows(np.array([4, 1]), value[:2], height).merged()
    assert single.rows.tolist() == [1, 4]
    np.testing.assert_array_equal(single.value, value[1::-1])


def test_mistakes_are_named() -> None:
    grad = SelectedRows(np.array([1, 9]), np.ones((2, 3), "f4"), 4)
    inputs = {"Param": np.ones((4, 3), "f4"), "LearningRate": np.ones(1, "f4")}
    with pytest.raises(IndexError, match=r"sgd: row 9 is not in \[0, 4\)"):
        run_op("sgd", {**inputs, "Grad": grad}, {})
    grad = SelectedRows(np.array([1]), np.ones((1, 2), "f4"), 4)
    with pytest.raises(ValueError, match=r"sgd: rows of shape \(2,\).*\(4, 3\)"):
        run_op("sgd", {**inputs, "Grad": grad}, {})
    metas = {"Param": [Meta((4, 3))], "Grad": [Meta((4,))]}
    with pytest.raises(InferError, match=r"sgd: Param has shape \(4, 3\), Grad"):
        kernels.find("sgd").infer(InferContext("sgd", metas, {}, {"ParamOut": 1}))
