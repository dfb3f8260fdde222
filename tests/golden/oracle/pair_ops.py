"""What the reference makes of ranking and similarity losses, of data_norm and others.

Runs under the reference; writes pair_ops.json beside itself (see op_probe.py).
"""

import os

import numpy as np
import op_probe

HERE = os.path.dirname(os.path.abspath(__file__))


def rnd(*shape, seed=0):
    made = np.random.RandomState(seed).standard_normal(shape)
    return np.round(made, 2).astype("float32")


def ask(op, inputs, outs, out=None, **attrs):
    made = {"op": op, "inputs": inputs, "attrs": attrs, "outs": outs}
    if out:
        made["grads"] = {outs[0]: rnd(*out, seed=5)}
    return made


def column(*values, dtype="float32"):
    return np.array(values, dtype).reshape(-1, 1)


def loss_cases():
    x = rnd(4, 5)
    label = column(1, 0, 4, 2, dtype="int64")
    yield ask("bpr_loss", {"X": x, "Label": label}, ["Y"], (4, 1))
    yield ask("bpr_loss", {"X": x * 40, "Label": label}, ["Y"], (4, 1))
    yield ask("bpr_loss", {"X": x, "Label": label[:3]}, ["Y"])
    deep = {"X": rnd(2, 2, 5), "Label": label.reshape(2, 2, 1)}
    yield ask("bpr_loss", deep, ["Y"])  # its gradient is wrong there
    one, two, sign = rnd(4, 1), rnd(4, 1, seed=1), column(1, -1, 1, -1)
    pair = {"X1": one, "X2": two, "Label": sign}
    made = ask("margin_rank_loss", pair, ["Activated", "Out"], margin=0.5)
    yield dict(made, grads={"Out": rnd(4, 1, seed=5)})
    pair = {"X1": one * 0, "X2": two * 0, "Label": sign}
    made = ask("margin_rank_loss", pair, ["Activated", "Out"], margin=0.0)
    yield dict(made, grads={"Out": rnd(4, 1, seed=5)})
    yield dict(made, shapes={k: [-1, 1] for k in pair}, run=False)
    pair = {"Label": column(1, 0, 0.5, 0), "Left": one, "Right": two}
    yield ask("rank_loss", pair, ["Out"], (4, 1))
    pair = dict(pair, Left=one * 20)
    yield ask("rank_loss", pair, ["Out"], (4, 1))
    centers = {
        "X": x,
        "Label": column(1, 0, 1, 2, dtype="int64"),
        "Centers": rnd(3, 5, seed=1),
        "CenterUpdateRate": np.array([0.1], "float32"),
    }
    slots = ["CentersOut", "SampleCenterDiff", "Loss"]
    for update in (True, False):
        made = ask("center_loss", centers, slots, cluster_num=3, need_update=update)
        made["inplace"] = {"CentersOut": "Centers"}
        yield dict(made, grads={"Loss": rnd(4, 1, seed=5)})
    log = np.log(np.abs(x) / 3 + 0.1).astype("float32")
    target = np.maximum(rnd(4, 5, seed=1), 0)
    for reduction in ("mean", "sum", "batchmean", "none"):
        out = (4, 5) if reduction == "none" else (1,)
        ins = {"X": log, "Target": target}
        yield ask("kldiv_loss", ins, ["Loss"], out, reduction=reduction)
    yield ask("kldiv_loss", {"X": log, "Target": target}, ["Loss"], reduction="max")
    label = column(0, 1, 3, -1, dtype="int32")
    focal = {"X": rnd(4, 3), "Label": label, "FgNum": np.array([2], "int32")}
    yield ask("sigmoid_focal_loss", focal, ["Out"], (4, 3))
    yield ask("sigmoid_focal_loss", focal, ["Out"], (4, 3), gamma=1.5, alpha=0.4)
    focal = dict(focal, X=rnd(4, 3) * 30, FgNum=np.array([0], "int32"))
    yield ask("sigmoid_focal_loss", focal, ["Out"], (4, 3))
    label = column(-2.5, -2, -1.5, -1, -0.5, 0, 0.25, 1, 1.5, 2.5)
    ins = {"X": rnd(10, 1) * 2, "Label": label}
    yield ask("teacher_student_sigmoid_loss", ins, ["Y"], (10, 1))
    ins = {"X": rnd(10, 1) * 9, "Label": label}
    bounds = {"soft_max_up_bound": 4.0, "soft_max_lower_bound": -3.0}
    yield ask("teacher_student_sigmoid_loss", ins, ["Y"], (10, 1), **bounds)


def pair_cases():
    x, y = rnd(3, 4), rnd(3, 2, seed=1)
    weight = rnd(5, 4, 2, seed=2)
    ins = {"X": x, "Y": y, "Weight": weight}
    op = "bilinear_tensor_product"
    yield ask(op, ins, ["Out"], (3, 5))
    yield ask(op, dict(ins, Bias=rnd(1, 5, seed=3)), ["Out"], (3, 5))
    free = {"X": [-1, 4], "Y": [-1, 2]}
    yield dict(ask(op, ins, ["Out"]), shapes=free, run=False)
    op = "add_position_encoding"
    yield ask(op, {"X": rnd(2, 3, 6)}, ["Out"], (2, 3, 6), alpha=0.5, beta=2.0)
    yield ask(op, {"X": rnd(1, 2, 2)}, ["Out"], (1, 2, 2))
    yield ask(op, {"X": rnd(1, 2, 5)}, ["Out"])
    rows = {"data": rnd(5, 4), "lod": [[0, 2, 5]]}
    yield ask(op, {"X": rows}, ["Out"], alpha=1.0, beta=1.0)
    yield ask(
        "fsp", {"X": rnd(2, 3, 2, 2), "Y": rnd(2, 4, 2, 2, seed=1)}, ["Out"], (2, 3, 4)
    )
    wide = {"X": [-1, 3, -1, 2], "Y": [-1, 4, -1, 2]}
    ins = {"X": rnd(2, 3, 2, 2), "Y": rnd(2, 4, 2, 2, seed=1)}
    yield dict(ask("fsp", ins, ["Out"]), shapes=wide, run=False)
    yield ask("similarity_focus", {"X": rnd(2, 3, 2, 2)}, ["Out"], axis=1, indexes=[0])
    yield ask(
        "similarity_focus", {"X": rnd(2, 3, 4, 2)}, ["Out"], axis=1, indexes=[0, 2]
    )
    yield ask("similarity_focus", {"X": rnd(2, 3, 4, 2)}, ["Out"], axis=2, indexes=[1])
    yield ask("similarity_focus", {"X": rnd(2, 3, 4, 2)}, ["Out"], axis=3, indexes=[1])
    seen = np.abs(rnd(3, 2)) * 5
    x = np.abs(rnd(3, 6))
    yield ask("cvm", {"X": x, "CVM": seen}, ["Y"], (3, 6), use_cvm=True)
    yield ask("cvm", {"X": x, "CVM": seen}, ["Y"], (3, 4), use_cvm=False)


def iou_cases():
    guess = np.array([0, 1, 2, 2, 1, 0], "int32")
    truth = np.array([0, 1, 1, 2, 2, 2], "int32")
    slots = ["OutMeanIou", "OutWrong", "OutCorrect"]
    ins = {"Predictions": guess, "Labels": truth}
    yield ask("mean_iou", ins, slots, num_classes=3)
    yield ask("mean_iou", ins, slots, num_classes=5)
    more = {
        "InWrongs": [np.array([1, 0, 2], "int32"), np.array([0, 0, 1], "int32")],
        "InCorrects": [np.array([4, 0, 2], "int32")],
        "InMeanIou": [np.array([0.5], "float32")],
    }
    yield ask("mean_iou", dict(ins, **more), slots, num_classes=3)
    far = {"Predictions": guess.astype("int64"), "Labels": truth.astype("int64")}
    yield ask("mean_iou", far, slots, num_classes=3)


def norm_cases():
    n = rnd(4, 6)
    ins = {
        "X": n,
        "BatchSize": np.full(6, 100, "float32"),
        "BatchSum": rnd(6, seed=1) * 9,
        "BatchSquareSum": np.abs(rnd(6, seed=2)) * 40 + 20,
    }
    slots = ["Y", "Means", "Scales"]
    yield ask("data_norm", ins, slots, (4, 6), epsilon=1e-4)
    zeros = n * np.array([[0, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]] * 2, "float32")
    yield ask("data_norm", dict(ins, X=zeros), slots, (4, 6), slot_dim=3)
    zeros = zeros * np.array([[0, 1, 1, 1, 1, 1]] * 4, "float32")
    yield ask("data_norm", dict(ins, X=zeros), slots, (4, 6), slot_dim=3)
    more = dict(ins, scale_w=rnd(6, seed=3), bias=rnd(6, seed=4))
    yield ask("data_norm", more, slots, (4, 6), enable_scale_and_shift=True)
    more["X"] = zeros
    yield ask("data_norm", more, slots, (4, 6), enable_scale_and_shift=True, slot_dim=3)
    weight = rnd(3, 4)
    ins = {"Weight": weight, "U": rnd(3, seed=1), "V": rnd(4, seed=2)}
    # without gradients: they are wrong there
    for iters in (0, 1, 3):
        yield ask("spectral_norm", ins, ["Out"], dim=0, power_iters=iters)
    deep = {"Weight": rnd(2, 3, 2, 2), "U": rnd(3, seed=1), "V": rnd(8, seed=2)}
    yield ask("spectral_norm", deep, ["Out"], dim=1, power_iters=2)
    yield ask("spectral_norm", dict(ins, V=rnd(3)), ["Out"], dim=0)


if __name__ == "__main__":
    cases = [*loss_cases(), *pair_cases(), *iou_cases(), *norm_cases()]
    op_probe.record(cases, os.path.join(HERE, "pair_ops.json"))
