"""Recurrent ops answer as the reference does, with gradients."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from opcase import OpCase, normal, suite
from replay_oracle import oracle_suite

test_lstm = oracle_suite("rnn_ops", "lstm")
test_lstmp = oracle_suite("rnn_ops", "lstmp")
test_units = oracle_suite("rnn_ops", "lstm_unit")
test_gru = oracle_suite("rnn_ops", "gru")
test_gru_unit = oracle_suite("rnn_ops", "gru_unit")


# --- the same by plain loops in float64, with gradients by finite differences ----


def _sigmoid(x):
    return (np.tanh(x / 2) + 1) / 2


def _along(x, lod, start, step, reverse=False):
    """Run step(row, state) -> (state, row of the result) along each sequence."""
    out = [None] * len(x)
    for s, (a, b) in enumerate(pairwise(lod[0])):
        state = start(s)
        for row in reversed(range(a, b)) if reverse else range(a, b):
            state, out[row] = step(x[row], state)
    return out


def _lstm(lod):
    def expected(inputs, attrs):
        w, bias = inputs["Weight"], inputs["Bias"][0]
        d = len(w)
        peep = np.zeros((3, d))
        if attrs["use_peepholes"]:
            peep = bias[4 * d :].reshape(3, d)

        def start(s):
            if "H0" in inputs:
                return inputs["H0"][s], inputs["C0"][s]
            return np.zeros(d), np.zeros(d)

        def step(x, state):
            h, c = state
            g = (x + h @ w + bias[: 4 * d]).reshape(4, d)
            i = _sigmoid(g[1] + c * peep[0])
            f = _sigmoid(g[2] + c * peep[1])
            c = f * c + i * np.tanh(g[0])
            h = _sigmoid(g[3] + c * peep[2]) * np.tanh(c)
            return (h, c), (h, c)

        rows = _along(inputs["Input"], lod, start, step, attrs["is_reverse"])
        shape = (len(rows), d)
        return {
            "Hidden": np.array([h for h, _ in rows]).reshape(shape),
            "Cell": np.array([c for _, c in rows]).reshape(shape),
        }

    return expected


def _gru(lod):
    def expected(inputs, attrs):
        w, d = inputs["Weight"].reshape(-1), len(inputs["Weight"])
        gates, last = w[: 2 * d * d].reshape(d, 2 * d), w[2 * d * d :].reshape(d, d)

        def step(x, h):
            x = x + inputs["Bias"][0]
            u, r = _sigmoid(x[: 2 * d] + h @ gates).reshape(2, d)
            new = np.tanh(x[2 * d :] + (r * h) @ last)
            h = (1 - u) * h + u * new
            return h, h

        def start(s):
            return np.zeros(d)

        rows = _along(inputs["Input"], lod, start, step)
        return {"Hidden": np.array(rows).reshape(-1, d)}

    return expected


def _lstm_case(lod, scale=1.0, start=False, **attrs):
    d, rows, count = 3, lod[0][-1], len(lod[0]) - 1
    x = {"Input": normal(rows, 4 * d) * scale}
    if start:
        x |= {"H0": normal(count, d, seed=4), "C0": normal(count, d, seed=5)}
    x |= {"Weight": normal(d, 4 * d, seed=1), "Bias": normal(1, 7 * d, seed=2)}
    attrs = {"use_peepholes": True, "is_reverse": False, **attrs}
    if not attrs["use_peepholes"]:
        x["Bias"] = x["Bias"][:, : 4 * d]
    far = {"grad": ()} if scale > 100 or not rows else {"weights": ["Hidden"]}
    return OpCase("lstm", x, attrs, _lstm(lod), lod={"Input": lod}, **far)


def _gru_case(lod, scale=1.0):
    x = {"Input": normal(lod[0][-1], 9) * scale, "Weight": normal(3, 9, seed=1)}
    x["Bias"] = normal(1, 9, seed=2)
    far = {"grad": ()} if scale > 100 or not lod[0][-1] else {}
    return OpCase("gru", x, {}, _gru(lod), lod={"Input": lod}, **far)


def _holding(value):
    """A case whose second sequence starts with this: the first is not touched."""
    case = _lstm_case([[0, 2, 4]])
    case.inputs["Input"][2] = value
    case.grad = ()
    return case


def _projected(lod):
    """By lstm: with the identity as projection lstmp is lstm."""

    def expected(inputs, attrs):
        made = _lstm(lod)(inputs, attrs)
        return {"Projection": made["Hidden"], "Cell": made["Cell"]}

    return expected


def _lstmp_case(lod, **attrs):
    given = _lstm_case(lod, **attrs)
    given.inputs["ProjWeight"] = np.eye(3)
    return OpCase(
        "lstmp",
        given.inputs,
        {**given.attrs, "proj_activation": "identity"},
        _projected(lod),
        lod=given.lod,
        weights=["Projection"],
        grad=given.grad,
    )


def _lstm_step(inputs, attrs):
    i, f, o, j = np.split(inputs["X"], 4, axis=1)
    c = _sigmoid(f + attrs["forget_bias"]) * inputs["C_prev"]
    c = c + _sigmoid(i) * np.tanh(j)
    return {"C": c, "H": _sigmoid(o) * np.tanh(c)}


def _gru_step(inputs, attrs):
    rows = [
        _gru([[0, 1]])(
            {"Input": x[None], "Weight": inputs["Weight"], "Bias": np.zeros((1, 9))},
            attrs,
        )["Hidden"][0]
        for x in inputs["Input"]
    ]
    return {"Hidden": np.array(rows).reshape(-1, 3)}


def _units(rows=3, scale=1.0):
    wide = {"X": normal(rows, 8) * scale, "C_prev": normal(rows, 2, seed=1)}
    still = {"Input": normal(rows, 9) * scale, "HiddenPrev": np.zeros((rows, 3))}
    still["Weight"] = normal(3, 9, seed=2)
    far: dict[str, Any] = {"grad": ()} if scale > 100 or not rows else {}
    bias = {"forget_bias": 0.5}
    return (
        OpCase("lstm_unit", wide, bias, _lstm_step, **far),
        OpCase("gru_unit", still, {}, _gru_step, weights=["Hidden"], **far),
    )


test_by_loops = suite(
    [
        _lstm_case([[0, 2, 5]]),
        _lstm_case([[0, 0, 3, 3, 4]], is_reverse=True),
        _lstm_case([[0, 1, 4]], start=True),
        _lstm_case([[0, 1, 4]], start=True, use_peepholes=False),
        _lstm_case([[0]]),
        _lstm_case([[0, 3]], scale=1e6),
        _lstm_case([[0, 3]], scale=1e-9),
        _holding(np.nan),
        _lstmp_case([[0, 2, 5]]),
        _lstmp_case([[0, 2, 5]], is_reverse=True),
        _lstmp_case([[0]]),
        _gru_case([[0, 2, 5]]),
        _gru_case([[0, 0, 3, 3, 4]]),
        _gru_case([[0]]),
        _gru_case([[0, 3]], scale=1e6),
        _gru_case([[0, 3]], scale=1e-9),
        *_units(),
        *_units(rows=0),
        *_units(scale=1e6),
        *_units(scale=1e-9),
    ]
)
