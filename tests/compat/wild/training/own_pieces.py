"""py_func losses, an own initializer, regularizer and layer, operators."""

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers
from paddle.fluid.layer_helper import LayerHelper
from paddle.fluid.framework import (
    Variable,
    Parameter,
    default_main_program,
    in_dygraph_mode,
)


class OrthogonalLike(fluid.initializer.Initializer):
    """A user's own initializer."""

    def __init__(self, seed=0):
        super(OrthogonalLike, self).__init__()
        self.seed = seed

    def __call__(self, var, block):
        a = np.random.RandomState(self.seed).randn(*var.shape)
        q, _ = np.linalg.qr(a)
        values = [float(v) for v in q.ravel()]
        op = block._prepend_op(
            type="assign_value",
            outputs={"Out": [var]},
            attrs={"dtype": var.dtype, "shape": list(q.shape), "fp32_values": values},
            stop_gradient=True,
        )
        var.op = op
        return op


class WarmupDecay(fluid.regularizer.WeightDecayRegularizer):
    """|w|^2 with a per-layer coefficient."""

    def __init__(self, coeff):
        super(WarmupDecay, self).__init__()
        self.coeff = coeff

    def __call__(self, param, grad, block):
        decay = block.create_var(
            dtype="float32", shape=param.shape, lod_level=param.lod_level
        )
        block.append_op(
            type="scale",
            inputs={"X": param},
            outputs={"Out": decay},
            attrs={"scale": self.coeff},
        )
        return decay

    def __str__(self):
        return "WarmupDecay, coeff=%f" % self.coeff


def focal_forward(prob, label):
    p, l = np.array(prob), np.array(label)
    pt = p[np.arange(len(l)), l.ravel()][:, None]
    return (-((1 - pt) ** 2) * np.log(pt + 1e-8)).astype("float32")


def focal_backward(prob, label, out, d_out):
    p, l, d = np.array(prob), np.array(label).ravel(), np.array(d_out)
    g = np.zeros_like(p)
    i = np.arange(len(l))
    pt = p[i, l]
    g[i, l] = (2 * (1 - pt) * np.log(pt + 1e-8) - (1 - pt) ** 2 / (pt + 1e-8)) * d[:, 0]
    return g.astype("float32"), None


def two_outputs(x):
    a = np.array(x)
    return a.max(1, keepdims=True), a.argmax(1).reshape(-1, 1).astype("int64")


def bilinear_layer(x, y, size, name=None, param_attr=None, bias_attr=None, act=None):
    helper = LayerHelper("bilinear_tensor_product", **locals())
    dtype = helper.input_dtype("x")
    w = helper.create_parameter(
        attr=helper.param_attr,
        shape=[size, x.shape[1], y.shape[1]],
        dtype=dtype,
        is_bias=False,
    )
    out = helper.create_variable_for_type_inference(dtype=dtype)
    inputs = {"X": x, "Y": y, "Weight": w}
    if helper.bias_attr:
        inputs["Bias"] = helper.create_parameter(
            attr=helper.bias_attr, shape=[1, size], dtype=dtype, is_bias=True
        )
    helper.append_op(
        type="bilinear_tensor_product", inputs=inputs, outputs={"Out": out}
    )
    return helper.append_activation(out)


def main():
    x = layers.data("x", [4])
    y = layers.data("y", [1], dtype="int64")
    h = layers.fc(
        x,
        4,
        param_attr=fluid.ParamAttr(
            name="orth", initializer=OrthogonalLike(1), regularizer=WarmupDecay(0.01)
        ),
        bias_attr=False,
    )
    b = bilinear_layer(
        h,
        x,
        3,
        name="bi",
        param_attr=fluid.ParamAttr(
            name="bi_w",
            initializer=fluid.initializer.NumpyArrayInitializer(
                np.linspace(-0.5, 0.5, 48).reshape(3, 4, 4).astype("float32")
            ),
        ),
        act="tanh",
    )
    tied = layers.matmul(
        layers.matmul(
            b,
            default_main_program()
            .global_block()
            .create_parameter(
                name="tie",
                shape=[3, 3],
                dtype="float32",
                initializer=fluid.initializer.Constant(0.3),
            ),
        ),
        layers.transpose(default_main_program().global_block().var("tie"), [1, 0]),
    )
    prob = layers.softmax(b + tied)
    block = default_main_program().current_block()
    out = block.create_var(name="focal", dtype="float32", shape=[-1, 1])
    layers.py_func(
        func=focal_forward, x=[prob, y], out=out, backward_func=focal_backward
    )
    mx = block.create_var(name="mx", dtype="float32", shape=[-1, 1])
    am = block.create_var(name="am", dtype="int64", shape=[-1, 1])
    layers.py_func(two_outputs, prob, [mx, am])
    extra = (1.0 - x) * 2.0 / (layers.abs(x) + 1.0) - x**2.0 + (-x)
    cmp = (
        layers.cast((x > 0.0), "float32")
        + layers.cast(x <= extra, "float32")
        + layers.cast(layers.logical_not(x == extra), "float32")
    )
    sliced = extra[:, 1:3]
    loss = (
        layers.mean(out) + 0.01 * layers.mean(sliced * sliced) + 0.0 * layers.mean(cmp)
    )
    print(
        loss.shape,
        extra.shape,
        sliced.shape,
        isinstance(out, Variable),
        in_dygraph_mode(),
    )
    fluid.optimizer.AdagradOptimizer(0.1).minimize(loss)
    for p in default_main_program().all_parameters():
        print(p.name, p.shape, p.regularizer, isinstance(p, Parameter))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    print(
        np.round(
            np.array(fluid.global_scope().find_var("orth").get_tensor()), 4
        ).tolist()
    )
    rng = np.random.RandomState(0)
    for i in range(5):
        r = exe.run(
            feed={
                "x": rng.randn(4, 4).astype("float32"),
                "y": rng.randint(0, 3, (4, 1)).astype("int64"),
            },
            fetch_list=[loss, mx, am, extra, cmp, "orth@GRAD"],
        )
        print(
            "%d %.5f %.5f %s %.4f %.1f %.5f"
            % (
                i,
                r[0],
                r[1].sum(),
                r[2].ravel().tolist(),
                np.abs(r[3]).sum(),
                r[4].sum(),
                np.abs(r[5]).sum(),
            )
        )


if __name__ == "__main__":
    main()
