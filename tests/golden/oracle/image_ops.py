"""What the reference makes of interpolation, sampling grids and affine channels.

Runs under the reference; writes image_ops.json beside itself (see op_probe.py).
"""

import os

import numpy as np
import op_probe

HERE = os.path.dirname(os.path.abspath(__file__))


def rnd(*shape, seed=0):
    made = np.random.RandomState(seed).standard_normal(shape)
    return np.round(made, 2).astype("float32")


def ask(op, inputs, out=None, slot="Out", **attrs):
    made = {"op": op, "inputs": inputs, "attrs": attrs, "outs": [slot]}
    if out:
        made["grads"] = {slot: rnd(*out, seed=5)}
    return made


FLAGS = [(True, 1), (False, 1), (False, 0)]


def interp_cases():
    line, image, last = rnd(1, 2, 3, 4), rnd(1, 1, 3, 5), rnd(1, 3, 4, 2)
    for op, method in (
        ("bilinear_interp", "bilinear"),
        ("nearest_interp", "nearest"),
        ("bicubic_interp", "bicubic"),
    ):
        for corners, mode in FLAGS:
            how = {"align_corners": corners, "align_mode": mode}
            how["interp_method"] = method
            one = {"X": image}
            yield ask(op, one, (1, 1, 5, 7), out_h=5, out_w=7, **how)
            yield ask(op, one, (1, 1, 2, 3), out_h=2, out_w=3, **how)
        how = {"align_corners": True, "interp_method": method}
        yield ask(op, {"X": image}, (1, 1, 6, 10), scale=2.0, out_h=4, out_w=4, **how)
        yield ask(op, {"X": image}, (1, 1, 1, 1), out_h=1, out_w=1, **how)
        yield ask(op, {"X": image}, (1, 1, 3, 5), out_h=3, out_w=5, **how)
        how = {"align_corners": False, "interp_method": method}
        yield ask(
            op, {"X": last}, (1, 5, 3, 2), out_h=5, out_w=3, data_layout="NHWC", **how
        )
        size = np.array([4, 3], "int32")
        yield ask(
            op, {"X": line, "OutSize": size}, (1, 2, 4, 3), out_h=9, out_w=9, **how
        )
        parts = [np.array([4], "int32"), np.array([3], "int32")]
        yield ask(op, {"X": line, "SizeTensor": parts}, (1, 2, 4, 3), **how)
        scale = np.array([1.5], "float32")
        yield ask(op, {"X": line, "Scale": scale}, (1, 2, 4, 6), **how)
        yield dict(
            ask(op, {"X": line}, out_h=5, out_w=6, **how),
            shapes={"X": [-1, 2, -1, -1]},
            run=False,
        )
        yield dict(
            ask(op, {"X": line}, scale=1.5, **how),
            shapes={"X": [-1, 2, 3, -1]},
            run=False,
        )
        yield ask(op, {"X": line}, **how)
    op, x = "trilinear_interp", rnd(1, 1, 2, 3, 2)
    for corners, mode in FLAGS:
        how = {"align_corners": corners, "align_mode": mode}
        how["interp_method"] = "trilinear"
        yield ask(op, {"X": x}, (1, 1, 3, 4, 3), out_d=3, out_h=4, out_w=3, **how)
    how = {"align_corners": False, "align_mode": 1, "interp_method": "trilinear"}
    yield ask(op, {"X": x}, (1, 1, 1, 2, 1), out_d=1, out_h=2, out_w=1, **how)
    yield ask(op, {"X": x}, (1, 1, 4, 6, 4), scale=2.0, **how)
    last = rnd(1, 2, 3, 2, 2)
    size = {"out_d": 3, "out_h": 2, "out_w": 3, "data_layout": "NHWC"}
    yield ask(op, {"X": last}, (1, 3, 2, 3, 2), **size, **how)
    size = np.array([3, 2, 3], "int32")
    yield ask(op, {"X": x, "OutSize": size}, (1, 1, 3, 2, 3), **how)
    yield dict(
        ask(op, {"X": x}, scale=2.0, **how), shapes={"X": [-1, 1, 2, -1, 2]}, run=False
    )


def grid_cases():
    x = rnd(2, 2, 3, 4)
    inside = np.clip(rnd(2, 3, 4, 2, seed=1) / 2, -0.95, 0.95)
    outside = rnd(2, 3, 4, 2, seed=2) * 2
    yield ask("grid_sampler", {"X": x, "Grid": inside}, (2, 2, 3, 4), slot="Output")
    yield ask("grid_sampler", {"X": x, "Grid": outside}, (2, 2, 3, 4), slot="Output")
    small = {"X": x, "Grid": inside[:, :2]}
    yield ask("grid_sampler", small, slot="Output")
    edges = np.array([-1, -1, 1, 1, 1, -1, 0, 0.5, -1, 1, 1 / 3, 0], "float32")
    edges = np.stack([edges] * 4).reshape(2, 3, 4, 2)
    yield ask("grid_sampler", {"X": x, "Grid": edges}, slot="Output")
    yield dict(
        ask("grid_sampler", {"X": x, "Grid": inside}, slot="Output"),
        shapes={"X": [-1, 2, 3, -1], "Grid": [-1, 3, -1, 2]},
        run=False,
    )
    theta = rnd(2, 2, 3)
    t = {"Theta": theta}
    yield ask("affine_grid", t, (2, 3, 4, 2), slot="Output", output_shape=[2, 5, 3, 4])
    shape = np.array([2, 5, 2, 3], "int32")
    given = {"Theta": theta, "OutputShape": shape}
    yield ask("affine_grid", given, (2, 2, 3, 2), slot="Output")
    yield dict(
        ask("affine_grid", t, slot="Output", output_shape=[-1, 5, 3, 4]),
        shapes={"Theta": [-1, 2, 3]},
        run=False,
    )
    x = rnd(2, 3, 2, 2)
    ins = {"X": x, "Scale": rnd(3, seed=1), "Bias": rnd(3, seed=2)}
    yield ask("affine_channel", ins, (2, 3, 2, 2), data_layout="NCHW")
    yield ask("affine_channel", dict(ins, X=rnd(2, 3)), (2, 3), data_layout="NCHW")
    last = dict(ins, X=rnd(2, 2, 2, 3))
    yield ask("affine_channel", last, (2, 2, 2, 3), data_layout="NHWC")
    yield ask("affine_channel", last, (2, 2, 2, 3), data_layout="NCHW")


if __name__ == "__main__":
    cases = [*interp_cases(), *grid_cases()]
    op_probe.record(cases, os.path.join(HERE, "image_ops.json"))
