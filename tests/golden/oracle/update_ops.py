"""Trajectories of single update ops under the reference: three steps each.

Every case is a process of its own. `STEPS` scales the gradient from step to step, so
that state matters. Writes update_ops.json beside itself.
"""

import json
import os
import sys

import numpy as np

STEPS = (1.0, -0.5, 2.0)
SHAPE = (4, 3)


def _numbers(seed, *shape):
    return np.round(np.random.RandomState(seed).randn(*shape), 3).astype("float32")


def _state(seed):
    return np.abs(_numbers(seed, *SHAPE))


def one(value):
    return np.array([value], "float32")


PARAM, GRAD, RATE = _numbers(1, *SHAPE), _numbers(2, *SHAPE), one(0.1)
SPARSE = {"rows": [2, 0, 2], "value": _numbers(3, 3, 3), "height": 4}

#: name -> op, {input slot: array}, {input slot: output slot}, attributes
CASES = {}


def case(name, op, state, outs, attrs, rate=RATE, param=PARAM, grad=GRAD):
    ins = dict(state, Param=param)
    if rate is not None:
        ins["LearningRate"] = rate
    for kind, given in (("dense", grad), ("sparse", SPARSE)):
        CASES[f"{name}-{kind}"] = (op, dict(ins, Grad=given), outs, attrs)


def out(*slots):
    return {s: s + "Out" for s in ("Param",) + slots}


case(
    "lars",
    "lars_momentum",
    {"Velocity": _numbers(4, *SHAPE)},
    out("Velocity"),
    {"mu": 0.9, "lars_coeff": 0.1, "lars_weight_decay": 0.05},
)
case(
    "lars-no-decay",
    "lars_momentum",
    {"Velocity": _numbers(4, *SHAPE)},
    out("Velocity"),
    {"mu": 0.9, "lars_coeff": 0.1, "lars_weight_decay": 0.0},
)
case(
    "lars-zero-param",
    "lars_momentum",
    {"Velocity": _numbers(4, *SHAPE)},
    out("Velocity"),
    {"mu": 0.9, "lars_coeff": 0.1, "lars_weight_decay": 0.05},
    param=np.zeros(SHAPE, "float32"),
)
case(
    "lars-zero-grad",
    "lars_momentum",
    {"Velocity": _numbers(4, *SHAPE)},
    out("Velocity"),
    {"mu": 0.9, "lars_coeff": 0.1, "lars_weight_decay": 0.05},
    grad=np.zeros(SHAPE, "float32"),
)
case(
    "decayed",
    "decayed_adagrad",
    {"Moment": _state(5)},
    out("Moment"),
    {"decay": 0.8, "epsilon": 0.01},
)
case("proximal-gd", "proximal_gd", {}, out(), {"l1": 0.5, "l2": 0.3})
case("proximal-gd-l2", "proximal_gd", {}, out(), {"l1": 0.0, "l2": 0.3})
case(
    "proximal-adagrad",
    "proximal_adagrad",
    {"Moment": _state(5)},
    out("Moment"),
    {"l1": 0.5, "l2": 0.3},
)
case(
    "adadelta",
    "adadelta",
    {"AvgSquaredGrad": _state(6), "AvgSquaredUpdate": _state(7)},
    out("AvgSquaredGrad", "AvgSquaredUpdate"),
    {"rho": 0.8, "epsilon": 0.01},
    rate=None,
)
case(
    "adamax",
    "adamax",
    {"Moment": _numbers(8, *SHAPE), "InfNorm": _state(9), "Beta1Pow": one(0.81)},
    out("Moment", "InfNorm"),
    {"beta1": 0.9, "beta2": 0.7, "epsilon": 0.01},
)
RMS = {
    "MeanSquare": _state(10) + 2,
    "MeanGrad": _numbers(11, *SHAPE) / 8,
    "Moment": _numbers(12, *SHAPE),
}
RMS_ATTRS = {"decay": 0.8, "epsilon": 0.01, "momentum": 0.5}
case(
    "rmsprop",
    "rmsprop",
    RMS,
    out("Moment", "MeanSquare", "MeanGrad"),
    dict(RMS_ATTRS, centered=False),
)
case(
    "rmsprop-centered",
    "rmsprop",
    RMS,
    out("Moment", "MeanSquare", "MeanGrad"),
    dict(RMS_ATTRS, centered=True),
)
FTRL_OUT = {
    "Param": "ParamOut",
    "SquaredAccumulator": "SquaredAccumOut",
    "LinearAccumulator": "LinearAccumOut",
}
FTRL = {
    "SquaredAccumulator": _state(13) + 0.1,
    "LinearAccumulator": _numbers(14, *SHAPE),
}
case("ftrl", "ftrl", FTRL, FTRL_OUT, {"l1": 0.3, "l2": 0.2, "lr_power": -0.5})
case("ftrl-power", "ftrl", FTRL, FTRL_OUT, {"l1": 0.3, "l2": 0.2, "lr_power": -0.7})
case("ftrl-zero", "ftrl", FTRL, FTRL_OUT, {"l1": 0.0, "l2": 0.0, "lr_power": -0.5})
LAMB = {
    "Moment1": _numbers(15, *SHAPE),
    "Moment2": _state(16),
    "Beta1Pow": one(0.81),
    "Beta2Pow": one(0.9),
}
LAMB_ATTRS = {"beta1": 0.9, "beta2": 0.8, "epsilon": 0.01}
case(
    "lamb", "lamb", LAMB, out("Moment1", "Moment2"), dict(LAMB_ATTRS, weight_decay=0.1)
)
case(
    "lamb-no-decay",
    "lamb",
    LAMB,
    out("Moment1", "Moment2"),
    dict(LAMB_ATTRS, weight_decay=0.0),
)
case(
    "lamb-zero-param",
    "lamb",
    LAMB,
    out("Moment1", "Moment2"),
    dict(LAMB_ATTRS, weight_decay=0.1),
    param=np.zeros(SHAPE, "float32"),
)
case(
    "dpsgd-quiet",
    "dpsgd",
    {},
    out(),
    {"clip": 1.0, "batch_size": 4.0, "sigma": 0.0, "seed": 3},
)
case(
    "dpsgd-loose",
    "dpsgd",
    {},
    out(),
    {"clip": 100.0, "batch_size": 4.0, "sigma": 0.0, "seed": 3},
)
case(
    "dpsgd-noisy",
    "dpsgd",
    {},
    out(),
    {"clip": 1.0, "batch_size": 4.0, "sigma": 2.0, "seed": 3},
)
for step, begin in ((0.0, 2.0), (5.0, 2.0), (5.0, -1.0)):
    case(
        f"dgc-momentum-{step:g}-{begin:g}",
        "dgc_momentum",
        {"Velocity": _numbers(4, *SHAPE), "current_step": one(step), "nranks": one(2)},
        dict(out("Velocity"), Grad="Grad_out"),
        {"mu": 0.9, "use_nesterov": False, "rampup_begin_step": begin},
    )
CASES["dgc-clip"] = (
    "dgc_clip_by_norm",
    {"X": PARAM, "current_step": one(5.0)},
    {"X": "Out"},
    {"max_norm": 1.0, "rampup_begin_step": 2.0},
)
SUMS = {"in_sum_1": _state(17), "in_sum_2": _state(18), "in_sum_3": _state(19)}
for name, counts in (
    ("start", (0, 0, 0)),
    ("window", (2, 0, 2)),
    ("carry", (3, 1, 16383)),
):
    COUNTS = dict(
        zip(
            ("in_num_accumulates", "in_old_num_accumulates", "in_num_updates"),
            (np.array([c], "int64") for c in counts),
        )
    )
    CASES["average-" + name] = (
        "average_accumulates",
        dict(SUMS, param=PARAM, **COUNTS),
        {k: k.replace("in_", "out_") for k in list(SUMS) + list(COUNTS)},
        {"average_window": 0.5, "max_average_window": 5, "min_average_window": 3},
    )


def run(name):
    import paddle.fluid as fluid

    op, ins, outs, attrs = CASES[name]
    scope, main = fluid.global_scope(), fluid.Program()
    block = main.global_block()
    slots, grads = {}, [s for s in ("Grad",) if s in ins]
    for slot, value in ins.items():
        sparse = isinstance(value, dict)
        kind = fluid.core.VarDesc.VarType
        slots[slot] = block.create_var(
            name=slot,
            persistable=True,
            shape=SHAPE if sparse else value.shape,
            dtype="float32" if sparse else str(value.dtype),
            type=kind.SELECTED_ROWS if sparse else kind.LOD_TENSOR,
        )
    made = {o: slots[i] for i, o in outs.items()}
    if "X" in outs:  # not an update in place
        made["Out"] = block.create_var(name="Out", persistable=True, dtype="float32")
    block.append_op(type=op, inputs=slots, outputs=made, attrs=attrs)
    exe = fluid.Executor(fluid.CPUPlace())

    def put(slot, value):
        place = fluid.CPUPlace()
        if isinstance(value, dict):
            rows = scope.var(slot).get_selected_rows()
            rows.set_rows(value["rows"])
            rows.set_height(value["height"])
            rows.get_tensor().set(value["value"], place)
        else:
            scope.var(slot).get_tensor().set(value, place)

    for slot, value in ins.items():
        put(slot, value)
    steps = []
    for factor in STEPS:
        for slot in grads:
            value = ins[slot]
            if isinstance(value, dict):
                put(slot, dict(value, value=value["value"] * np.float32(factor)))
            else:
                put(slot, value * np.float32(factor))
        exe.run(main)
        found = {}
        for i in outs:
            if i in grads and isinstance(ins[i], dict):
                continue
            name = "Out" if i == "X" else i
            array = np.array(scope.find_var(name).get_tensor())
            found[i] = [float(f"{v:.9g}") for v in array.reshape(-1)]
        steps.append(found)
    return steps


def main():
    import subprocess

    if len(sys.argv) > 1:
        print(json.dumps(run(sys.argv[1])))
        return
    found = {}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "update_ops.json")
    for name in CASES:
        done = subprocess.run(
            [sys.executable, __file__, name],
            capture_output=True,
        )
        text = done.stdout.decode().strip().splitlines()
        found[name] = json.loads(text[-1]) if done.returncode == 0 else None
        if found[name] is None:
            print("refused:", name)
    lines = [f'"{k}": {json.dumps(v)}' for k, v in found.items()]
    with open(path, "w") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
