"""Programs with recurrent and CRF layers; under the reference: writes them to
rnn_layers.json (see layers.py).
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def learnt(fluid, name, width, lod_level=0):
    x = fluid.data(name, [None, width], lod_level=lod_level)
    x.stop_gradient = False  # the reference's gradient ops cannot do without
    return x


def words(fluid, width):
    return learnt(fluid, "x", width, 1)


def trained(fluid, out):
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(out))


def lstm(fluid):
    hidden, cell = fluid.layers.dynamic_lstm(words(fluid, 8), 8)
    trained(fluid, hidden)


def lstm_everything(fluid):
    start = fluid.data("h", [None, 2])
    hidden, cell = fluid.layers.dynamic_lstm(
        words(fluid, 8),
        8,
        h_0=start,
        c_0=fluid.data("c", [None, 2]),
        param_attr="w",
        bias_attr=fluid.ParamAttr(name="b", learning_rate=2.0),
        use_peepholes=False,
        is_reverse=True,
        gate_activation="tanh",
        cell_activation="relu",
        candidate_activation="identity",
        name="named",
    )
    trained(fluid, hidden)


def lstmp(fluid):
    out, cell = fluid.layers.dynamic_lstmp(words(fluid, 12), 12, 2)
    trained(fluid, out)


def lstmp_everything(fluid):
    out, cell = fluid.layers.dynamic_lstmp(
        words(fluid, 12),
        12,
        2,
        param_attr=fluid.ParamAttr(learning_rate=0.5),
        use_peepholes=False,
        is_reverse=True,
        proj_activation="identity",
        h_0=fluid.data("h", [None, 2]),
        c_0=fluid.data("c", [None, 3]),
        cell_clip=0.5,
        proj_clip=0.25,
    )
    trained(fluid, out)


def gru(fluid):
    trained(fluid, fluid.layers.dynamic_gru(words(fluid, 6), 2))


def gru_everything(fluid):
    out = fluid.layers.dynamic_gru(
        words(fluid, 6),
        2,
        param_attr="w",
        bias_attr="b",
        is_reverse=True,
        gate_activation="relu",
        candidate_activation="sigmoid",
        h_0=fluid.data("h", [None, 2]),
        origin_mode=True,
    )
    trained(fluid, out)


def units(fluid):
    x, h, c = (learnt(fluid, n, w) for n, w in (("x", 3), ("h", 4), ("c", 4)))
    hidden, cell = fluid.layers.lstm_unit(x, h, c, forget_bias=1.0)
    hidden, cell = fluid.layers.lstm_unit(
        x, hidden, cell, param_attr="w", bias_attr="b", name="second"
    )
    trained(fluid, hidden)


def gru_units(fluid):
    x, h = learnt(fluid, "x", 12), learnt(fluid, "h", 4)
    hidden, reset, gate = fluid.layers.gru_unit(x, h, 12)
    hidden, reset, gate = fluid.layers.gru_unit(
        x,
        hidden,
        12,
        param_attr="w",
        bias_attr=False,
        activation="relu",
        gate_activation="identity",
        origin_mode=True,
    )
    trained(fluid, hidden)


def crf(fluid):
    emission = words(fluid, 3)
    label = fluid.data("y", [None, 1], "int64", lod_level=1)
    attr = fluid.ParamAttr(name="crfw", learning_rate=0.5)
    cost = fluid.layers.linear_chain_crf(emission, label, attr)
    fluid.layers.crf_decoding(emission, fluid.ParamAttr(name="crfw"))
    fluid.layers.crf_decoding(emission, fluid.ParamAttr(name="crfw"), label)
    trained(fluid, cost)


def crf_padded(fluid):
    emission = fluid.data("x", [None, 5, 3])
    label = fluid.data("y", [None, 5, 1], "int64")
    length = fluid.data("n", [None, 1], "int64")
    attr = fluid.ParamAttr(name="crfw")
    cost = fluid.layers.linear_chain_crf(emission, label, attr, length)
    fluid.layers.crf_decoding(emission, attr, length=length)
    trained(fluid, cost)


CASES = (
    *(lstm, lstm_everything, lstmp, lstmp_everything, gru, gru_everything),
    *(units, gru_units, crf, crf_padded),
)


def cases():
    return {case.__name__: case for case in CASES}


if __name__ == "__main__":
    sys.path[:0] = [HERE]
    import paddle.fluid as reference
    from compact import compact
    from layers import build

    made = {
        name: {role: compact(p) for role, p in build(reference, case).items()}
        for name, case in cases().items()
    }
    with open(os.path.join(HERE, "rnn_layers.json"), "w") as f:
        json.dump(made, f, sort_keys=True, separators=(",", ":"))
