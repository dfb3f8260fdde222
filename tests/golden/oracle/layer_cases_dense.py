"""More small networks: tensors made, moved, picked and multiplied (see layer_cases).

Run under the reference it writes their programs to layers_dense.json; names of cases
as arguments: it prints these instead.
"""

import json
import os
import sys

import numpy as np


def _x(fluid, shape=(None, 8), dtype="float32", name="x"):
    return fluid.data(name, list(shape), dtype)


def _backward(fluid, made):
    """The gradient program, too."""
    fluid.backward.append_backward(fluid.layers.reduce_sum(made))


def _leaf(fluid, shape, name="x"):
    var = _x(fluid, shape, name=name)
    var.stop_gradient = False
    return var


# ---------------------------------------------------------------- products


def products(fluid):
    layers = fluid.layers
    a, b = _x(fluid, (2, 4), name="a"), _x(fluid, (4, 3), name="b")
    layers.addmm(_x(fluid, (2, 3)), a, b)
    layers.addmm(_x(fluid, (1, 3), name="row"), a, b, alpha=2.0, beta=0.5, name="n")
    p, q = _x(fluid, (None, 2, 3), name="p"), _x(fluid, (None, 3, 5), name="q")
    layers.bmm(p, q)
    layers.bmm(p, q, name="named")
    v, w = _x(fluid, name="v"), _x(fluid, name="w")
    layers.dot(v, w)
    layers.kron(v, w)
    layers.kron(a, b, name="blocks")
    c, d = _x(fluid, (None, 3), name="c"), _x(fluid, (None, 3), name="d")
    layers.cross(c, d)
    layers.cross(c, d, dim=1)


def norms(fluid):
    layers = fluid.layers
    a, b = _x(fluid, (2, 4), name="a"), _x(fluid, (2, 4), name="b")
    layers.dist(a, b)
    layers.dist(a, b, 0)
    layers.dist(a, b, p=1.5)
    layers.allclose(a, b)
    layers.allclose(a, b, rtol=0.1, atol=0.2, equal_nan=True, name="close")
    layers.cumsum(a)
    layers.cumsum(a, 0, True, True)
    layers.cumsum(a, axis=1, reverse=True)


def diagonals(fluid):
    layers = fluid.layers
    x = _x(fluid, (3, 3, 4))
    layers.diag(_x(fluid, (3,), name="d"))
    layers.diag(np.array([1, 2, 3], "int32"))
    layers.diag_embed(_x(fluid, (2, 3), name="e"))
    layers.diag_embed(_x(fluid, (None, 3), name="f"), 1, 0, 2)
    layers.eye(3)
    layers.eye(3, 4, dtype="int64")
    layers.eye(2, batch_shape=[3, 5], dtype="int32")
    layers.trace(x)
    layers.trace(x, offset=-1, dim1=2, dim2=0, name="traced")
    layers.tril(x)
    layers.tril(x, 1)
    layers.triu(x, diagonal=-1, name="upper")


def products_backward(fluid):
    layers = fluid.layers
    x, y = _leaf(fluid, (3, 3)), _leaf(fluid, (3, 3), "y")
    made = layers.addmm(x, x, y) + layers.cross(x, y) + layers.cumsum(y, exclusive=True)
    made = made + layers.dist(x, y) + layers.dot(x, y) + layers.trace(x)
    made = made + layers.tril(x) + layers.reduce_sum(layers.kron(x, y))
    _backward(fluid, made + layers.reduce_sum(layers.diag_embed(x)))


# ---------------------------------------------------------------- borders


def paddings(fluid):
    layers = fluid.layers
    x, image = _x(fluid, (2, 3)), _x(fluid, (None, 3, 4, 5), name="image")
    layers.pad(x, [0, 1, 1, 0])
    layers.pad(x, [0, 1, 1, 0], 2.0, name="padded")
    layers.pad_constant_like(x, _x(fluid, (1, 3), name="y"), 2.0)
    layers.pad2d(image)
    layers.pad2d(image, [1, 1, 2, 2], "reflect")
    layers.pad2d(image, [1, 0, 0, 2], "edge", data_format="NHWC")
    layers.pad2d(image, (1, 0, 0, 2), pad_value=1.5, name="p")
    layers.pad2d(image, _x(fluid, (4,), "int32", "around"), name="q")


def crops(fluid):
    layers = fluid.layers
    x = _x(fluid, (3, 4))
    sizes, starts = _x(fluid, (2,), "int32", "s"), _x(fluid, (2,), "int32", "o")
    one = _x(fluid, (1,), "int32", "one")
    layers.crop(x, [2, 2])
    layers.crop(x, shape=[2, 2], offsets=[1, 1])
    layers.crop(x, shape=_x(fluid, (2, 2), name="like"))
    layers.crop(x, shape=[2, 2], offsets=starts, name="c")
    layers.crop_tensor(x, [2, -1])
    layers.crop_tensor(x, shape=[2, 2], offsets=[1, 0])
    layers.crop_tensor(x, shape=sizes, offsets=starts)
    layers.crop_tensor(x, shape=[one, 3], offsets=[0, one])
    layers.crop_tensor(x, shape=[2, one], name="t")
    layers.crop_tensor(_x(fluid, (None, 4), name="u"), shape=[-1, 3], offsets=[0, 1])


def borders_backward(fluid):
    layers = fluid.layers
    x = _leaf(fluid, (2, 3, 4, 4))
    made = layers.pad2d(layers.pad(x, [0, 0, 0, 0, 1, 1, 0, 0]), [1, 0, 2, 1], "edge")
    made = layers.crop_tensor(made, shape=[2, 2, 3, 3], offsets=[0, 1, 2, 0])
    made = layers.pad_constant_like(x, made)
    _backward(fluid, layers.crop(made, [1, 1, 2, 2]))


# ---------------------------------------------------------------- picking


def picks(fluid):
    layers = fluid.layers
    x, i = _x(fluid), _x(fluid, (None, 1), "int64", "i")
    layers.gather_nd(x, i)
    layers.gather_nd(x, _x(fluid, (4, 5, 2), "int32", "k"), name="g")
    layers.index_select(x, _x(fluid, (4,), "int64", "j"), 1)
    layers.index_select(x, _x(fluid, (None,), "int32", "l"))
    layers.index_sample(x, _x(fluid, (None, 3), "int64", "m"))
    more = _x(fluid, name="u")
    layers.scatter_nd_add(x, i, more)
    layers.scatter_nd_add(x, i, more, name="s")
    layers.scatter_nd(i, more, [10, 8])
    layers.scatter_nd(i, more, [10, 8], name="t")
    layers.multiplex([x, more], _x(fluid, (None, 1), "int32", "n"))
    layers.shard_index(i, 20, 2, 0)
    layers.shard_index(i, 20, 3, 2, ignore_value=-5)


def conditions(fluid):
    layers = fluid.layers
    x = _x(fluid, (2, None), "bool")
    layers.where(x)
    layers.nonzero(x)
    layers.nonzero(x, as_tuple=True)
    layers.nonzero(_x(fluid, (5,), name="flat"), as_tuple=True)
    layers.unique(_x(fluid, (None,), name="a"))
    layers.unique(_x(fluid, (6,), "int32", "b"), dtype="int64")
    layers.unique_with_counts(_x(fluid, (6,), "int64", "c"))
    layers.unique_with_counts(_x(fluid, (6,), "int32", "d"), "int64")
    layers.size(x)
    iou = _x(fluid, (None, 4), "int32", "found"), _x(fluid, (None, 4), "int32", "true")
    layers.mean_iou(*iou, num_classes=3)


def picks_backward(fluid):
    layers = fluid.layers
    x, y = _leaf(fluid, (4, 4)), _leaf(fluid, (4, 4), "y")
    i = _x(fluid, (4, 1), "int64", "i")
    j = _x(fluid, (4, 4), "int64", "j")
    made = layers.gather_nd(x, i) + layers.index_select(
        x, _x(fluid, (4,), "int64", "k"), 1
    )
    made = made + layers.index_sample(y, j) + layers.scatter_nd_add(x, i, y)
    ids = _x(fluid, (4, 1), "int32", "ids")
    made = layers.multiplex([made, x, y], ids) + layers.scatter_nd(i, x, [4, 4])
    _backward(fluid, made)


# ---------------------------------------------------------------- moving


def moves(fluid):
    layers = fluid.layers
    x = _x(fluid, (2, 3))
    layers.expand_as(_x(fluid, (1, 2), name="part"), _x(fluid, (4, 4), name="whole"))
    layers.flip(x, [0])
    layers.flip(_x(fluid, name="y"), [1, -2], name="f")
    layers.roll(x, 1)
    layers.roll(x, [1, 2], [0, 1])
    layers.roll(x, 1, 0)
    layers.meshgrid([_x(fluid, (2,), name="a"), _x(fluid, (3,), name="b")])
    layers.meshgrid([_x(fluid, (None,), name=n) for n in "cde"], name="m")


def images(fluid):
    layers = fluid.layers
    x = _x(fluid, (None, 8, 4, 4))
    layers.space_to_depth(x, 2)
    layers.space_to_depth(_x(fluid, (None, 9, 3, 6), name="y"), 3, name="s")
    layers.pixel_shuffle(x, 2)
    layers.shuffle_channel(x, 4)
    layers.shuffle_channel(x, group=2, name="c")
    layers.temporal_shift(x, 2)
    layers.temporal_shift(x, 4, 0.125, name="t")
    layers.unfold(x, 3)
    layers.unfold(x, [3, 2], [1, 2], [1, 2], 1)
    layers.unfold(x, [3, 2], 2, [1, 2, 3, 4], [1, 2], name="u")
    layers.maxout(x, 2)
    layers.maxout(x, groups=4, axis=-1, name="m")


def moves_backward(fluid):
    layers = fluid.layers
    x = _leaf(fluid, (2, 4, 4, 4))
    made = layers.flip(x, [0]) + layers.roll(x, 1, 2) + layers.roll(x, 3)
    made = layers.shuffle_channel(made, 2) + layers.temporal_shift(x, 2)
    made = layers.unfold(layers.pixel_shuffle(made, 2), 2)
    made = layers.reduce_sum(made) + layers.maxout(layers.space_to_depth(x, 2), 2)
    _backward(fluid, made)


# ---------------------------------------------------------------- making, drawing


def lines(fluid):
    layers = fluid.layers
    layers.linspace(0, 10, 5, "float32")
    layers.linspace(0.5, _x(fluid, (1,), "float64", "b"), 7, "float64")
    one = _x(fluid, (1,))
    layers.linspace(one, 10, _x(fluid, (1,), "int32", "n"), "float32")
    layers.linspace(0, 10, 5, "int32")


def choices(fluid):
    layers = fluid.layers
    one = _x(fluid, (1,), "int64", "one")
    layers.randint(3)
    layers.randint(3, shape=[2, 3], device="cpu")
    layers.randint(-3, 8, [2, 3], dtype="int32", seed=4, stop_gradient=True, name="r")
    layers.randint(-3, 8, shape=_x(fluid, (2,), "int32", "s"))
    layers.randint(-3, 8, shape=[one, 3])
    layers.randint(5, out=layers.create_tensor("int64", "made"))
    layers.randperm(6)
    layers.randperm(6, dtype="int32", device="cpu", stop_gradient=False, seed=3)
    x = _x(fluid, (None, 5))
    layers.sampling_id(x)
    layers.sampling_id(x, 0.1, 0.9, 7, "int64")
    image = _x(fluid, (None, 3, 8, 8), name="image")
    layers.random_crop(image, [3, 4, 4], seed=5)
    layers.random_crop(image, [4, 4], seed=one)


def gaussians(fluid):
    layers = fluid.layers
    a, b = _x(fluid, (2,), name="a"), _x(fluid, (2,), name="b")
    s, t = _x(fluid, (2, 2), name="s"), _x(fluid, (2, 2), name="t")
    one, other = (layers.MultivariateNormalDiag(*p) for p in ((a, s), (b, t)))
    one.entropy()
    one.kl_divergence(other)
    array = np.array([[0.5, 0], [0, 2]], "float32")
    layers.MultivariateNormalDiag(np.array([1, 2], "float32"), array).entropy()


def prints(fluid):
    layers = fluid.layers
    x = _leaf(fluid, (2, 3))
    made = layers.Print(x, message="hello")
    more = layers.Print(
        x,
        first_n=3,
        summarize=5,
        print_tensor_name=False,
        print_tensor_type=False,
        print_tensor_shape=False,
        print_tensor_lod=False,
        print_phase="Backward",
    )
    _backward(fluid, made + more)


def cases():
    """Every network of this file by name, in order."""
    return {
        n: f
        for n, f in globals().items()
        if callable(f) and not n.startswith("_") and n != "cases"
    }


if __name__ == "__main__":
    HERE = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, HERE)
    import layers as oracle
    import paddle.fluid as reference

    if sys.argv[1:]:
        oracle.layer_cases = sys.modules["__main__"]
        oracle.show(reference, sys.argv[1:])
    else:
        lines_ = []
        for name_, case_ in cases().items():
            made_ = oracle.build(reference, case_)
            made_ = {role: oracle.compact(p) for role, p in made_.items()}
            text_ = json.dumps(made_, sort_keys=True, separators=(",", ":"))
            lines_.append(json.dumps(name_) + ":" + text_)
        with open(os.path.join(HERE, "layers_dense.json"), "w") as file_:
            file_.write("{" + ",\n".join(lines_) + "}\n")
