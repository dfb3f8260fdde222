"""Networks with `basic_gru`, `basic_lstm` and their units. For both systems; see
dynamic_rnn_cases.py."""

import numpy as np

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def _waves(*shape):
    made = np.sin(1.7 * np.arange(int(np.prod(shape))) + len(shape)).reshape(shape)
    return np.round(made, 3).astype("float32")


def _attr(fluid, name, value=0.125):
    start = fluid.initializer.Constant(value)
    return fluid.ParamAttr(name=name, initializer=start)


def _x(fluid, *shape):
    x = fluid.data("x", list(shape))
    x.stop_gradient = False
    return x


def _slopes(fluid, out, *of):
    block = fluid.default_main_program().global_block()
    wanted = [block.var(v) if isinstance(v, str) else v for v in of]
    loss = fluid.layers.mean(out * out)
    return fluid.gradients(loss, wanted)


@case
def gru_named(fluid):
    fluid.contrib.layers.basic_gru(
        fluid.data("x", [None, 4, 3]), None, 5, num_layers=2, bidirectional=True
    )
    return {}, []


@case
def lstm_named(fluid):
    fluid.contrib.layers.basic_lstm(
        fluid.data("x", [4, None, 3]),
        None,
        None,
        5,
        num_layers=2,
        bidirectional=True,
        batch_first=False,
        dropout_prob=0.5,
        forget_bias=0.5,
        name="mine",
    )
    return {}, []


@case
def gru(fluid):
    x = _x(fluid, None, 4, 3)
    out, last = fluid.contrib.layers.basic_gru(
        x, None, 2, param_attr=_attr(fluid, "w"), bias_attr=_attr(fluid, "b")
    )
    slopes = _slopes(fluid, out, x, "w_fw_w_0_gate", "b_fw_b_0_candidate")
    return {"x": _waves(2, 4, 3)}, [out, last] + slopes


@case
def gru_deep(fluid):
    x = _x(fluid, None, 4, 3)
    n, h = fluid.data("n", [None], "int32"), fluid.data("h", [4, None, 2])
    h.stop_gradient = False
    out, last = fluid.contrib.layers.basic_gru(
        x,
        h,
        2,
        num_layers=2,
        sequence_length=n,
        bidirectional=True,
        param_attr=_attr(fluid, "w"),
        bias_attr=_attr(fluid, "b", 0.25),
        gate_activation=fluid.layers.tanh,
        activation=fluid.layers.sigmoid,
    )
    feed = {"x": _waves(3, 4, 3), "h": _waves(4, 3, 2)}
    feed["n"] = np.array([4, 1, 2], "int32")
    return feed, [out, last] + _slopes(fluid, out, x, h, "w_bw_w_1_gate")


@case
def lstm(fluid):
    x = _x(fluid, 4, None, 3)
    out, hidden, cell = fluid.contrib.layers.basic_lstm(
        x,
        None,
        None,
        2,
        num_layers=2,
        batch_first=False,
        param_attr=_attr(fluid, "w"),
        bias_attr=_attr(fluid, "b"),
    )
    slopes = _slopes(fluid, out, x, "w_fw_w_0", "b_fw_b_1")
    return {"x": _waves(4, 2, 3)}, [out, hidden, cell] + slopes


@case
def lstm_deep(fluid):
    x = _x(fluid, None, 4, 3)
    n, h = fluid.data("n", [None], "int64"), fluid.data("h", [4, None, 2])
    c = fluid.data("c", [4, None, 2])
    c.stop_gradient = False
    out, hidden, cell = fluid.contrib.layers.basic_lstm(
        x,
        h,
        c,
        2,
        num_layers=2,
        sequence_length=n,
        bidirectional=True,
        param_attr=_attr(fluid, "w"),
        bias_attr=_attr(fluid, "b"),
        forget_bias=0.3,
    )
    feed = {"x": _waves(3, 4, 3), "h": _waves(4, 3, 2), "c": _waves(4, 3, 2) + 1}
    slopes = _slopes(fluid, out, x, c, "w_bw_w_1")
    return dict(feed, n=np.array([4, 1, 2])), [out, hidden, cell] + slopes


@case
def lstm_dropped(fluid):
    """In a test program: nothing is dropped, nothing scaled."""
    x = _x(fluid, None, 4, 3)
    out, hidden, _ = fluid.contrib.layers.basic_lstm(
        x, None, None, 2, 2, dropout_prob=0.4, param_attr=_attr(fluid, "w")
    )
    _in_test(fluid)
    return {"x": _waves(2, 4, 3)}, [out, hidden]


@case
def gru_dropped(fluid):
    """In a test program: scaled by what is kept."""
    x = _x(fluid, None, 4, 3)
    out, last = fluid.contrib.layers.basic_gru(
        x, None, 2, 2, dropout_prob=0.4, param_attr=_attr(fluid, "w")
    )
    _in_test(fluid)
    return {"x": _waves(2, 4, 3)}, [out, last]


def _in_test(fluid):
    for block in fluid.default_main_program().blocks:
        for op in block.ops:
            if op.type == "dropout":
                op._set_attr("is_test", True)


@case
def units(fluid):
    x = _x(fluid, None, 3)
    h, c = fluid.data("h", [None, 2]), fluid.data("c", [None, 2])
    gru = fluid.contrib.layers.BasicGRUUnit("one", 2, _attr(fluid, "w"))
    lstm = fluid.contrib.layers.BasicLSTMUnit(
        "two", 2, _attr(fluid, "v", 0.25), forget_bias=0.2, activation=fluid.layers.relu
    )
    hidden, cell = lstm(x, gru(x, h), c)
    hidden, cell = lstm(x, hidden, cell)  # the same parameters
    feed = {"x": _waves(3, 3), "h": _waves(3, 2), "c": _waves(3, 2) + 1}
    slopes = _slopes(fluid, hidden, x, "w_gate", "v")
    return feed, [hidden, cell] + slopes
