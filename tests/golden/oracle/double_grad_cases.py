"""Gradients of gradients, for both systems: `CASES` by name.

A case is a function of fluid and the float type of its data; it returns the inputs and
an output. `second` differentiates the output with respect to the inputs, and a smooth
function of these gradients with respect to the inputs once more.
"""

CASES = {}


def case(build):
    CASES[build.__name__] = build
    return build


def _data(fluid, name, shape, dtype):
    var = fluid.data(name, shape, dtype)
    var.stop_gradient = False
    return var


def second(fluid, name, dtype="float32"):
    """(inputs, first gradients, gradients of their weighted squares)."""
    inputs, out = CASES[name](fluid, dtype)
    out = fluid.layers.square(out)
    first = [g for g in fluid.gradients(out, inputs) if g is not None]
    squares = [fluid.layers.scale(fluid.layers.square(g), 0.5) for g in first]
    return inputs, squares, fluid.gradients(squares, inputs)


def _of_x(layer, *args, **kwargs):
    def build(fluid, dtype):
        x = _data(fluid, "x", [3, 4], dtype)
        return [x], getattr(fluid.layers, layer)(x, *args, **kwargs)

    return build


CASES["relu"] = _of_x("relu")
CASES["leaky_relu"] = _of_x("leaky_relu", 0.3)
CASES["square"] = _of_x("square")
CASES["elu"] = _of_x("elu", 0.7)
CASES["reshape"] = _of_x("reshape", [2, 6])
CASES["reduce_sum"] = _of_x("reduce_sum", 1)
CASES["reduce_mean"] = _of_x("reduce_mean", [0], keep_dim=True)
CASES["expand"] = _of_x("expand", [2, 3])
CASES["slice"] = _of_x("slice", [0, 1], [1, 0], [3, 2])
CASES["scale"] = _of_x("scale", 3.0)
CASES["cumsum"] = _of_x("cumsum", 1)
CASES["assign"] = _of_x("assign")


@case
def sqrt(fluid, dtype):
    x = _data(fluid, "x", [3, 4], dtype)
    two = fluid.layers.scale(fluid.layers.square(x), 1.0, 0.5)
    return [x], fluid.layers.sqrt(two)


def _pair(layer, shape, axis=-1):
    def build(fluid, dtype):
        x = _data(fluid, "x", [3, 4], dtype)
        y = _data(fluid, "y", shape, dtype)
        return [x, y], getattr(fluid.layers, layer)(x, y, axis=axis)

    return build


for _op in ("add", "sub", "mul"):
    CASES["elementwise_" + _op] = _pair("elementwise_" + _op, [3, 4])
    CASES["elementwise_" + _op + "_row"] = _pair("elementwise_" + _op, [4])
    CASES["elementwise_" + _op + "_column"] = _pair("elementwise_" + _op, [3], 0)


def _div(shape, axis=-1):
    def build(fluid, dtype):
        x = _data(fluid, "x", [3, 4], dtype)
        y = _data(fluid, "y", shape, dtype)
        below = fluid.layers.scale(fluid.layers.square(y), 1.0, 1.0)
        return [x, y], fluid.layers.elementwise_div(x, below, axis=axis)

    return build


CASES["elementwise_div"] = _div([3, 4])
CASES["elementwise_div_row"] = _div([4])
CASES["elementwise_div_column"] = _div([3], 0)


@case
def mul_by_data_alone(fluid, dtype):
    x = _data(fluid, "x", [3, 4], dtype)
    y = fluid.data("y", [3, 4], dtype)
    return [x], fluid.layers.elementwise_mul(x, y)


@case
def mul(fluid, dtype):
    x = _data(fluid, "x", [3, 4], dtype)
    w = _data(fluid, "w", [4, 2], dtype)
    return [x, w], fluid.layers.mul(x, w)


@case
def mul_of_more_axes(fluid, dtype):
    x = _data(fluid, "x", [2, 3, 2, 2], dtype)
    w = _data(fluid, "w", [2, 2, 3, 2], dtype)
    return [x, w], fluid.layers.mul(x, w, 2, 2)


@case
def mul_fixed_weight(fluid, dtype):
    x = _data(fluid, "x", [3, 4], dtype)
    w = fluid.data("w", [4, 2], dtype)
    return [x], fluid.layers.relu(fluid.layers.mul(x, w))


def _weighted(fluid, type, slots, out, shape, dtype, attrs):
    block = fluid.default_main_program().global_block()
    made = block.create_var(name="made", dtype=dtype, shape=shape)
    block.append_op(
        type=type,
        inputs=dict(slots),
        outputs={out: made},
        attrs=attrs,
    )
    return made


@case
def conv2d(fluid, dtype):
    x = _data(fluid, "x", [2, 2, 5, 4], dtype)
    w = _data(fluid, "w", [3, 2, 3, 2], dtype)
    attrs = {"strides": [1, 2], "paddings": [1, 0], "dilations": [1, 1], "groups": 1}
    slots = {"Input": x, "Filter": w}
    out = _weighted(fluid, "conv2d", slots, "Output", [2, 3, 5, 2], dtype, attrs)
    return [x, w], out


@case
def conv2d_groups(fluid, dtype):
    x = _data(fluid, "x", [2, 4, 4, 4], dtype)
    w = _data(fluid, "w", [4, 2, 2, 2], dtype)
    attrs = {"strides": [1, 1], "paddings": [0, 0], "dilations": [2, 1], "groups": 2}
    slots = {"Input": x, "Filter": w}
    out = _weighted(fluid, "conv2d", slots, "Output", [2, 4, 2, 3], dtype, attrs)
    return [x, w], out


@case
def conv3d(fluid, dtype):
    x = _data(fluid, "x", [1, 2, 3, 3, 3], dtype)
    w = _data(fluid, "w", [2, 2, 2, 2, 2], dtype)
    attrs = {"strides": [1, 1, 1], "paddings": [0, 0, 1], "dilations": [1, 1, 1]}
    attrs["groups"] = 1
    slots = {"Input": x, "Filter": w}
    out = _weighted(fluid, "conv3d", slots, "Output", [1, 2, 2, 2, 4], dtype, attrs)
    return [x, w], out


@case
def instance_norm(fluid, dtype):
    x = _data(fluid, "x", [2, 3, 2, 2], dtype)
    scale = _data(fluid, "scale", [3], dtype)
    bias = _data(fluid, "bias", [3], dtype)
    block = fluid.default_main_program().global_block()
    outs = {"Y": [2, 3, 2, 2], "SavedMean": [6], "SavedVariance": [6]}
    made = {
        slot: block.create_var(name=slot, dtype=dtype, shape=shape)
        for slot, shape in outs.items()
    }
    block.append_op(
        type="instance_norm",
        inputs={"X": x, "Scale": scale, "Bias": bias},
        outputs=made,
        attrs={"epsilon": 1e-3},
    )
    # what the statistics give is no result
    made["SavedMean"].stop_gradient = made["SavedVariance"].stop_gradient = True
    return [x, scale, bias], made["Y"]


@case
def critic(fluid, dtype):
    """Two layers as in a gradient penalty."""
    x = _data(fluid, "x", [3, 4], dtype)
    w = _data(fluid, "w", [4, 5], dtype)
    b = _data(fluid, "b", [5], dtype)
    v = _data(fluid, "v", [5, 1], dtype)
    layers = fluid.layers
    hidden = layers.elementwise_add(layers.mul(x, w), b, axis=1)
    return [x, w, b, v], layers.mul(layers.leaky_relu(hidden, 0.2), v)


# --- one of two operands wants no gradient -------------------------------------------


def _half_of(case, which):
    """The case with respect to one of its inputs; the others stop gradients."""

    def build(fluid, dtype):
        inputs, out = CASES[case](fluid, dtype)
        for i, var in enumerate(inputs):
            var.stop_gradient = i != which
        return [inputs[which]], out

    return build


for _case in ("conv2d", "conv3d", "mul", "elementwise_add", "elementwise_mul"):
    CASES[_case + "_first"] = _half_of(_case, 0)
    CASES[_case + "_second"] = _half_of(_case, 1)
for _case in ("elementwise_sub", "elementwise_sub_row"):
    CASES[_case + "_first"] = _half_of(_case, 0)
    CASES[_case + "_second"] = _half_of(_case, 1)
CASES["elementwise_div_row_second"] = _half_of("elementwise_div_row", 1)
for _which, _name in enumerate(("x", "scale", "bias")):
    CASES["instance_norm_" + _name] = _half_of("instance_norm", _which)
