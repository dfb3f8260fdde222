"""Networks with RNN cells and `rnn`. For both systems; see dynamic_rnn_cases.py."""

import numpy as np

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def _waves(*shape):
    made = np.sin(np.arange(int(np.prod(shape)))).reshape(shape)
    return np.round(made, 3).astype("float32")


def _attr(fluid, name):
    start = fluid.initializer.Constant(0.125)
    return fluid.ParamAttr(name=name, initializer=start)


def _x(fluid, *shape):
    x = fluid.data("x", list(shape))
    x.stop_gradient = False
    return x


def _slopes(fluid, out, *of):
    block = fluid.default_main_program().global_block()
    wanted = [block.var(v) if isinstance(v, str) else v for v in of]
    loss = fluid.layers.reduce_sum(out * out)
    return [out] + fluid.gradients(loss, wanted)


@case
def gru_named(fluid):
    cell = fluid.layers.GRUCell(3)
    out, state = fluid.layers.rnn(cell, fluid.data("x", [4, 5, 6]))
    fluid.layers.rnn(cell, fluid.data("y", [4, 2, 6]))  # the same parameters
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(out))
    return {}, []


@case
def gru(fluid):
    x = _x(fluid, None, 4, 3)
    cell = fluid.layers.GRUCell(2, _attr(fluid, "w"), _attr(fluid, "b"))
    out, state = fluid.layers.rnn(cell, x)
    feed = {"x": _waves(2, 4, 3)}
    return feed, [state] + _slopes(fluid, out, x, "w_gate", "w_candidate", "b_gate")


@case
def lstm_lengths(fluid):
    x = _x(fluid, None, 4, 3)
    n = fluid.data("n", [None], "int32")
    cell = fluid.layers.LSTMCell(2, _attr(fluid, "w"), _attr(fluid, "b"))
    out, (h, c) = fluid.layers.rnn(cell, x, sequence_length=n)
    feed = {"x": _waves(3, 4, 3), "n": np.array([4, 1, 2], "int32")}
    return feed, [h, c] + _slopes(fluid, out, x, "w", "b")


@case
def lstm_backwards(fluid):
    x = _x(fluid, None, 4, 3)
    n = fluid.data("n", [None], "int32")
    cell = fluid.layers.LSTMCell(
        2, _attr(fluid, "w"), _attr(fluid, "b"), forget_bias=0.5, name="mine"
    )
    out, (h, c) = fluid.layers.rnn(cell, x, sequence_length=n, is_reverse=True)
    feed = {"x": _waves(3, 4, 3), "n": np.array([4, 1, 2], "int32")}
    return feed, [out, c] + _slopes(fluid, h, x, "w")


@case
def time_first(fluid):
    x, h = _x(fluid, 4, None, 3), fluid.data("h", [None, 2])
    cell = fluid.layers.GRUCell(
        2,
        _attr(fluid, "w"),
        _attr(fluid, "b"),
        gate_activation=fluid.layers.tanh,
        activation=fluid.layers.relu,
    )
    out, state = fluid.layers.rnn(cell, x, h, time_major=True, is_reverse=True)
    feed = {"x": _waves(4, 2, 3), "h": _waves(2, 2)}
    return feed, [state] + _slopes(fluid, out, x)
