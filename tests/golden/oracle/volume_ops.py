"""What the reference makes of 3-d convolution and pooling, and pooling with index.

Runs under the reference; writes volume_conv.json and volume_pool.json beside itself
(see op_probe.py).
"""

import os

import numpy as np
import op_probe

HERE = os.path.dirname(os.path.abspath(__file__))


def rnd(*shape, seed=0):
    made = np.random.RandomState(seed).standard_normal(shape)
    return np.round(made, 2).astype("float32")


def head(*shape):
    return rnd(*shape, seed=5)


def conv(op, x, w, out, shapes=None, **attrs):
    every = {"strides": [1] * 3, "paddings": [0] * 3, "dilations": [1] * 3, "groups": 1}
    if len(out) == 4:
        every.update(strides=[1, 1], paddings=[0, 0], dilations=[1, 1])
    every.update(attrs)
    made = {
        "op": op,
        "inputs": {"Input": x, "Filter": w},
        "attrs": every,
        "outs": ["Output"],
        "grads": {"Output": head(*out)},
    }
    if shapes:
        made["shapes"] = shapes
        del made["grads"]
        made["run"] = False
    return made


def conv_cases():
    x, w = rnd(1, 2, 3, 4, 3), rnd(2, 2, 2, 2, 2, seed=1)
    last = rnd(1, 3, 4, 3, 2)
    same, valid = {"padding_algorithm": "SAME"}, {"padding_algorithm": "VALID"}
    yield conv("conv3d", x, w, (1, 2, 2, 3, 2))
    yield conv("conv3d", x, w, (1, 2, 2, 2, 2), strides=[2, 2, 2], paddings=[1, 0, 1])
    yield conv("conv3d", x, w, (1, 2, 3, 4, 4), paddings=[0, 1, 1, 0, 1, 1])
    yield conv("conv3d", x, w, (1, 2, 3, 4, 3), **same)
    yield conv("conv3d", x, w, (1, 2, 2, 4, 2), strides=[2, 1, 2], **same)
    yield conv("conv3d", x, rnd(2, 1, 2, 2, 2), (1, 2, 2, 3, 2), groups=2)
    yield conv("conv3d", last, w, (1, 2, 3, 2, 2), data_format="NDHWC")
    free = {"Input": [-1, 2, -1, 4, -1]}
    yield conv("conv3d", x, w, (0,) * 5, shapes=free, paddings=[1, 1, 1])
    yield conv("conv3d", x, rnd(2, 3, 2, 2, 2), (1, 2, 2, 3, 2))
    t = "conv3d_transpose"
    wide, thin = rnd(2, 3, 2, 2, 2, seed=1), rnd(2, 1, 2, 2, 2, seed=1)
    small = rnd(1, 2, 2, 2, 3)
    yield conv(t, small, wide, (1, 3, 3, 3, 4))
    two = {"strides": [2, 2, 2]}
    yield conv(t, small, wide, (1, 3, 4, 4, 6), **two)
    yield conv(t, small, wide, (1, 3, 2, 4, 4), paddings=[1, 0, 1], **two)
    yield conv(t, small, wide, (1, 3, 5, 4, 7), output_size=[5, 4, 7], **two)
    yield conv(t, small, wide, (1, 3, 3, 4, 6), paddings=[0, 1, 0, 0, 0, 0], **two)
    yield conv(t, small, thin, (1, 2, 3, 3, 4), groups=2)
    yield conv(t, small, wide, (1, 3, 4, 4, 5), dilations=[2, 2, 2])
    yield conv(t, small, wide, (1, 3, 4, 4, 5), **two, **same)
    yield conv(t, small, wide, (1, 3, 4, 4, 6), paddings=[1, 1, 1], **two, **valid)
    yield conv(t, rnd(1, 2, 3, 2, 2), wide, (1, 3, 4, 3, 3), data_format="NHWC")
    yield conv(t, small, wide, (0,) * 5, shapes={"Input": [-1, 2, -1, 2, 3]}, **two)
    yield conv(t, small, wide, (1, 3, 9, 4, 7), output_size=[9, 4, 7], **two)
    d = "depthwise_conv2d_transpose"
    x, w = rnd(1, 2, 3, 4), rnd(2, 1, 3, 2, seed=1)
    yield conv(d, x, w, (1, 2, 5, 5), groups=2)
    yield conv(d, x, w, (1, 2, 5, 8), groups=2, strides=[2, 2], paddings=[1, 0])


def pool(op, x, out=None, **attrs):
    outs = ["Out", "Mask"] if "index" in op else ["Out"]
    made = {"op": op, "inputs": {"X": x}, "attrs": attrs, "outs": outs}
    if out:
        made["grads"] = {"Out": head(*out)}
    return made


def pool_cases():
    x, last = rnd(1, 2, 3, 4, 3), rnd(1, 3, 4, 3, 2)
    for kind in ("max", "avg"):
        p = {"pooling_type": kind}
        two = dict(p, ksize=[2, 2, 2])
        whole = dict(p, ksize=[1, 1, 1], global_pooling=True)
        yield pool("pool3d", x, (1, 2, 2, 3, 2), **two)
        yield pool(
            "pool3d", x, (1, 2, 2, 3, 2), strides=[2] * 3, paddings=[1] * 3, **two
        )
        yield pool("pool3d", x, (1, 2, 2, 2, 2), strides=[2] * 3, ceil_mode=True, **two)
        yield pool("pool3d", x, (1, 2, 3, 4, 3), padding_algorithm="SAME", **two)
        yield pool("pool3d", x, (1, 2, 3, 4, 3), paddings=[0, 1, 1, 0, 0, 1], **two)
        yield pool("pool3d", x, (1, 2, 1, 1, 1), **whole)
        yield pool("pool3d", last, (1, 2, 3, 2, 2), data_format="NDHWC", **two)
    avg = {"pooling_type": "avg", "ksize": [2, 2, 2], "paddings": [1, 1, 1]}
    yield pool("pool3d", x, (1, 2, 4, 5, 4), exclusive=False, **avg)
    avg = {"pooling_type": "avg", "adaptive": True}
    yield pool("pool3d", x, (1, 2, 2, 2, 2), ksize=[2, 2, 2], **avg)
    yield pool("pool3d", x, (1, 2, 3, 2, 1), ksize=[3, 2, 1], **avg)
    yield dict(
        pool("pool3d", x, ksize=[2, 2, 2], pooling_type="max"),
        shapes={"X": [-1, 2, -1, 4, 3]},
        run=False,
    )
    i = "max_pool3d_with_index"
    yield pool(i, x, (1, 2, 2, 3, 2), ksize=[2, 2, 2])
    yield pool(
        i, x, (1, 2, 2, 3, 2), ksize=[2, 2, 2], strides=[2] * 3, paddings=[1] * 3
    )
    yield pool(i, x, (1, 2, 2, 2, 2), ksize=[2, 2, 2], adaptive=True)
    yield pool(i, x, (1, 2, 1, 1, 1), ksize=[2, 2, 2], global_pooling=True)
    i, x = "max_pool2d_with_index", rnd(1, 2, 5, 4)
    yield pool(i, x, (1, 2, 4, 3), ksize=[2, 2])
    yield pool(i, x, (1, 2, 3, 2), ksize=[3, 3], strides=[2, 2], paddings=[1, 1])
    yield pool(i, x, (1, 2, 3, 3), ksize=[3, 3], adaptive=True)
    yield pool(i, x, (1, 2, 5, 2), ksize=[5, 2], adaptive=True)
    yield pool(i, x, (1, 2, 1, 1), ksize=[2, 2], global_pooling=True)
    ties = np.maximum(rnd(1, 2, 4, 4), 0)
    yield pool(i, ties, (1, 2, 2, 2), ksize=[3, 3], strides=[2, 2], paddings=[1, 1])
    yield pool(i, ties, (1, 2, 3, 3), ksize=[3, 3], adaptive=True)
    yield dict(pool(i, x, ksize=[2, 2]), shapes={"X": [-1, 2, 5, 4]}, run=False)
    m, x = "maxout", np.maximum(rnd(2, 4, 2, 2), -0.2)
    yield pool(m, x, (2, 2, 2, 2), groups=2)
    yield pool(m, x, (2, 1, 2, 2), groups=4, axis=1)
    yield pool(m, rnd(2, 2, 2, 6), (2, 2, 2, 2), groups=3, axis=3)
    yield pool(m, x, groups=3)
    yield dict(pool(m, x, groups=2), shapes={"X": [-1, 4, -1, 2]}, run=False)


if __name__ == "__main__":
    op_probe.record(conv_cases(), os.path.join(HERE, "volume_conv.json"))
    op_probe.record(pool_cases(), os.path.join(HERE, "volume_pool.json"))
