"""Small whole networks; built and trained by the reference and by fluidx.

Every function takes the `fluid` module, builds into the default programs and returns
its phases: (program, loss, feed), where feed(rng) makes one batch. Nothing here draws
from the systems' own generators.
"""

import numpy as np


def _images(rng, *shape):
    return rng.standard_normal(shape).astype("float32")


def _ids(rng, high, *shape):
    return rng.randint(0, high, shape).astype("int64")


def _phase(fluid, loss, feed):
    return [(fluid.default_main_program(), loss, feed)]


def _classified(fluid, h, classes, label):
    prob = fluid.layers.fc(h, classes, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(prob, label))


def _classifier(fluid, shape, classes, body, optimizer, batch=8):
    """A network from images to classes, and its only phase."""
    x = fluid.data("x", [None] + list(shape))
    label = fluid.data("label", [None, 1], "int64")
    loss = _classified(fluid, body(x), classes, label)
    optimizer.minimize(loss)

    def feed(rng):
        return {
            "x": _images(rng, batch, *shape),
            "label": _ids(rng, classes, batch, 1),
        }

    return _phase(fluid, loss, feed)


# ---------------------------------------------------------------- images


def lenet(fluid):
    """LeCun et al. (1998)."""

    def body(x):
        h = fluid.nets.simple_img_conv_pool(x, 6, 5, 2, 2, act="relu")
        h = fluid.nets.simple_img_conv_pool(h, 16, 5, 2, 2, act="relu")
        h = fluid.layers.fc(h, 60, act="relu")
        return fluid.layers.fc(h, 42, act="relu")

    return _classifier(fluid, (1, 28, 28), 10, body, fluid.optimizer.Adam(0.002))


def vgg(fluid):
    """Simonyan and Zisserman (2015), with batch normalisation."""

    def body(x):
        for filters, count in ((8, 2), (16, 2), (16, 3)):
            x = fluid.nets.img_conv_group(
                x,
                [filters] * count,
                2,
                conv_act="relu",
                conv_with_batchnorm=True,
                pool_stride=2,
            )
        h = fluid.layers.fc(x, 32)
        h = fluid.layers.batch_norm(h, act="relu")
        return fluid.layers.fc(h, 32)

    rate = fluid.layers.piecewise_decay([5, 12], [0.02, 0.01, 0.005])
    decay = fluid.regularizer.L2Decay(1e-3)
    optimizer = fluid.optimizer.Momentum(rate, 0.9, regularization=decay)
    return _classifier(fluid, (3, 16, 16), 5, body, optimizer)


def _conv_bn(fluid, x, filters, size, stride=1, groups=None, act="relu"):
    h = fluid.layers.conv2d(
        x,
        filters,
        size,
        stride,
        (size - 1) // 2,
        groups=groups,
        bias_attr=False,
        use_cudnn=groups is None,
    )
    return fluid.layers.batch_norm(h, act=act)


def resnet(fluid):
    """He et al. (2016): bottlenecks, one of them with a strided shortcut."""

    def bottleneck(x, filters, stride):
        h = _conv_bn(fluid, x, filters, 1)
        h = _conv_bn(fluid, h, filters, 3, stride)
        h = _conv_bn(fluid, h, filters * 4, 1, act=None)
        if stride != 1 or x.shape[1] != filters * 4:
            x = _conv_bn(fluid, x, filters * 4, 1, stride, act=None)
        return fluid.layers.elementwise_add(x, h, act="relu")

    def body(x):
        h = _conv_bn(fluid, x, 8, 7, 2)
        h = fluid.layers.pool2d(h, 3, "max", 2, 1)
        for filters, stride in ((4, 1), (4, 1), (8, 2)):
            h = bottleneck(h, filters, stride)
        return fluid.layers.pool2d(h, 7, "avg", global_pooling=True)

    # at 0.05 a last bit of the weights moves the reference's own losses by 1% after
    # ten steps
    rate = fluid.layers.cosine_decay(0.02, 5, 4)
    optimizer = fluid.optimizer.Momentum(rate, 0.9, use_nesterov=True)
    return _classifier(fluid, (3, 32, 32), 5, body, optimizer)


def mobilenet(fluid):
    """Sandler et al. (2018): inverted residuals of depthwise convolutions."""

    def block(x, filters, stride):
        wide = x.shape[1] * 3
        h = _conv_bn(fluid, x, wide, 1, act="relu6")
        h = _conv_bn(fluid, h, wide, 3, stride, groups=wide, act="relu6")
        h = _conv_bn(fluid, h, filters, 1, act=None)
        return x + h if stride == 1 and x.shape[1] == filters else h

    def body(x):
        h = _conv_bn(fluid, x, 8, 3, 2, act="hard_swish")
        for filters, stride in ((8, 1), (12, 2), (12, 1)):
            h = block(h, filters, stride)
        return fluid.layers.adaptive_pool2d(h, 1, "avg")

    optimizer = fluid.optimizer.RMSProp(0.002, momentum=0.5)
    return _classifier(fluid, (3, 24, 24), 5, body, optimizer)


def squeeze_excite(fluid):
    """Hu et al. (2018): channels weighted by what the whole image shows."""

    def squeezed(x):
        h = fluid.layers.pool2d(x, pool_type="avg", global_pooling=True)
        h = fluid.layers.fc(h, x.shape[1] // 4, act="relu")
        h = fluid.layers.fc(h, x.shape[1], act="sigmoid")
        return fluid.layers.elementwise_mul(x, h, axis=0)

    def body(x):
        h = _conv_bn(fluid, x, 8, 3)
        h = fluid.layers.elementwise_add(h, squeezed(_conv_bn(fluid, h, 8, 3)))
        h = fluid.layers.prelu(h, "channel")
        h = fluid.layers.group_norm(h, 2, param_attr=True, bias_attr=True)
        return fluid.layers.pool2d(h, 2, "max", 2)

    optimizer = fluid.optimizer.Momentum(0.02, 0.9)
    return _classifier(fluid, (3, 12, 12), 5, body, optimizer)


def autoencoder(fluid):
    """Convolutions down, transposed convolutions up; what is lost is learnt."""
    layers = fluid.layers
    x = fluid.data("x", [None, 2, 14, 14])
    h = layers.conv2d(x, 6, 3, stride=2, padding=1, act="tanh")
    h = layers.conv2d(h, 8, 3, stride=2, padding="SAME", act="tanh")
    h = layers.conv2d_transpose(h, 6, output_size=7, stride=2, padding=1, act="tanh")
    h = layers.conv2d_transpose(h, 6, filter_size=2, stride=2, groups=2, act="tanh")
    h = layers.resize_bilinear(h, [14, 14], align_corners=False, align_mode=0)
    out = layers.conv2d_transpose(h, 2, filter_size=3, padding=1, dilation=1)
    loss = layers.mse_loss(out, x)
    fluid.optimizer.Adam(0.005).minimize(loss)
    return _phase(fluid, loss, lambda rng: {"x": _images(rng, 8, 2, 14, 14)})


def dcgan(fluid):
    """Radford et al. (2016): a generator and a discriminator, trained in turn."""
    layers = fluid.layers
    noise_size = 6

    def norm(h, act, name):
        return layers.batch_norm(
            h,
            act=act,
            param_attr=name + ".scale",
            bias_attr=name + ".bias",
            moving_mean_name=name + ".mean",
            moving_variance_name=name + ".variance",
        )

    def generator(noise):
        h = layers.fc(noise, 8 * 4 * 4, param_attr="g.fc.w", bias_attr="g.fc.b")
        h = norm(layers.reshape(h, [-1, 8, 4, 4]), "relu", "g.bn1")
        h = layers.conv2d_transpose(
            h, 6, filter_size=4, stride=2, padding=1, param_attr="g.1", bias_attr=False
        )
        h = norm(h, "relu", "g.bn2")
        return layers.conv2d_transpose(
            h,
            1,
            filter_size=4,
            stride=2,
            padding=1,
            param_attr="g.2",
            bias_attr="g.2b",
            act="tanh",
        )

    def discriminator(x):
        h = layers.conv2d(
            x, 6, 4, stride=2, padding=1, param_attr="d.1", bias_attr="d.1b"
        )
        h = layers.leaky_relu(h, 0.2)
        h = layers.conv2d(
            h, 8, 4, stride=2, padding=1, param_attr="d.2", bias_attr=False
        )
        h = layers.leaky_relu(norm(h, None, "d.bn"), 0.2)
        return layers.fc(h, 1, param_attr="d.fc.w", bias_attr="d.fc.b")

    def cost(score, wanted):
        label = layers.fill_constant_batch_size_like(score, [-1, 1], "float32", wanted)
        each = layers.sigmoid_cross_entropy_with_logits(score, label)
        return layers.mean(each)

    def minimized(loss, program, prefix):
        names = [p.name for p in program.all_parameters() if p.name.startswith(prefix)]
        optimizer = fluid.optimizer.Adam(0.004, beta1=0.5)
        optimizer.minimize(loss, parameter_list=names)

    d_program, g_program = fluid.Program(), fluid.Program()
    with fluid.program_guard(d_program, fluid.default_startup_program()):
        noise = fluid.data("noise", [None, noise_size])
        x = fluid.data("x", [None, 1, 16, 16])
        d_loss = cost(discriminator(x), 0.9)
        d_loss = d_loss + cost(discriminator(generator(noise)), 0.0)
        minimized(d_loss, d_program, "d.")
    with fluid.program_guard(g_program, fluid.default_startup_program()):
        noise = fluid.data("noise", [None, noise_size])
        g_loss = cost(discriminator(generator(noise)), 1.0)
        minimized(g_loss, g_program, "g.")

    def noises(rng):
        return {"noise": _images(rng, 8, noise_size)}

    def both(rng):
        return dict(noises(rng), x=np.tanh(_images(rng, 8, 1, 16, 16)))

    return [(d_program, d_loss, both), (g_program, g_loss, noises)]


# ---------------------------------------------------------------- text


def _attention(fluid, queries, keys, bias, heads, width):
    """Multi-head attention over [N, length, width]; `bias` is added to the scores."""
    layers = fluid.layers

    def split(x):
        x = layers.reshape(x, [0, 0, heads, width // heads])
        return layers.transpose(x, [0, 2, 1, 3])

    def project(x):
        return layers.fc(x, width, num_flatten_dims=2, bias_attr=False)

    q, k, v = split(project(queries)), split(project(keys)), split(project(keys))
    scores = layers.matmul(q, k, transpose_y=True, alpha=(width // heads) ** -0.5)
    if bias is not None:
        scores = layers.elementwise_add(scores, bias)
    seen = layers.transpose(layers.matmul(layers.softmax(scores), v), [0, 2, 1, 3])
    return project(layers.reshape(seen, [0, 0, width]))


def _forward(fluid, x, width, act):
    h = fluid.layers.fc(x, width * 2, num_flatten_dims=2, act=act)
    return fluid.layers.fc(h, width, num_flatten_dims=2)


def _add_norm(fluid, x, h):
    return fluid.layers.layer_norm(x + h, begin_norm_axis=2)


def transformer(fluid):
    """Vaswani et al. (2017): one encoder and one decoder layer, causal mask, label
    smoothing, noam decay."""
    layers = fluid.layers
    width, heads, words, length, batch = 16, 2, 23, 7, 4
    source = fluid.data("source", [None, length], "int64")
    target = fluid.data("target", [None, length], "int64")
    wanted = fluid.data("wanted", [None, length, 1], "int64")
    padding = fluid.data("padding", [None, heads, length, length])
    causal = fluid.data("causal", [None, heads, length, length])

    def embedded(ids, name):
        h = fluid.embedding(ids, [words, width], param_attr=name)
        h = layers.scale(h, width**0.5)
        return layers.add_position_encoding(h, 1.0, 1.0)

    memory = embedded(source, "source.table")
    seen = _attention(fluid, memory, memory, padding, heads, width)
    memory = _add_norm(fluid, memory, seen)
    memory = _add_norm(fluid, memory, _forward(fluid, memory, width, "relu"))
    h = embedded(target, "target.table")
    h = _add_norm(fluid, h, _attention(fluid, h, h, causal, heads, width))
    h = _add_norm(fluid, h, _attention(fluid, h, memory, padding, heads, width))
    h = _add_norm(fluid, h, _forward(fluid, h, width, "relu"))
    logits = layers.fc(h, words, num_flatten_dims=2, bias_attr=False)
    soft = layers.label_smooth(layers.one_hot(wanted, words), epsilon=0.1)
    cost = layers.softmax_with_cross_entropy(logits, soft, soft_label=True)
    loss = layers.mean(cost)
    rate = layers.noam_decay(width, 10)
    optimizer = fluid.optimizer.Adam(rate, beta1=0.9, beta2=0.98, epsilon=1e-6)
    optimizer.minimize(loss)

    def feed(rng):
        hidden = np.triu(np.full((length, length), -1e9, "float32"), 1)
        short = rng.randint(3, length + 1, batch)
        ends = np.where(np.arange(length) < short[:, None], 0, -1e9).astype("float32")
        shape = (batch, heads, length, length)
        return {
            "source": _ids(rng, words, batch, length),
            "target": _ids(rng, words, batch, length),
            "wanted": _ids(rng, words, batch, length, 1),
            "causal": np.broadcast_to(hidden, shape).copy(),
            "padding": np.broadcast_to(ends[:, None, None], shape).copy(),
        }

    return _phase(fluid, loss, feed)


def bert(fluid):
    """Devlin et al. (2019): three embeddings, masks made of the input, gelu, masked
    words and next sentence; warm-up, decay and clipping by the global norm."""
    layers = fluid.layers
    width, heads, words, length, batch = 16, 2, 29, 8, 4
    word = fluid.data("word", [batch, length], "int64")
    place = fluid.data("place", [batch, length], "int64")
    sentence = fluid.data("sentence", [batch, length], "int64")
    mask = fluid.data("mask", [batch, length, 1])
    hidden = fluid.data("hidden", [None, 1], "int64")
    hidden_word = fluid.data("hidden_word", [None, 1], "int64")
    follows = fluid.data("follows", [None, 1], "int64")
    h = fluid.embedding(word, [words, width], param_attr="words")
    h = h + fluid.embedding(place, [length, width], param_attr="places")
    h = h + fluid.embedding(sentence, [2, width], param_attr="sentences")
    h = layers.layer_norm(h, begin_norm_axis=2)
    both = layers.matmul(mask, mask, transpose_y=True)
    bias = layers.scale(both, scale=10000.0, bias=-1.0, bias_after_scale=False)
    bias = layers.stack([bias] * heads, axis=1)
    bias.stop_gradient = True
    for _ in range(2):
        h = _add_norm(fluid, h, _attention(fluid, h, h, bias, heads, width))
        h = _add_norm(fluid, h, _forward(fluid, h, width, "gelu"))
    picked = layers.gather(layers.reshape(h, [-1, width]), hidden)
    picked = layers.layer_norm(layers.fc(picked, width, act="gelu"), begin_norm_axis=1)
    table = fluid.default_main_program().global_block().var("words")
    logits = layers.matmul(picked, table, transpose_y=True)
    offset = layers.create_parameter([words], "float32", "offset", is_bias=True)
    logits = layers.elementwise_add(logits, offset)
    cost = layers.softmax_with_cross_entropy(logits, hidden_word)
    first = layers.slice(h, axes=[1], starts=[0], ends=[1])
    pooled = layers.fc(layers.reshape(first, [-1, width]), width, act="tanh")
    other = layers.softmax_with_cross_entropy(layers.fc(pooled, 2), follows)
    loss = layers.mean(cost) + layers.mean(other)
    rate = layers.polynomial_decay(0.01, 40, 0.0, 1.0)
    rate = layers.linear_lr_warmup(rate, 5, 0.0, 0.01)
    clip = fluid.clip.GradientClipByGlobalNorm(1.0)
    fluid.optimizer.Adam(rate, grad_clip=clip).minimize(loss)

    def feed(rng):
        short = rng.randint(4, length + 1, batch)
        on = (np.arange(length) < short[:, None]).astype("float32")
        rows = np.arange(batch)[:, None] * length
        return {
            "word": _ids(rng, words, batch, length),
            "place": np.tile(np.arange(length, dtype="int64"), (batch, 1)),
            "sentence": (np.arange(length) >= 3).astype("int64")[None].repeat(batch, 0),
            "mask": on[:, :, None],
            "hidden": (rows + _ids(rng, 3, batch, 2)).reshape(-1, 1),
            "hidden_word": _ids(rng, words, batch * 2, 1),
            "follows": _ids(rng, 2, batch, 1),
        }

    return _phase(fluid, loss, feed)


def wide_deep(fluid):
    """Cheng et al. (2016): crossed features beside embeddings; sparse gradients."""
    layers = fluid.layers
    batch, slots, rows = 16, 4, 50
    dense = fluid.data("dense", [None, 6])
    ids = [fluid.data(f"slot{i}", [None, 1], "int64") for i in range(slots)]
    label = fluid.data("label", [None, 1], "int64")
    tables = [
        layers.embedding(s, [rows, 4], is_sparse=True, param_attr=f"deep{i}")
        for i, s in enumerate(ids)
    ]
    h = layers.concat(tables + [layers.data_norm(dense)], axis=1)
    for size in (16, 8):
        h = layers.fc(h, size, act="relu")
    wide = [
        layers.embedding(s, [rows, 1], is_sparse=True, param_attr=f"wide{i}")
        for i, s in enumerate(ids)
    ]
    score = layers.sum(wide + [layers.fc(h, 1)])
    share = layers.sigmoid(score)
    loss = layers.mean(layers.log_loss(share, layers.cast(label, "float32")))
    fluid.optimizer.Adagrad(0.05).minimize(loss)

    def feed(rng):
        made = {f"slot{i}": _ids(rng, rows, batch, 1) for i in range(slots)}
        made["dense"] = np.abs(_images(rng, batch, 6))
        made["label"] = _ids(rng, 2, batch, 1)
        return made

    return _phase(fluid, loss, feed)


def networks():
    """Every network of this file by name, in order."""
    return {
        f.__name__: f
        for f in (
            lenet,
            vgg,
            resnet,
            mobilenet,
            squeeze_excite,
            autoencoder,
            dcgan,
            transformer,
            bert,
            wide_deep,
        )
    }
