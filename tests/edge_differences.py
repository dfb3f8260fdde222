"""Where fluidx means to answer otherwise than the reference at the edges, and how.

Three reasons stand behind nearly all: NaN stays NaN here, where the reference's
vectorised loops swallow it (often by position); infinities and tiny numbers give what
arithmetic gives, where its fast approximations do not; and sums that cancel are
written so that they do not. `DIFFERENT` maps a case of edges.json.xz to its check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from opcase import OpCase, grads_of
from replay_oracle import REFUSALS, _listed, _lod, _run, _value, array

__all__ = ["DIFFERENT"]

Record = dict[str, Any]
Check = Callable[[Record], None]
NAN, INF = float("nan"), float("inf")


def _close(got: Any, wanted: Any, what: str, rtol: float = 2e-5) -> None:
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape, f"{what}: shape"
    finite = np.abs(wanted[np.isfinite(wanted)])
    slack = max(1e-6 * float(finite.max(initial=0)) if rtol > 1e-6 else 0.0, 1e-37)
    np.testing.assert_allclose(got, wanted, rtol, slack, err_msg=what)


def _ours(record: Record) -> tuple[Record, Record, Record, Record]:
    """(inputs, outputs, output gradients, input gradients) of a case."""
    case = record["case"]
    values, outs = _run(case)
    d_outs = {slot: _value(plain) for slot, plain in case.get("grads", {}).items()}
    if not d_outs:
        return values, outs, {}, {}
    lod = {slot: _lod(plain) for slot, plain in case["inputs"].items()}
    asked = OpCase(case["op"], values, case["attrs"], lod=lod)
    return values, outs, d_outs, grads_of(asked, values, outs, d_outs)


def but(outs: Record | None = None, grads: Record | None = None) -> Check:
    """As the reference, but for these elements: slot -> {flat position: value}."""

    def check(record: Record) -> None:
        _, mine, _, made = _ours(record)
        answer = record["answer"]
        for changes, theirs, ours in (
            (outs or {}, answer["outs"], mine),
            (grads or {}, answer.get("grads", {}), made),
        ):
            assert set(changes) <= set(ours)
            for name, plain in theirs.items():
                slot = name if ours is mine else name.rpartition("_")[0]
                wanted = array(_listed(plain)[0]).copy()
                if wanted.dtype == np.float64 and wanted.shape == (0,):
                    continue  # the reference left it without memory
                flat = wanted.reshape(-1)
                for at, value in changes.get(slot, {}).items():
                    assert not np.array_equal(flat[at], value, equal_nan=True)
                    flat[at] = value
                _close(_listed(ours[slot])[0], wanted, name)

    return check


def formula(
    value: Callable[..., Any],
    slope: Callable[..., Any] | None = None,
    slot: str = "Out",
) -> Check:
    """Out is value(X) in float64, its gradient slope(X) times Out@GRAD."""

    def check(record: Record) -> None:
        values, outs, d_outs, grads = _ours(record)
        given = [np.asarray(v, "f8") for v in values.values()]
        _close(outs[slot], np.asarray(value(*given), "f4"), slot)
        if slope is not None:
            wanted = slope(given[0]) * d_outs[slot]
            _close(grads[next(iter(values))], np.asarray(wanted, "f4"), "gradient")

    return check


def refuses(words: str) -> Check:
    """Ours says what is wrong with the inputs."""

    def check(record: Record) -> None:
        with pytest.raises(REFUSALS, match=words):
            _run(record["case"])

    return check


def equals(**outs: Any) -> Check:
    """Outputs by hand."""

    def check(record: Record) -> None:
        _, mine = _run(record["case"])
        for slot, wanted in outs.items():
            _close(np.asarray(mine[slot]).reshape(-1), np.ravel(wanted), slot)

    return check


def _nan_spreads(record: Record) -> None:
    """Where a filter holds NaN more may become NaN; what is finite is right."""
    _, mine, _, grads = _ours(record)
    for name, plain in [*record["answer"]["outs"].items()]:
        wanted = array(plain[0])
        seen = np.isfinite(mine[name])
        assert seen.any()
        _close(mine[name][seen], wanted[seen], name)
    wanted = array(record["answer"]["grads"]["Filter_0"])
    _close(grads["Filter"], wanted, "Filter@GRAD")


def _same_values(record: Record) -> None:
    """top_k among equals: the same values, the indices point at them, each once."""
    values, mine = _run(record["case"])
    _close(mine["Out"], array(record["answer"]["outs"]["Out"][0]), "Out")
    picked = np.take_along_axis(values["X"], mine["Indices"], 1)
    np.testing.assert_array_equal(picked, mine["Out"])
    assert all(len(set(row)) == len(row) for row in mine["Indices"].tolist())


def _loosely(slot: str, slack: float) -> Check:
    """As the reference but for the errors of its fast functions."""

    def check(record: Record) -> None:
        _, mine = _run(record["case"])
        theirs = array(record["answer"]["outs"][slot][0])
        np.testing.assert_allclose(mine[slot], theirs, 0, slack)

    return check


def _finite_as_theirs(record: Record) -> None:
    """Gradients overflow on both sides; Out does not."""
    _, mine = _run(record["case"])
    _close(mine["Out"], array(record["answer"]["outs"]["Out"][0]), "Out")


def _focus(record: Record) -> None:
    """NaN is the largest; each row and column of a sample is taken once."""
    _, mine = _run(record["case"])
    theirs = array(record["answer"]["outs"]["Out"][0])
    _close(mine["Out"][1], theirs[1], "the sample without NaN")
    assert mine["Out"][0, 0, 0, 0] == 1
    assert mine["Out"][0, 0].sum(1).max() == mine["Out"][0, 0].sum(0).max() == 1


def _split(record: Record) -> None:
    """The reference leaves X in one piece where axis is negative and one section -1."""
    values, mine = _run(record["case"])
    for got, wanted in zip(mine["Out"], np.split(values["X"], [1, 4])):
        _close(got, wanted, "Out")


def _sigmoid(x: Any) -> Any:
    return np.exp(-np.logaddexp(0, -x))


def _softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def _elu(x: Any) -> Any:
    return np.where(x > 0, x, np.expm1(x))


def _elu_slope(x: Any) -> Any:
    return np.where(x > 0, 1, np.exp(x))


_SELU = 1.0507009873554805, 1.6732632423543772


def _selu(x: Any) -> Any:
    return _SELU[0] * np.where(x > 0, x, _SELU[1] * np.expm1(x))


def _stanh(x: Any) -> Any:
    return 1.7159 * np.tanh(0.67 * x)


def _bpr(x: Any, label: Any) -> Any:
    """Mean over the other classes of log(1 + exp(x_j - x_label))."""
    rows = np.arange(len(x))
    own = x[rows, label.astype(int).reshape(-1)][:, None]
    terms = _softplus(x - own)
    terms[rows, label.astype(int).reshape(-1)] = 0
    return terms.sum(1, keepdims=True) / (x.shape[1] - 1)


def _rank_loss(label: Any, left: Any, right: Any) -> Any:
    return _softplus(left - right) - label * (left - right)


def _cvm(x: Any, cvm: Any) -> Any:
    """log(1 + shows), log(1 + clicks) - log(1 + shows), and the rest."""
    made = x.copy()
    made[:, 0] = np.log1p(x[:, 0])
    made[:, 1] = np.log1p(x[:, 1]) - made[:, 0]
    return made


def _softmax_of_sequences(*sequences: slice) -> Callable[[Any], Any]:
    def value(x: Any) -> Any:
        made = np.empty_like(x)
        for rows in sequences:
            part = np.exp(x[rows] - x[rows].max())
            made[rows] = part / part.sum()
        return made

    return value


_nan_first = but({"Out": {0: NAN}}, {"X": {0: NAN}})

DIFFERENT: dict[str, Check] = {
    # --- NaN stays NaN
    "abs-nan-X": but(grads={"X": {0: NAN}}),
    "arg_max-nan-X": equals(Out=[0, 4]),
    "arg_min-nan-X": but({"Out": {0: 0}}),
    "argsort-nan-X": but(
        {
            "Out": {0: -0.13, 1: 0.1, 2: INF, 3: NAN},
            "Indices": {0: 1, 1: 3, 2: 2, 3: 0},
        },
        {"X": {0: 1.5, 1: -1.5, 2: 0.5, 3: -0.5}},
    ),
    "elementwise_max-nan-X": but({"Out": {0: NAN}}),
    "elementwise_min-nan-X": but({"Out": {0: NAN}}),
    "huber_loss-nan-X": but(grads={"X": {0: NAN}, "Y": {0: NAN}}),
    "huber_loss-nan-Y": but(grads={"X": {0: NAN}, "Y": {0: NAN}}),
    "l1_norm-nan-X": but(grads={"X": {0: NAN}}),
    "leaky_relu-nan-X": but(grads={"X": {0: -0.03}}),
    "margin_rank_loss-nan-X1": but({"Out": {0: NAN}}),
    "margin_rank_loss-nan-X2": but({"Out": {0: NAN}}),
    "pool2d-nan-X": but({"Out": {0: NAN}}, {"X": {6: 0.0}}),
    "pool3d-nan-X": but({"Out": {0: NAN}}, {"X": {2: 0.0}}),
    "reduce_max-nan-X": but({"Out": {0: NAN}}, {"X": {2: 0.0}}),
    "reduce_min-nan-X": but({"Out": {0: NAN}}, {"X": {1: 0.0}}),
    "selu-nan-X": but(grads={"X": {0: NAN}}),
    "sign-nan-X": but({"Out": {0: NAN}}),
    "similarity_focus-nan-X": _focus,
    "smooth_l1_loss-nan-X": but(grads={"X": {0: NAN}, "Y": {0: NAN}}),
    "smooth_l1_loss-nan-Y": but(grads={"X": {0: NAN}, "Y": {0: NAN}}),
    "soft_relu-nan-X": _nan_first,
    "top_k-nan-X": equals(Out=[INF, 3, 2, 6, 5, 5], Indices=[2, 1, 3, 4, 0, 1]),
    # --- a filter with NaN: sums over zeros that stand beside it
    "depthwise_conv2d-nan-Filter": _nan_spreads,
    "depthwise_conv2d_transpose-nan-Filter": _nan_spreads,
    "hierarchical_sigmoid-nan-X": but(grads={"W": {4: NAN, 12: NAN}}),
    # --- infinities
    "elementwise_mod-nan-Y": formula(np.remainder),
    "elu-nan-X": formula(_elu, _elu_slope),
    "exp-nan-X": formula(np.exp, np.exp),
    "ftrl-nan-Grad": but({"ParamOut": {4: NAN}, "LinearAccumOut": {4: -INF}}),
    "hard_swish-nan-X": but(grads={"X": {2: 0.5}}),
    "linspace-nan-Start": but({"Out": {4: 1.0}}),
    "linspace-nan-Stop": but({"Out": {0: NAN}}),
    "log-nan-X": formula(np.log, lambda x: 1 / x),
    "log1p-nan-X": formula(np.log1p, lambda x: 1 / (1 + x)),
    "logsigmoid-nan-X": formula(lambda x: -_softplus(-x), lambda x: _sigmoid(-x)),
    "reduce_prod-nan-X": but(grads={"X": {0: INF}}),
    "rsqrt-nan-X": formula(lambda x: 1 / np.sqrt(x), lambda x: -0.5 / np.sqrt(x) ** 3),
    "sequence_softmax-nan-X": formula(_softmax_of_sequences(slice(0, 2), slice(2, 5))),
    "sigmoid-nan-X": formula(_sigmoid, lambda x: _sigmoid(x) * _sigmoid(-x)),
    "sigmoid_focal_loss-nan-X": but({"Out": {2: INF, 4: 0.0}}, {"X": {4: 0.0}}),
    "softplus-nan-X": formula(_softplus, _sigmoid),
    "softshrink-nan-X": but({"Out": {2: INF, 4: -INF}}),
    "sqrt-nan-X": formula(np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    "stanh-nan-X": formula(_stanh, lambda x: 1.7159 * 0.67 / np.cosh(0.67 * x) ** 2),
    "swish-nan-X": but({"Out": {4: -INF}}, {"X": {4: -INF}}),
    "tanh-nan-X": formula(np.tanh, lambda x: 1 / np.cosh(x) ** 2),
    "tanh_shrink-nan-X": but(grads={"X": {0: NAN}}),
    # --- big and tiny: sums that must not cancel or overflow
    "bpr_loss-big": formula(_bpr, slot="Y"),
    "cvm-tiny": formula(_cvm, slot="Y"),
    "elu-big": formula(_elu, _elu_slope),
    "elu-tiny": formula(_elu, _elu_slope),
    "equal-tiny": formula(np.equal),  # there: closer than 1e-8
    "log1p-tiny": formula(np.log1p, lambda x: 1 / (1 + x)),
    "lstm_unit-tiny": _loosely("C", 1.2e-16),
    "lstmp-big": _loosely("Cell", 1e-5),  # its gates and tanh end short of 1
    "lstmp-tiny": _loosely("Cell", 3e-16),  # its tanh goes in steps of 1e-16
    "not_equal-tiny": formula(np.not_equal),
    "rank_loss-big": formula(_rank_loss),
    "reduce_prod-negative-dim": but(grads={"X": {0: -9.0, 3: 0.0, 4: 0.0}}),
    "selu-tiny": formula(_selu),
    "sequence_softmax-big": formula(_softmax_of_sequences(slice(0, 2), slice(2, 5))),
    "sigmoid_focal_loss-big": but({"Out": {16: 0.25 * 5.4e14 / 4}}),
    "soft_relu-big": formula(lambda x: np.log1p(np.exp(np.clip(x, -40, 40)))),
    "spectral_norm-tiny": _finite_as_theirs,
    "swish-big": formula(lambda x: x * _sigmoid(x), lambda x: x > 0),
    "tanh_shrink-tiny": formula(lambda x: x - np.tanh(x), lambda x: np.tanh(x) ** 2),
    "top_k-big": _same_values,
    "top_k-tiny": _same_values,
    # --- inputs that do not fit together
    "adam-big": refuses("math domain"),  # powers of betas above 1
    "gather-empty": refuses(r"index 2 is not in \[0, 0\)"),
    "merge_lod_tensor-empty": refuses("shape"),
    "split-negative-axis": _split,
}
