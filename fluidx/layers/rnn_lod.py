"""Recurrent layers over sequences of different lengths, and single recurrent steps."""

from __future__ import annotations

from typing import Any

from fluidx.ir import Variable
from fluidx.kernels.packed import ACTIVATIONS
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import FLOATS, check_dtype, check_variable, is_integer, one_of
from fluidx.layers.manipulation import concat
from fluidx.layers.nn import fc

__all__ = ["dynamic_gru", "dynamic_lstm", "dynamic_lstmp", "gru_unit", "lstm_unit"]


def _check_size(layer: str, name: str, size: Any, times: int = 1) -> None:
    """TypeError or ValueError unless it is a positive multiple of `times`."""
    if not is_integer(size):
        raise TypeError(f"{layer}: {name} must be an integer, got {size!r:.60}")
    if size < 1 or size % times:
        what = f"a positive multiple of {times}" if times > 1 else "positive"
        raise ValueError(f"{layer}: {name} must be {what}, got {size}")


def _check_activations(layer: str, **given: Any) -> None:
    for name, value in given.items():
        one_of(value, name, layer, ACTIVATIONS)


def _states(layer: str, **given: Any) -> dict[str, Variable]:
    """H0 and C0, as far as they are given: both or neither."""
    found = {k: v for k, v in given.items() if v is not None}
    for name, value in found.items():
        check_variable(value, name, layer)
    if 0 < len(found) < len(given):
        raise ValueError(f"{layer}: give both of h_0 and c_0, or neither")
    return {name.replace("_", "").upper(): value for name, value in found.items()}


def dynamic_lstm(
    input: Variable,
    size: int,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    dtype: str = "float32",
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """An LSTM along each sequence; returns hidden states and cells, [rows, size / 4].

    input: [rows, size] of one LoD level: the gates' inputs, already multiplied (by an
    `fc` of width `size` before). size: four times the number of units. h_0, c_0: the
    states before the first row of each sequence, [sequences, size / 4]; zero by
    default. use_peepholes: gates see the cell, by weights at the end of the bias.
    is_reverse: each sequence from its end. Activations are "sigmoid", "tanh", "relu" or
    "identity". Parameters: [size / 4, 4 * size / 4] and a bias, which cannot be left
    out. ValueError, TypeError: arguments of another kind; one of h_0 and c_0 alone.

    Hochreiter and Schmidhuber, 1997; Gers and Schmidhuber, 2000. Mirrors
    ``fluid.layers.dynamic_lstm``; gradients come through the hidden states only, as
    there.

    >>> import fluidx as fluid
    >>> words = fluid.data("lstm_words", [None, 32], lod_level=1)
    >>> gates = fluid.layers.fc(words, 4 * 16, bias_attr=False)
    >>> hidden, cell = fluid.layers.dynamic_lstm(gates, 4 * 16)
    >>> hidden.shape
    (-1, 16)
    """
    layer = "dynamic_lstm"
    check_dtype(input, "input", layer, FLOATS)
    _check_size(layer, "size", size, 4)
    if bias_attr is False:
        raise ValueError(f"{layer}: it needs its bias; bias_attr cannot be False")
    functions = {
        "gate_activation": gate_activation,
        "cell_activation": cell_activation,
        "candidate_activation": candidate_activation,
    }
    _check_activations(layer, **functions)
    helper = LayerHelper("lstm", param_attr=param_attr, bias_attr=bias_attr, name=name)
    units = size // 4
    weight = helper.create_parameter(helper.param_attr, [units, 4 * units], dtype)
    bias = helper.create_parameter(
        helper.bias_attr, [1, (7 if use_peepholes else 4) * units], dtype, is_bias=True
    )
    slots = ("Hidden", "Cell", "BatchGate", "BatchCellPreAct")
    outs = {s: helper.create_variable_for_type_inference(dtype) for s in slots}
    inputs = {"Input": input, "Weight": weight, "Bias": bias}
    inputs |= _states(layer, h_0=h_0, c_0=c_0)
    attrs = {"use_peepholes": use_peepholes, "is_reverse": is_reverse, **functions}
    helper.append_op("lstm", inputs, outs, attrs)
    return outs["Hidden"], outs["Cell"]


def dynamic_lstmp(
    input: Variable,
    size: int,
    proj_size: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    proj_activation: str = "tanh",
    dtype: str = "float32",
    name: str | None = None,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    cell_clip: float | None = None,
    proj_clip: float | None = None,
) -> tuple[Variable, Variable]:
    """`dynamic_lstm` whose hidden state is projected to `proj_size` before it goes on.

    Returns the projections [rows, proj_size] and the cells [rows, size / 4]. h_0:
    [sequences, proj_size]. cell_clip, proj_clip: cells and projections stay within plus
    and minus this. proj_activation: "identity" for none; otherwise the projection gets
    *cell_activation*, whatever it names: so the reference computes, and models were
    trained by it. The rest is as for `dynamic_lstm`.

    Sak, Senior and Beaufays, 2014. Mirrors ``fluid.layers.dynamic_lstmp``.

    >>> import fluidx as fluid
    >>> gates = fluid.data("lstmp_gates", [None, 4 * 16], lod_level=1)
    >>> out, cell = fluid.layers.dynamic_lstmp(gates, 4 * 16, 8)
    >>> out.shape, cell.shape
    ((-1, 8), (-1, 16))
    """
    layer = "dynamic_lstmp"
    check_dtype(input, "input", layer, FLOATS)
    _check_size(layer, "size", size, 4)
    _check_size(layer, "proj_size", proj_size)
    if bias_attr is False:
        raise ValueError(f"{layer}: it needs its bias; bias_attr cannot be False")
    functions = {
        "gate_activation": gate_activation,
        "cell_activation": cell_activation,
        "candidate_activation": candidate_activation,
        "proj_activation": proj_activation,
    }
    _check_activations(layer, **functions)
    helper = LayerHelper("lstmp", param_attr=param_attr, bias_attr=bias_attr, name=name)
    units = size // 4
    weight = helper.create_parameter(helper.param_attr, [proj_size, 4 * units], dtype)
    projection = helper.create_parameter(helper.param_attr, [units, proj_size], dtype)
    bias = helper.create_parameter(
        helper.bias_attr, [1, (7 if use_peepholes else 4) * units], dtype, is_bias=True
    )
    # "" keeps the numbers of the names: the reference makes a variable that it drops
    slots = ("Projection", "Cell", "", "BatchHidden", "BatchGate", "BatchCellPreAct")
    outs = {s: helper.create_variable_for_type_inference(dtype) for s in slots}
    del outs[""]
    inputs = {"Input": input, "Weight": weight, "ProjWeight": projection, "Bias": bias}
    inputs |= _states(layer, h_0=h_0, c_0=c_0)
    attrs: dict[str, Any] = {"use_peepholes": use_peepholes, "is_reverse": is_reverse}
    attrs |= functions
    attrs |= {"cell_clip": cell_clip or 0.0, "proj_clip": proj_clip or 0.0}
    helper.append_op("lstmp", inputs, outs, attrs)
    return outs["Projection"], outs["Cell"]


def dynamic_gru(
    input: Variable,
    size: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    candidate_activation: str = "tanh",
    h_0: Variable | None = None,
    origin_mode: bool = False,
) -> Variable:
    """Gated recurrent units along each sequence; returns their states, [rows, size].

    input: [rows, 3 * size] of one LoD level: what goes into update gate, reset gate and
    candidate, already multiplied. size: the number of units. h_0: the states before the
    first row of each sequence, [sequences, size]. is_reverse: each sequence from its
    end. origin_mode: h = u * h + (1 - u) * candidate (Cho et al., 2014), not
    h = (1 - u) * h + u * candidate (Chung et al., 2014). Activations are "sigmoid",
    "tanh", "relu" or "identity". Parameters: [size, 3 * size] and [1, 3 * size].
    Mirrors ``fluid.layers.dynamic_gru``.

    >>> import fluidx as fluid
    >>> words = fluid.data("gru_words", [None, 32], lod_level=1)
    >>> hidden = fluid.layers.dynamic_gru(fluid.layers.fc(words, 3 * 16), 16)
    >>> hidden.shape
    (-1, 16)
    """
    layer = "dynamic_gru"
    check_dtype(input, "input", layer, FLOATS)
    _check_size(layer, "size", size)
    functions = {
        "gate_activation": gate_activation,
        "activation": candidate_activation,
    }
    _check_activations(layer, **functions)
    helper = LayerHelper("gru", input=input, param_attr=param_attr, bias_attr=bias_attr)
    dtype = input.dtype
    inputs = {"Input": input}
    inputs["Weight"] = helper.create_parameter(
        helper.param_attr, [size, 3 * size], dtype
    )
    if bias_attr is not False:
        inputs["Bias"] = helper.create_parameter(
            helper.bias_attr, [1, 3 * size], dtype, is_bias=True
        )
    inputs |= _states(layer, h_0=h_0)
    slots = ("Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden")
    outs = {s: helper.create_variable_for_type_inference(dtype) for s in slots}
    attrs = {"is_reverse": is_reverse, "origin_mode": origin_mode, **functions}
    helper.append_op("gru", inputs, outs, attrs)
    return outs["Hidden"]


def gru_unit(
    input: Variable,
    hidden: Variable,
    size: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    activation: str = "tanh",
    gate_activation: str = "sigmoid",
    origin_mode: bool = False,
) -> tuple[Variable, Variable, Variable]:
    """One step of gated recurrent units: new state, reset * state, and gates.

    input: [rows, size]. hidden: the state before, [rows, size / 3]. size: three times
    the number of units. Returns [rows, size / 3] twice, and [rows, size]. activation
    and gate_activation must be known names, and are then not looked at: the op gets
    tanh and sigmoid, as from the reference's ``fluid.layers.gru_unit``. The rest is as
    for `dynamic_gru`.

    >>> import fluidx as fluid
    >>> x, h = fluid.data("gru_x", [None, 48]), fluid.data("gru_h", [None, 16])
    >>> fluid.layers.gru_unit(x, h, 48)[0].shape
    (-1, 16)
    """
    layer = "gru_unit"
    check_dtype(input, "input", layer, FLOATS)
    check_dtype(hidden, "hidden", layer, FLOATS)
    _check_size(layer, "size", size, 3)
    _check_activations(layer, activation=activation, gate_activation=gate_activation)
    helper = LayerHelper(layer, input=input, param_attr=param_attr, bias_attr=bias_attr)
    units, dtype = size // 3, input.dtype
    inputs = {"Input": input, "HiddenPrev": hidden}
    inputs["Weight"] = helper.create_parameter(
        helper.param_attr, [units, 3 * units], dtype
    )
    if bias_attr is not False:
        inputs["Bias"] = helper.create_parameter(
            helper.bias_attr, [1, size], dtype, is_bias=True
        )
    slots = ("Gate", "ResetHiddenPrev", "Hidden")
    outs = {s: helper.create_variable_for_type_inference(dtype) for s in slots}
    attrs = {"activation": 2, "gate_activation": 1, "origin_mode": origin_mode}
    helper.append_op(layer, inputs, outs, attrs)
    return outs["Hidden"], outs["ResetHiddenPrev"], outs["Gate"]


def lstm_unit(
    x_t: Variable,
    hidden_t_prev: Variable,
    cell_t_prev: Variable,
    forget_bias: float = 0.0,
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """One step of an LSTM: an `fc` of input and state, then the gates.

    x_t: [rows, width]. hidden_t_prev, cell_t_prev: the states before, [rows, units].
    forget_bias: added to the forget gate. Returns hidden state and cell, [rows, units].
    ValueError: shapes that do not fit. Mirrors ``fluid.layers.lstm_unit``.

    >>> import fluidx as fluid
    >>> x, h, c = (fluid.data(f"unit_{n}", [None, 16]) for n in "xhc")
    >>> hidden, cell = fluid.layers.lstm_unit(x, h, c)
    >>> hidden.shape
    (-1, 16)
    """
    layer = "lstm_unit"
    states = {"hidden_t_prev": hidden_t_prev, "cell_t_prev": cell_t_prev}
    for arg, value in {"x_t": x_t, **states}.items():
        check_variable(value, arg, layer)
        if len(value.shape) != 2:
            raise ValueError(f"{layer}: {arg} must be a matrix, got {value.shape}")
    units = cell_t_prev.shape[1]
    if hidden_t_prev.shape[1] != units:
        raise ValueError(
            f"{layer}: hidden_t_prev {hidden_t_prev.shape} and cell_t_prev "
            f"{cell_t_prev.shape} must be equally wide"
        )
    helper = LayerHelper(layer, name=name)
    gates = fc(
        concat([x_t, hidden_t_prev], axis=1),
        4 * units,
        param_attr=param_attr,
        bias_attr=bias_attr,
    )
    outs = {s: helper.create_variable_for_type_inference(x_t.dtype) for s in ("C", "H")}
    inputs = {"X": gates, "C_prev": cell_t_prev}
    helper.append_op(layer, inputs, outs, {"forget_bias": forget_bias})
    return outs["H"], outs["C"]
