"""Nets trained in mixed precision, for both systems: `CASES` by name.

A case builds a net in the default programs and minimizes its loss through
``contrib.mixed_precision.decorate``.
"""

CASES = {}


def case(build):
    CASES[build.__name__] = build
    return build


def _train(fluid, loss, optimizer=None, lists=None, **options):
    mixed = fluid.contrib.mixed_precision
    if lists is not None:
        options["amp_lists"] = mixed.AutoMixedPrecisionLists(**lists)
    inner = optimizer or fluid.optimizer.SGD(0.1)
    return mixed.decorate(inner, **options).minimize(loss)


def _static(fluid, loss, **options):
    options.setdefault("use_dynamic_loss_scaling", False)
    return _train(fluid, loss, **options)


def _regression(fluid, width=3):
    x = fluid.data("x", [None, 4])
    y = fluid.data("y", [None, 1])
    hidden = fluid.layers.fc(x, width, act="relu")
    out = fluid.layers.fc(hidden, 1)
    return fluid.layers.mean(fluid.layers.square_error_cost(out, y))


def _head(fluid, feature):
    label = fluid.data("label", [None, 1], "int64")
    logits = fluid.layers.fc(feature, 3)
    each = fluid.layers.softmax_with_cross_entropy(logits, label)
    return fluid.layers.mean(each)


@case
def dynamic(fluid):
    _train(fluid, _regression(fluid))


@case
def dynamic_options(fluid):
    options = dict(incr_every_n_steps=7, decr_every_n_nan_or_inf=3, incr_ratio=4.0)
    _train(fluid, _regression(fluid), init_loss_scaling=8.0, decr_ratio=0.25, **options)


@case
def static(fluid):
    _static(fluid, _regression(fluid))


@case
def static_one(fluid):
    _static(fluid, _regression(fluid), init_loss_scaling=1.0)


@case
def dynamic_one(fluid):
    _train(fluid, _regression(fluid), init_loss_scaling=1.0)


@case
def decorated_first(fluid):
    mixed = fluid.contrib.mixed_precision.decorate(fluid.optimizer.SGD(0.1))
    mixed.minimize(_regression(fluid))


@case
def in_two_steps(fluid):
    mixed = fluid.contrib.mixed_precision.decorate(fluid.optimizer.SGD(0.1))
    pairs = mixed.backward(_regression(fluid))
    mixed.apply_gradients(pairs)


@case
def adam_with_decay_and_clip(fluid):
    adam = fluid.optimizer.Adam(
        0.01,
        regularization=fluid.regularizer.L2Decay(0.1),
        grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0),
    )
    _train(fluid, _regression(fluid), adam)


@case
def momentum_with_schedule(fluid):
    loss = _regression(fluid)
    rate = fluid.layers.exponential_decay(0.1, 10, 0.5)
    _train(fluid, loss, fluid.optimizer.Momentum(rate, 0.9))


@case
def conv_net(fluid):
    layers = fluid.layers
    image = fluid.data("image", [None, 1, 8, 8])
    x = layers.conv2d(image, 4, 3, act="relu")
    x = layers.batch_norm(x)
    x = layers.pool2d(x, 2, "max", 2)
    x = layers.dropout(x, 0.5)
    x = layers.conv2d(x, 4, 3)
    x = layers.batch_norm(x, act="relu")
    _static(fluid, _head(fluid, x))


@case
def residual_block(fluid):
    layers = fluid.layers
    image = fluid.data("image", [None, 4, 6, 6])
    x = layers.conv2d(image, 4, 3, padding=1, act="relu", bias_attr=False)
    y = layers.conv2d(x, 4, 3, padding=1, bias_attr=False)
    x = layers.elementwise_add(x, y, act="relu")
    x = layers.pool2d(x, pool_type="avg", global_pooling=True)
    _static(fluid, _head(fluid, x))


@case
def attention(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 5, 8])
    q, k, v = (layers.fc(x, 8, num_flatten_dims=2) for _ in range(3))
    heads = [layers.reshape(t, [0, 0, 2, 4]) for t in (q, k, v)]
    q, k, v = (layers.transpose(t, [0, 2, 1, 3]) for t in heads)
    weights = layers.softmax(layers.matmul(q, k, transpose_y=True, alpha=0.5))
    out = layers.matmul(layers.dropout(weights, 0.1), v)
    out = layers.reshape(layers.transpose(out, [0, 2, 1, 3]), [0, 0, 8])
    out = layers.layer_norm(layers.elementwise_add(out, x), begin_norm_axis=2)
    _static(fluid, _head(fluid, out))


@case
def embeddings(fluid):
    ids = fluid.data("ids", [None, 4, 1], "int64")
    x = fluid.layers.embedding(ids, [20, 6])
    _static(fluid, _head(fluid, fluid.layers.reduce_sum(x, 1)))


@case
def input_used_twice(fluid):
    x = fluid.data("x", [None, 4])
    a = fluid.layers.fc(x, 3, bias_attr=False)
    b = fluid.layers.fc(x, 3, bias_attr=False)
    _static(fluid, fluid.layers.mean(fluid.layers.elementwise_mul(a, b)))


@case
def weight_used_twice(fluid):
    x = fluid.data("x", [None, 4])
    w = fluid.ParamAttr("shared")
    a = fluid.layers.fc(x, 4, param_attr=w, bias_attr=False)
    b = fluid.layers.fc(a, 4, param_attr=w, bias_attr=False)
    _static(fluid, fluid.layers.mean(b))


@case
def weight_decayed_in_the_loss(fluid):
    x = fluid.data("x", [None, 4])
    a = fluid.layers.fc(x, 4, param_attr=fluid.ParamAttr("w"), bias_attr=False)
    w = fluid.default_main_program().global_block().var("w")
    size = fluid.layers.reduce_sum(fluid.layers.square(w))
    _static(fluid, fluid.layers.mean(a) + size)


@case
def half_to_two_readers(fluid):
    x = fluid.data("x", [None, 4])
    a = fluid.layers.fc(x, 4, bias_attr=False)
    b = fluid.layers.exp(a)
    c = fluid.layers.square(a)
    d = fluid.layers.relu(a)
    _static(fluid, fluid.layers.mean(fluid.layers.sum([b, c, d])))


@case
def gray_of_black_and_white(fluid):
    x = fluid.data("x", [None, 4])
    a = fluid.layers.fc(x, 4, bias_attr=False)
    b = fluid.layers.exp(a)
    c = fluid.layers.elementwise_add(a, b)
    d = fluid.layers.elementwise_mul(b, a)
    e = fluid.layers.elementwise_sub(c, d)
    _static(fluid, fluid.layers.mean(fluid.layers.fc(e, 2)))


@case
def gray_chain_of_data(fluid):
    x = fluid.data("x", [None, 4])
    a = fluid.layers.relu(fluid.layers.scale(x, 2.0))
    b = fluid.layers.elementwise_add(a, x)
    c = fluid.layers.fc(b, 4, bias_attr=False)
    d = fluid.layers.elementwise_add(b, c)
    e = fluid.layers.elementwise_add(c, b)
    _static(fluid, fluid.layers.mean(fluid.layers.elementwise_mul(d, e)))


@case
def unlisted_ops(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 4])
    a = layers.fc(x, 4, bias_attr=False)
    b = layers.elu(a)
    c = layers.tanh(b)
    d = layers.concat([a, c], axis=1)
    e = layers.relu(d)
    f = layers.fc(e, 4)
    g = layers.reduce_mean(layers.abs(f))
    _static(fluid, g)


@case
def gray_between_unlisted_and_white(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 4])
    a = layers.elu(layers.fc(x, 4, bias_attr=False))
    b = layers.fc(x, 4, bias_attr=False)
    c = layers.elementwise_add(a, b)
    d = layers.elementwise_add(b, a)
    _static(fluid, layers.mean(layers.fc([c, d], 2)))


@case
def custom_white(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 4])
    a = layers.softmax(layers.fc(x, 4))
    b = layers.elu(a)
    c = layers.tanh(b)
    lists = {"custom_white_list": ["softmax", "elu", "tanh"]}
    _static(fluid, layers.mean(c), lists=lists)


@case
def custom_black(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 4])
    a = layers.matmul(layers.fc(x, 4), layers.fc(x, 4), transpose_y=True)
    b = layers.relu(a)
    c = layers.tanh(b)
    lists = {"custom_black_list": ["matmul", "elementwise_add"]}
    _static(fluid, layers.mean(c), lists=lists)


@case
def black_input_name(fluid):
    x = fluid.data("x", [None, 4])
    a = fluid.layers.fc(x, 4, param_attr=fluid.ParamAttr("w"), act="relu")
    b = fluid.layers.fc(a, 4)
    lists = {"custom_black_varnames": ["w"]}
    _static(fluid, fluid.layers.mean(b), lists=lists)


@case
def black_output_name(fluid):
    x = fluid.data("x", [None, 4])
    a = fluid.layers.fc(x, 4, act="relu")
    b = fluid.layers.fc(a, 4)
    names = {"custom_black_varnames": ["fc_0.tmp_1", "fc_1.tmp_0"]}
    _static(fluid, fluid.layers.mean(b), lists=names)


@case
def in_place(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 4])
    a = layers.fc(x, 4, bias_attr=False)
    block = fluid.default_main_program().global_block()
    block.append_op(type="relu", inputs={"X": a}, outputs={"Out": a})
    b = layers.exp(a)
    c = layers.fc(b, 4, bias_attr=False)
    d = layers.elementwise_add(c, a)
    _static(fluid, layers.mean(d))


@case
def casts_of_the_user(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 4], "int64")
    a = layers.fc(layers.cast(x, "float32"), 4, bias_attr=False)
    b = layers.cast(layers.cast(a, "float32"), "float16")
    c = layers.fc(layers.cast(b, "float32"), 2)
    best = layers.cast(layers.argmax(c, axis=1), "float32")
    d = layers.mean(layers.cast(c, "float32"))
    _static(fluid, d + layers.reduce_mean(best))


@case
def half_data(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 4], "float16")
    a = layers.cast(layers.scale(x, 2.0), "float32")
    b = layers.fc(a, 4, bias_attr=False)
    _static(fluid, layers.mean(b))


@case
def constants(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 4])
    one = layers.fill_constant([4], "float32", 1.0)
    a = layers.elementwise_add(layers.fc(x, 4, bias_attr=False), one)
    b = layers.elementwise_mul(one, one)
    c = layers.elementwise_mul(a, b)
    _static(fluid, layers.mean(c))


@case
def stacks_and_slices(fluid):
    layers = fluid.layers
    x = fluid.data("x", [3, 4])
    a = layers.fc(x, 4, bias_attr=False)
    b = layers.stack([a, x], axis=0)
    c, d = layers.unstack(b, axis=0)
    e = layers.slice(c, [0], [0], [2])
    f = layers.gather(d, layers.fill_constant([2], "int32", 1))
    _static(fluid, layers.mean(layers.elementwise_add(e, f)))


@case
def top_k_and_metrics(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 4])
    label = fluid.data("label", [None, 1], "int64")
    p = layers.fc(x, 4, act="softmax")
    layers.accuracy(p, label)
    loss = layers.mean(layers.cross_entropy(p, label))
    values, _ = layers.topk(layers.fc(x, 4), 2)
    _static(fluid, loss + layers.mean(values))


@case
def frozen_weight(fluid):
    x = fluid.data("x", [None, 4])
    a = fluid.layers.fc(x, 4, param_attr=fluid.ParamAttr("w", trainable=False))
    _train(fluid, fluid.layers.mean(fluid.layers.fc(a, 2)))


@case
def many_slots(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 4])
    a = layers.fc(x, 4)
    norm = layers.layer_norm(a)
    y = layers.bilinear_tensor_product(norm, a, 3)
    lists = {"custom_white_list": ["layer_norm", "bilinear_tensor_product"]}
    _static(fluid, layers.mean(y), lists=lists)
