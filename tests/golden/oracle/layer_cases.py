"""Small networks, a layer or a few each; built by the reference and by fluidx.

Every function takes the `fluid` module and builds into the default programs. Only
public names are used. Names are compared too, so the order of calls matters.
"""


def _x(fluid, shape=(None, 8), dtype="float32", name="x", lod=0):
    return fluid.data(name, list(shape), dtype, lod)


# ---------------------------------------------------------------- inputs


def data(fluid):
    fluid.data("a", [None, 3, 4])
    fluid.data("b", [-1], "int64", 1)
    fluid.data(name="e", shape=[2, None], dtype="float64")
    fluid.layers.data("c", [3, 4])
    fluid.layers.data("d", [3, -1], append_batch_size=True, dtype="int64", lod_level=1)
    fluid.layers.data("f", [3, 4], append_batch_size=False, stop_gradient=False)
    fluid.layers.data("g", [None, 4], dtype="int32")
    fluid.layers.data("h", [1], dtype="uint8")


def embeddings(fluid):
    ids = fluid.data("ids", [None, 1], "int64", 1)
    flat = fluid.data("flat", [None], "int64")
    layers = fluid.layers
    layers.embedding(ids, [100, 8])
    layers.embedding(ids, [100, 8], is_sparse=True, padding_idx=-1, param_attr="t")
    layers.embedding(ids, (100, 8), padding_idx=3, dtype="float64")
    fluid.embedding(flat, [100, 8])
    fluid.embedding(ids, [100, 8], is_sparse=True, padding_idx=-2, param_attr="u")
    normal = fluid.initializer.Normal(scale=0.1)
    attr = fluid.ParamAttr("v", initializer=normal, learning_rate=0.5, trainable=False)
    fluid.embedding(flat, [100, 8], param_attr=attr)
    layers.one_hot(ids, 10)
    layers.one_hot(ids, 10, allow_out_of_range=True)
    fluid.one_hot(flat, 10)
    fluid.one_hot(flat, fluid.layers.fill_constant([1], "int32", 10))
    layers.one_hot(ids, fluid.layers.fill_constant([1], "int32", 10))


# ---------------------------------------------------------------- parameters


def fc(fluid):
    x = _x(fluid)
    y = _x(fluid, (None, 4, 6), name="y")
    layers = fluid.layers
    layers.fc(x, 5)
    layers.fc(y, 5, act="relu")
    layers.fc(y, 5, num_flatten_dims=2, bias_attr=False, act="tanh")
    layers.fc(y, 5, num_flatten_dims=-1, name="named")
    layers.fc([x, y], 3, act="softmax")
    layers.fc([x, y], 3, param_attr=["wx", "wy"], bias_attr="b")
    layers.fc([x, y], 3, param_attr=fluid.ParamAttr(initializer=None))
    layers.fc(x, 5, param_attr=fluid.initializer.Constant(2.0), bias_attr=True)
    layers.fc(x, 5, param_attr=fluid.ParamAttr("p"), act="leaky_relu", bias_attr="b2")
    layers.fc(
        x,
        5,
        param_attr=fluid.ParamAttr("q", regularizer=fluid.regularizer.L2Decay(0.1)),
        bias_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(0.1)),
    )


def fc_weight_norm(fluid):
    x = _x(fluid)
    fluid.layers.fc(x, 5, param_attr=fluid.WeightNormParamAttr(dim=None))
    fluid.layers.fc(x, 5, param_attr=fluid.WeightNormParamAttr(dim=1, name="wn"))


def initializers(fluid):
    import numpy as np

    init = fluid.initializer
    layers = fluid.layers
    fluid.default_startup_program().random_seed = 7
    for one in (
        init.Constant(),
        init.Constant(1.5),
        init.Uniform(),
        init.Uniform(-0.5, 0.5, seed=3),
        init.Uniform(0.0, 1.0, 0, 2, 5, 0.5),
        init.Normal(1.0, 2.0),
        init.Normal(seed=4),
        init.TruncatedNormal(0.0, 0.02),
        init.Xavier(),
        init.Xavier(uniform=False, seed=5),
        init.Xavier(fan_in=6, fan_out=10),
        init.MSRA(),
        init.MSRA(uniform=False),
        init.MSRA(fan_in=12, seed=9),
        init.NumpyArrayInitializer(np.arange(12, dtype="float32").reshape(4, 3)),
        init.NumpyArrayInitializer(np.arange(12, dtype="int32").reshape(4, 3)),
    ):
        layers.create_parameter(
            [4, 3], "float32", attr=fluid.ParamAttr(initializer=one)
        )
    for one in (init.Xavier(), init.MSRA(), init.MSRA(uniform=False)):
        attr = fluid.ParamAttr(initializer=one)
        layers.create_parameter([3, 2, 4, 4], "float32", attr=attr)
    layers.create_parameter(
        [7], "float32", attr=fluid.ParamAttr(initializer=init.MSRA())
    )
    layers.create_parameter([7], "float32")
    layers.create_parameter([7, 2], "float32", "named")
    layers.create_parameter([7], "float64", is_bias=True)
    layers.create_parameter([7], "float32", default_initializer=init.Constant(2.0))
    layers.create_parameter([7, 3], "float16", attr=fluid.ParamAttr("half"))
    layers.create_parameter(
        [7, 3], "float16", attr=fluid.ParamAttr("h2", initializer=init.Normal())
    )
    layers.create_parameter(
        [7, 3], "float16", attr=fluid.ParamAttr("h3", initializer=init.Constant(1.0))
    )


def conv2d(fluid):
    x = _x(fluid, (None, 4, 10, 10))
    nhwc = _x(fluid, (None, 10, 10, 4), name="nhwc")
    conv = fluid.layers.conv2d
    conv(x, 6, 3)
    conv(x, 6, [3, 5], stride=2, padding=[1, 2], dilation=1, act="relu")
    conv(x, 6, 3, padding="SAME", bias_attr=False)
    conv(x, 6, 3, padding="VALID", stride=[2, 1])
    conv(x, 6, 3, padding=[1, 2, 3, 4])
    conv(x, 6, 3, padding=[[0, 0], [0, 0], [1, 2], [3, 4]])
    conv(x, 6, 3, padding=[[0, 0], [0, 0], [1, 1], [3, 3]])
    conv(x, 8, 3, groups=2, param_attr="w")
    conv(x, 8, 3, groups=4, use_cudnn=False)
    conv(x, 8, 3, groups=4, use_cudnn=True, bias_attr="b")
    conv(nhwc, 6, 3, data_format="NHWC", name="last", act="relu")
    conv(nhwc, 6, 3, data_format="NHWC", padding=[[0, 0], [1, 2], [3, 4], [0, 0]])


def pools(fluid):
    x = _x(fluid, (None, 4, 10, 10))
    nhwc = _x(fluid, (None, 10, 10, 4), name="nhwc")
    pool = fluid.layers.pool2d
    pool(x, 2)
    pool(x, [2, 3], "avg", [2, 1], [0, 1], exclusive=False)
    pool(x, 2, "max", 2, ceil_mode=True)
    pool(x, global_pooling=True, pool_type="avg")
    pool(x, 3, pool_padding="SAME", pool_stride=2)
    pool(x, 3, pool_padding="VALID")
    pool(x, 3, pool_padding=[1, 0, 1, 1])
    pool(x, 3, pool_padding=[[0, 0], [0, 0], [1, 0], [1, 1]])
    pool(nhwc, 2, data_format="NHWC", name="p", use_cudnn=False)
    fluid.layers.adaptive_pool2d(x, 3, "avg")


def norms(fluid):
    x = _x(fluid, (None, 4, 10, 10))
    y = _x(fluid, (None, 6), name="y")
    layers = fluid.layers
    layers.batch_norm(x)
    layers.batch_norm(x, act="relu", is_test=True, momentum=0.8, epsilon=1e-3)
    layers.batch_norm(
        y,
        param_attr=fluid.ParamAttr("s", learning_rate=2.0, trainable=False),
        bias_attr="o",
        moving_mean_name="m",
        moving_variance_name="v",
        use_global_stats=True,
        do_model_average_for_mean_and_var=False,
    )
    layers.batch_norm(x, data_layout="NHWC", in_place=False, name="bn")
    layers.batch_norm(layers.relu(x), in_place=True)
    layers.layer_norm(x)
    layers.layer_norm(x, scale=False, begin_norm_axis=2)
    layers.layer_norm(x, shift=False, epsilon=1e-3, act="relu")
    layers.layer_norm(x, begin_norm_axis=3, param_attr="ls", bias_attr="lb", name="ln")


def more_norms(fluid):
    x = _x(fluid, (None, 4, 10, 10))
    layers = fluid.layers
    layers.instance_norm(x)
    layers.instance_norm(x, 1e-3, param_attr="is", bias_attr="ib", name="in")
    layers.group_norm(x, 2)
    layers.group_norm(x, 2, param_attr=False, bias_attr=False, act="relu")
    layers.group_norm(x, 2, param_attr=fluid.ParamAttr(), bias_attr="gb", name="gn")
    layers.lrn(x)
    layers.lrn(x, 3, 2.0, 1e-3, 0.5, "lrn")


def conv_transpose(fluid):
    x = _x(fluid, (None, 4, 5, 5))
    nhwc = _x(fluid, (None, 5, 5, 4), name="nhwc")
    transposed = fluid.layers.conv2d_transpose
    transposed(x, 6, filter_size=3)
    transposed(x, 6, output_size=[11, 11], stride=2, act="relu")
    transposed(x, 6, output_size=12, stride=2, dilation=2, padding=1, bias_attr=False)
    transposed(x, 6, filter_size=3, groups=2, bias_attr=False, padding=[1, 1, 0, 0])
    transposed(x, 6, filter_size=3, padding="SAME", param_attr="w", bias_attr="b")
    transposed(nhwc, 6, filter_size=3, data_format="NHWC")


# ---------------------------------------------------------------- shapes


def reshapes(fluid):
    x = _x(fluid, (None, 4, 6))
    layers = fluid.layers
    two = layers.fill_constant([1], "int32", 2)
    layers.reshape(x, [-1, 24])
    layers.reshape(x, [0, 2, -1], act="relu")
    layers.reshape(_x(fluid, (None, 4, 6), name="z"), (-1, 24), inplace=True, name="r")
    layers.reshape(x, [-1, two, 12])
    layers.reshape(x, layers.fill_constant([2], "int32", 2))
    layers.reshape(x, [-1, 24], actual_shape=layers.fill_constant([2], "int32", 2))
    layers.transpose(x, [1, 0, 2])
    layers.squeeze(_x(fluid, (None, 1, 5, 1), name="y"), [1])
    layers.squeeze(_x(fluid, (None, 1, 5, 1), name="y2"), [])
    layers.unsqueeze(x, [0, 2])
    layers.unsqueeze(x, 1)
    layers.unsqueeze(x, [two])
    layers.flatten(x)
    layers.flatten(x, axis=2, name="f")
    layers.flatten(x, 0)
    layers.expand(x, [1, 2, 3])
    layers.expand(x, [1, two, 3])
    layers.expand(x, layers.fill_constant([3], "int32", 2))
    layers.shape(x)


def joins(fluid):
    x = _x(fluid, (None, 4, 6))
    y = _x(fluid, (None, 4, 6), name="y")
    layers = fluid.layers
    one = layers.fill_constant([1], "int32", 1)
    layers.concat([x, y])
    layers.concat([x, y], axis=-1, name="c")
    layers.concat(x, 1)
    layers.concat([x, y], axis=one)
    layers.split(x, 2, dim=1)
    layers.split(x, [1, 2, -1], dim=1)
    layers.split(x, 3)
    layers.split(x, 2, dim=one)
    layers.split(x, [1, one, 2], dim=1)
    layers.stack([x, y])
    layers.stack([x, y], axis=-1)
    layers.stack(x, 1)
    layers.unstack(x, 1)
    layers.unstack(x, axis=-1, num=6)
    layers.sum([x, y])
    layers.sum(x)
    layers.sums([x, y])
    layers.sums([x, y], out=layers.create_tensor("float32"))


def slices(fluid):
    x = _x(fluid, (None, 4, 6))
    layers = fluid.layers
    one = layers.fill_constant([1], "int32", 1)
    layers.slice(x, [0, 2], [1, -3], [3, 6])
    layers.slice(x, [1], [one], [3])
    layers.slice(x, [1], layers.fill_constant([1], "int32", 1), [3])
    layers.strided_slice(x, [1, 2], [0, 5], [4, 0], [2, -1])
    layers.strided_slice(x, [1], [one], [3], [1])
    layers.reverse(x, 1)
    layers.reverse(x, [1, 2])


def gathers(fluid):
    x = _x(fluid, (10, 4, 6))
    index = fluid.data("index", [None], "int64")
    layers = fluid.layers
    layers.gather(x, index)
    layers.gather(x, index, overwrite=False)
    layers.scatter(x, index, _x(fluid, (None, 4, 6), name="u"))
    layers.scatter(x, index, _x(fluid, (None, 4, 6), name="v"), "s", False)


# ---------------------------------------------------------------- creation


def creation(fluid):
    x = _x(fluid, (None, 4))
    layers = fluid.layers
    two = layers.fill_constant([1], "int64", 2)
    layers.fill_constant([2, 3], "float32", 1.5)
    layers.fill_constant([2], "int64", 3, force_cpu=True)
    layers.fill_constant([2], "bool", True)
    layers.fill_constant([2], "int32", 1.0)
    layers.fill_constant([2, two], "float32", 0)
    layers.fill_constant(layers.fill_constant([2], "int32", 2), "float32", 0.1)
    layers.fill_constant((1,), "float32", 4, out=layers.create_tensor("float32"))
    layers.fill_constant_batch_size_like(x, [-1, 3], "float32", 0.5)
    layers.fill_constant_batch_size_like(x, [2, -1], "int64", 1, 0, 1)
    layers.fill_constant([1], "float64", -1e-9)
    layers.zeros([2, 3], "int64")
    layers.ones([2, 3], "float32")
    layers.zeros([2], "float64", True)
    layers.zeros_like(x)
    layers.ones_like(x)
    layers.zeros_like(x, out=layers.create_tensor("float32", name="z"))
    layers.create_tensor("int64", persistable=True)
    layers.create_global_var([1], 0.5, "float32")
    layers.create_global_var([2, 3], 1, "int64", persistable=True, name="g")
    layers.create_global_var([2], 1.0, "float32", True, True)
    layers.range(0, 10, 2, "int64")
    layers.range(0.0, layers.fill_constant([1], "float32", 9.0), 1, "float32")


def assigns(fluid):
    import numpy as np

    x = _x(fluid, (None, 4))
    layers = fluid.layers
    layers.assign(x)
    layers.assign(np.array([[1.0, 2.5]], dtype="float32"))
    layers.assign(np.array([3, 4], dtype="int32"))
    layers.assign(x, layers.create_tensor("float32"))
    layers.cast(x, "int64")
    layers.cast(x, np.float64)
    layers.cast(x, "bool")
    layers.increment(layers.fill_constant([1], "int64", 1))
    layers.increment(layers.fill_constant([1], "float32", 1), 2.0, in_place=False)
    layers.autoincreased_step_counter()
    layers.autoincreased_step_counter()
    layers.autoincreased_step_counter("@mine@", begin=0, step=2)


def randoms(fluid):
    x = _x(fluid, (None, 4))
    layers = fluid.layers
    two = layers.fill_constant([1], "int32", 2)
    fluid.default_main_program().random_seed = 5
    layers.uniform_random([2, 3])
    layers.uniform_random([two, two], "float32", -2.0, 3.0, seed=4)
    layers.uniform_random(layers.fill_constant([2], "int32", 2))
    layers.gaussian_random([2, 3])
    layers.gaussian_random([2, 3], 1.0, 2.0, 9, "float64")
    layers.gaussian_random([two, 3])
    layers.gaussian_random(layers.fill_constant([2], "int32", 2), seed=3)
    layers.uniform_random_batch_size_like(x, [-1, 3])
    layers.gaussian_random_batch_size_like(x, [-1, 3], mean=1.0)
    layers.dropout(x, 0.5)
    layers.dropout(x, 0.3, is_test=True, seed=3)
    layers.dropout(x, 0.2, dropout_implementation="upscale_in_train", name="d")


def more_creation(fluid):
    layers = fluid.layers
    layers.full([2], 3)
    layers.full([2], 3, dtype="int64", device="cpu", stop_gradient=False)
    layers.full_like(_x(fluid), 3.0)
    layers.arange(0, 5, 1, "int64")


# ---------------------------------------------------------------- arithmetic


def elementwise(fluid):
    x = _x(fluid, (None, 4, 6))
    y = _x(fluid, (4,), name="y")
    i = _x(fluid, (None, 4), "int64", "i")
    layers = fluid.layers
    layers.elementwise_add(x, y, axis=1)
    layers.elementwise_sub(x, x, act="relu", name="e")
    layers.elementwise_mul(x, y, 1)
    layers.elementwise_div(x, x)
    layers.elementwise_max(x, x)
    layers.elementwise_min(x, x)
    layers.elementwise_pow(x, x)
    layers.elementwise_mod(i, i)
    layers.elementwise_floordiv(i, i)


def operators(fluid):
    x = _x(fluid, (None, 4))
    y = _x(fluid, (None, 4), name="y")
    i = _x(fluid, (None, 4), "int64", "i")
    d = _x(fluid, (3, 4), "float64", "d")
    _ = x + y
    _ = x - y
    _ = x * y
    _ = x / y
    _ = x**y
    _ = x + 1
    _ = x - 2
    _ = x * 3
    _ = x / 4
    _ = x**2
    _ = 1 + x
    _ = 2 - x
    _ = 3 * x
    _ = 4 / x
    _ = 2**x
    _ = x + 0.5
    _ = -x
    _ = x < y
    _ = x <= y
    _ = x > y
    _ = x >= y
    _ = x == y
    _ = x != y
    _ = x < 1
    _ = x >= 0.5
    _ = i + 1
    _ = i - 1
    _ = i * 2
    _ = i + i
    _ = i // i
    _ = i % i
    _ = i == 3
    _ = x + i
    _ = d + 1
    _ = d * x
    _ = x.astype("int64")
    _ = i / 2
    _ = i // 2
    _ = i % 2
    _ = i**2
    _ = x % y
    _ = x // y


def operators_known_shape(fluid):
    d = _x(fluid, (3, 4), "float64", "d")
    k = _x(fluid, (3, 4), "int32", "k")
    _ = 5 / d
    _ = 2**d
    _ = d % d
    _ = 3 - d
    _ = 1 - k
    _ = 2 * k
    _ = k > 1
    _ = d < 0
    _ = d**0.5


def getitem(fluid):
    x = _x(fluid, (7, 4, 6, 5))
    _ = x[0]
    _ = x[1:3]
    _ = x[:, 1]
    _ = x[-1, :, 2]
    _ = x[0:5:2]
    _ = x[::-1]
    _ = x[:]


def getitem_variable(fluid):
    x = _x(fluid, (7, 4, 6))
    i = fluid.layers.fill_constant([1], "int32", 1)
    _ = x[i]
    _ = x[i:, 2]
    _ = x[0, i]


def math(fluid):
    x = _x(fluid, (None, 4, 6))
    y = _x(fluid, (None, 6, 5), name="y")
    m = _x(fluid, (24, 5), name="m")
    layers = fluid.layers
    layers.mean(x)
    layers.mean(x, name="mm")
    layers.mul(x, m)
    layers.mul(x, _x(fluid, (6, 5), name="n"), x_num_col_dims=2)
    layers.matmul(x, y)
    layers.matmul(x, x, transpose_y=True, alpha=0.5, name="mat")
    layers.scale(x)
    layers.scale(x, 2.0, 1.0, False, act="relu")
    layers.scale(x, layers.fill_constant([1], "float32", 2.0))
    layers.clip(x, -1.0, 1.0)
    layers.clip_by_norm(x, 1.0)
    layers.pow(x)
    layers.pow(x, 2.0)
    layers.pow(x, layers.fill_constant([1], "float32", 2.0))
    layers.l2_normalize(x, 1)
    layers.l2_normalize(_x(fluid, (5,), name="v"), 0)
    layers.cos_sim(_x(fluid, name="p"), _x(fluid, name="q"))
    layers.label_smooth(_x(fluid, (None, 5), name="l"), epsilon=0.2)
    layers.label_smooth(
        _x(fluid, (None, 5), name="l2"), prior_dist=_x(fluid, (1, 5), name="prior")
    )
    layers.shape(x)
    layers.rank(x)
    layers.is_empty(x)


def more_math(fluid):
    x = _x(fluid, (3, 4, 6))
    layers = fluid.layers
    layers.addcmul(x, x, x, 0.5)
    layers.logsumexp(x)
    layers.logsumexp(x, [1], True)
    layers.log_softmax(x)
    layers.log_softmax(x, 1)
    layers.clamp(x, -1.0, 1.0)
    layers.t(_x(fluid, (3, 4), name="t"))
    layers.elementwise_equal(x, x)


def reductions(fluid):
    x = _x(fluid, (None, 4, 6))
    b = _x(fluid, (None, 4), "bool", "b")
    layers = fluid.layers
    layers.reduce_sum(x)
    layers.reduce_mean(x, dim=1)
    layers.reduce_max(x, dim=[1, 2], keep_dim=True)
    layers.reduce_min(x, dim=-1, name="rm")
    layers.reduce_prod(x, dim=[0, 1, 2])
    layers.reduce_sum(x, [1, -1])
    layers.reduce_all(b)
    layers.reduce_any(b, dim=1, keep_dim=True)


def comparisons(fluid):
    x = _x(fluid, (None, 4))
    y = _x(fluid, (None, 4), name="y")
    layers = fluid.layers
    kept = layers.less_than(x, y)
    layers.less_equal(x, y)
    layers.greater_than(x, y)
    layers.greater_equal(x, y)
    layers.equal(x, y)
    layers.not_equal(x, y)
    layers.less_than(x, y, force_cpu=True)
    layers.less_than(x, y, cond=kept)
    layers.equal(x, y, cond=kept)
    layers.logical_and(kept, kept)
    layers.logical_or(kept, kept, name="lo")
    layers.logical_xor(kept, kept)
    layers.logical_not(kept)
    layers.logical_not(kept, out=kept)
    layers.isfinite(x)
    layers.has_inf(x)
    layers.has_nan(x)


def searches(fluid):
    x = _x(fluid, (None, 4, 6))
    layers = fluid.layers
    layers.argmax(x)
    layers.argmin(x, -1)
    layers.argsort(x)
    layers.argsort(x, 1, descending=True, name="as")
    layers.topk(x, 2)
    layers.topk(x, layers.fill_constant([1], "int32", 2))


# ---------------------------------------------------------------- activations

ACTIVATIONS = (
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "elu",
    "erf",
    "exp",
    "floor",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_swish",
    "leaky_relu",
    "log",
    "log1p",
    "logsigmoid",
    "reciprocal",
    "relu",
    "relu6",
    "round",
    "rsqrt",
    "selu",
    "sigmoid",
    "sign",
    "sin",
    "softmax",
    "softplus",
    "softshrink",
    "softsign",
    "sqrt",
    "square",
    "stanh",
    "swish",
    "tanh",
    "tanh_shrink",
    "thresholded_relu",
    "brelu",
    "soft_relu",
)


def activations(fluid):
    for name in ACTIVATIONS:
        getattr(fluid.layers, name)(_x(fluid, (None, 4), name="in_" + name))


def activations_with(fluid):
    x = _x(fluid, (None, 4))
    layers = fluid.layers
    layers.leaky_relu(x, alpha=0.1)
    layers.elu(x, 0.5, name="e")
    layers.relu6(x, 5.0)
    layers.gelu(x, True)
    layers.hard_sigmoid(x, 0.1, 0.4)
    layers.hard_swish(x, 5.0, 5.0, 2.0)
    layers.swish(x, 1.0)
    layers.stanh(x, 0.5, 1.5)
    layers.brelu(x, 1.0, 20.0)
    layers.soft_relu(x, 20.0)
    layers.softshrink(x, 0.3)
    layers.hard_shrink(x, 0.3)
    layers.thresholded_relu(x, 0.3)
    layers.selu(x, 1.1, 1.6)
    layers.softmax(x, True, "s", 1)
    layers.relu(x, name="named")
    layers.exp(x, "named2")


# ---------------------------------------------------------------- losses


def losses(fluid):
    x = _x(fluid, (None, 5))
    one = _x(fluid, (None, 1), name="one")
    soft = _x(fluid, (None, 5), name="soft")
    label = _x(fluid, (None, 1), "int64", "label")
    layers = fluid.layers
    layers.cross_entropy(layers.softmax(x), label)
    layers.cross_entropy(x, label, ignore_index=3)
    layers.cross_entropy(x, soft, soft_label=True)
    layers.softmax_with_cross_entropy(x, label)
    layers.softmax_with_cross_entropy(x, label, return_softmax=True, ignore_index=2)
    layers.softmax_with_cross_entropy(x, soft, soft_label=True, axis=-1)
    layers.softmax_with_cross_entropy(x, label, numeric_stable_mode=False, axis=1)
    layers.sigmoid_cross_entropy_with_logits(x, soft)
    layers.sigmoid_cross_entropy_with_logits(x, soft, 1, "sig", True)
    layers.square_error_cost(x, soft)
    layers.mse_loss(x, soft)
    layers.log_loss(one, one)
    layers.log_loss(one, one, epsilon=0.1, name="ll")
    layers.huber_loss(one, one, 1.0)
    layers.smooth_l1(x, soft)
    layers.smooth_l1(x, soft, sigma=2.0)
    layers.smooth_l1(x, soft, soft, soft)


def more_losses(fluid):
    x = _x(fluid, (None, 5))
    label = _x(fluid, (None, 1), "int64", "label")
    layers = fluid.layers
    layers.dice_loss(layers.softmax(x), label)
    layers.npair_loss(
        _x(fluid, (6, 5), name="a"),
        _x(fluid, (6, 5), name="p"),
        _x(fluid, (6,), name="l"),
    )


def metrics(fluid):
    x = _x(fluid, (None, 5))
    two = _x(fluid, (None, 2), name="two")
    label = _x(fluid, (None, 1), "int64", "label")
    layers = fluid.layers
    layers.accuracy(x, label)
    layers.accuracy(
        x, label, 2, layers.create_tensor("int32"), layers.create_tensor("int32")
    )
    layers.auc(two, label)
    layers.auc(two, label, "PR", 99, 1, 5)
    layers.auc(two, label, slide_steps=0)


# ---------------------------------------------------------------- sequences, nets


def sequences(fluid):
    x = _x(fluid, (None, 8), lod=1)
    layers = fluid.layers
    for kind in ("sum", "average", "sqrt", "max", "last", "first"):
        layers.sequence_pool(x, kind)
    layers.sequence_pool(x, "max", is_test=True, pad_value=1.5)
    layers.sequence_first_step(x)
    layers.sequence_last_step(x)


def nets(fluid):
    x = _x(fluid, (None, 4, 12, 12))
    nets_ = fluid.nets
    nets_.simple_img_conv_pool(x, 6, 3, 2, 2, act="relu")
    nets_.img_conv_group(x, [4, 6], 2, conv_act="relu", pool_stride=2)
    nets_.img_conv_group(
        x,
        [4, 6],
        2,
        conv_padding=[1, 0],
        conv_filter_size=[3, 1],
        conv_act="relu",
        conv_with_batchnorm=[True, False],
        conv_batchnorm_drop_rate=[0.3, 0.0],
        pool_type="avg",
    )
    nets_.glu(x, 1)
    q = _x(fluid, (3, 5, 8), name="q")
    nets_.scaled_dot_product_attention(q, q, q)
    nets_.scaled_dot_product_attention(q, q, q, 2, 0.1)


def distributions(fluid):
    layers = fluid.layers
    a, b, c = (_x(fluid, (None, 2), name=n) for n in "abc")
    uniform = layers.Uniform(a, b)
    uniform.sample([3], seed=2)
    uniform.entropy()
    uniform.log_prob(c)
    layers.Uniform(0.0, 2.0).entropy()
    normal = layers.Normal(a, b)
    normal.sample([3], seed=2)
    normal.entropy()
    normal.log_prob(c)
    normal.kl_divergence(layers.Normal(c, b))
    single = layers.Normal(0.0, 2.0)
    single.sample([3], seed=4)
    single.entropy()
    layers.Normal([0.0, 1.0], [2.0, 3.0]).sample([3, 2])
    layers.Categorical(a).entropy()
    layers.Categorical(a).kl_divergence(layers.Categorical(b))


def decays(fluid):
    layers = fluid.layers
    layers.exponential_decay(0.1, 100, 0.9)
    layers.natural_exp_decay(0.1, 100, 0.9, staircase=True)
    layers.inverse_time_decay(0.1, 100, 0.9)
    layers.noam_decay(64, 400)
    layers.cosine_decay(0.1, 10, 5)
    layers.polynomial_decay(0.1, 100)


def cases():
    """Every network of this file by name, in order."""
    found = {
        n: f
        for n, f in globals().items()
        if callable(f) and not n.startswith("_") and n != "cases"
    }
    return found
