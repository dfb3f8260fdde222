"""Small training programs, a family each: loss, optimizer, schedule, clipping, norms.

As layer_cases.py; `minimize` is part of the program, so gradients and updates of the
family are compared, too.
"""

import json
import lzma
import os
import sys


def _net(fluid, size=4, act=None, **fc):
    x = fluid.data("x", [None, 8])
    hidden = fluid.layers.fc(x, 6, act="tanh", **fc)
    return fluid.layers.fc(hidden, size, act=act)


def _label(fluid, shape=(None, 1), dtype="int64"):
    return fluid.data("label", list(shape), dtype)


def _train(fluid, loss, optimizer=None):
    loss = fluid.layers.mean(loss)
    (optimizer or fluid.optimizer.SGD(0.1)).minimize(loss)


def loss_cross_entropy(fluid):
    out = _net(fluid, act="softmax")
    _train(fluid, fluid.layers.cross_entropy(out, _label(fluid)))


def loss_cross_entropy_soft(fluid):
    label = _label(fluid, (None, 4), "float32")
    out = _net(fluid, act="softmax")
    _train(fluid, fluid.layers.cross_entropy(out, label, soft_label=True))


def loss_softmax_with_cross_entropy(fluid):
    layers = fluid.layers
    _train(fluid, layers.softmax_with_cross_entropy(_net(fluid), _label(fluid)))


def loss_sigmoid_cross_entropy(fluid):
    layers, label = fluid.layers, _label(fluid, (None, 4), "float32")
    made = layers.sigmoid_cross_entropy_with_logits(_net(fluid), label, normalize=True)
    _train(fluid, made)


def loss_square_error(fluid):
    label = _label(fluid, (None, 1), "float32")
    _train(fluid, fluid.layers.square_error_cost(_net(fluid, 1), label))


def loss_huber(fluid):
    label = _label(fluid, (None, 1), "float32")
    _train(fluid, fluid.layers.huber_loss(_net(fluid, 1), label, 0.5))


def loss_smooth_l1(fluid):
    label = _label(fluid, (None, 4), "float32")
    _train(fluid, fluid.layers.smooth_l1(_net(fluid), label, sigma=2.0))


def loss_log(fluid):
    label = _label(fluid, (None, 1), "float32")
    _train(fluid, fluid.layers.log_loss(_net(fluid, 1, "sigmoid"), label))


def loss_kldiv(fluid):
    label = _label(fluid, (None, 4), "float32")
    out = fluid.layers.log(_net(fluid, act="softmax"))
    _train(fluid, fluid.layers.kldiv_loss(out, label, "none"))


def loss_bpr(fluid):
    _train(fluid, fluid.layers.bpr_loss(_net(fluid, act="softmax"), _label(fluid)))


def loss_rank(fluid):
    label = _label(fluid, (None, 1), "float32")
    left = _net(fluid, 1)
    right = fluid.layers.fc(fluid.data("y", [None, 3]), 1)
    _train(fluid, fluid.layers.rank_loss(label, left, right))


def loss_margin_rank(fluid):
    label = _label(fluid, (None, 1), "float32")
    left = _net(fluid, 1)
    right = fluid.layers.fc(fluid.data("y", [None, 3]), 1)
    _train(fluid, fluid.layers.margin_rank_loss(label, left, right, 0.2))


def loss_dice(fluid):
    _train(fluid, fluid.layers.dice_loss(_net(fluid, act="softmax"), _label(fluid)))


def loss_label_smooth(fluid):
    layers = fluid.layers
    hot = layers.one_hot(_label(fluid), 4)
    smooth = layers.label_smooth(hot, epsilon=0.1)
    out = _net(fluid, act="softmax")
    _train(fluid, layers.cross_entropy(out, smooth, soft_label=True))


def metric_accuracy(fluid):
    layers, label = fluid.layers, _label(fluid)
    out = _net(fluid, act="softmax")
    layers.accuracy(out, label, k=2)
    layers.accuracy(out, label)
    _train(fluid, layers.cross_entropy(out, label))


def metric_auc(fluid):
    layers, label = fluid.layers, _label(fluid)
    out = _net(fluid, 2, "softmax")
    layers.auc(out, label, num_thresholds=20, slide_steps=2)
    _train(fluid, layers.cross_entropy(out, label))


def metric_chunks(fluid):
    found = fluid.data("found", [None, 1], "int64", 1)
    true = fluid.data("true", [None, 1], "int64", 1)
    fluid.layers.chunk_eval(found, true, "IOBES", 2, [0])
    padded = [fluid.data(n, [None, 5], "int64") for n in ("f", "t")]
    sizes = fluid.data("sizes", [None], "int64")
    fluid.layers.chunk_eval(*padded, "plain", 3, seq_length=sizes)


def metric_mean_iou(fluid):
    maps = [fluid.data(n, [None, 4, 4], "int32") for n in ("f", "t")]
    fluid.layers.mean_iou(maps[0], maps[1], 3)


def _schedule(fluid, rate, optimizer="SGD"):
    label = _label(fluid, (None, 1), "float32")
    made = fluid.layers.square_error_cost(_net(fluid, 1), label)
    _train(fluid, made, getattr(fluid.optimizer, optimizer)(rate))


def schedule_exponential(fluid):
    _schedule(fluid, fluid.layers.exponential_decay(0.1, 10, 0.5, staircase=True))


def schedule_natural_exp(fluid):
    _schedule(fluid, fluid.layers.natural_exp_decay(0.1, 10, 0.5))


def schedule_inverse_time(fluid):
    _schedule(fluid, fluid.layers.inverse_time_decay(0.1, 10, 0.5), "Adam")


def schedule_polynomial(fluid):
    _schedule(fluid, fluid.layers.polynomial_decay(0.1, 10, 0.01, cycle=True))


def schedule_piecewise(fluid):
    _schedule(fluid, fluid.layers.piecewise_decay([10, 20], [0.1, 0.05, 0.01]))


def schedule_noam(fluid):
    _schedule(fluid, fluid.layers.noam_decay(64, 100), "Adam")


def schedule_cosine_with_warmup(fluid):
    layers = fluid.layers
    rate = layers.cosine_decay(0.1, 10, 5)
    _schedule(fluid, layers.linear_lr_warmup(rate, 20, 0.0, 0.1))


def _image(fluid):
    return fluid.data("image", [None, 4, 6, 6])


def _image_net(fluid, made):
    out = fluid.layers.fc(made, 3, act="softmax")
    _train(fluid, fluid.layers.cross_entropy(out, _label(fluid)))


def norm_batch(fluid):
    conv = fluid.layers.conv2d(_image(fluid), 4, 3, bias_attr=False)
    _image_net(fluid, fluid.layers.batch_norm(conv, act="relu", momentum=0.8))


def norm_layer(fluid):
    _image_net(fluid, fluid.layers.layer_norm(_image(fluid), begin_norm_axis=2))


def norm_group_and_instance(fluid):
    layers = fluid.layers
    made = layers.group_norm(_image(fluid), groups=2)
    _image_net(fluid, layers.instance_norm(made))


def norm_lrn_and_l2(fluid):
    made = fluid.layers.lrn(_image(fluid), n=3)
    _image_net(fluid, fluid.layers.l2_normalize(made, axis=1))


def resize(fluid):
    layers = fluid.layers
    made = layers.resize_bilinear(_image(fluid), [9, 9])
    made = layers.resize_nearest(made, scale=0.5, align_corners=False)
    _image_net(
        fluid, layers.image_resize(made, [5, 5], resample="BILINEAR", align_mode=0)
    )


def random_beside_training(fluid):
    layers = fluid.layers
    out = _net(fluid)
    noise = layers.gaussian_random_batch_size_like(out, [-1, 4], std=0.1, seed=3)
    noise = layers.elementwise_add(noise, layers.uniform_random([4], seed=2))
    made = layers.softmax(layers.elementwise_add(out, noise))
    made = layers.dropout(made, 0.3, seed=1)
    _train(fluid, layers.cross_entropy(made, _label(fluid)))


def _clipped(fluid, clip, regular=None):
    label = _label(fluid, (None, 1), "float32")
    made = fluid.layers.square_error_cost(_net(fluid, 1), label)
    optimizer = fluid.optimizer.Momentum(
        0.1, 0.9, grad_clip=clip, regularization=regular
    )
    _train(fluid, made, optimizer)


def clip_by_value(fluid):
    _clipped(fluid, fluid.clip.GradientClipByValue(0.5, -0.25))


def clip_by_norm(fluid):
    _clipped(fluid, fluid.clip.GradientClipByNorm(0.5), fluid.regularizer.L2Decay(0.1))


def clip_by_global_norm(fluid):
    clip = fluid.clip.GradientClipByGlobalNorm(0.5)
    _clipped(fluid, clip, fluid.regularizer.L1Decay(0.1))


def decay_of_one_parameter(fluid):
    decay = fluid.regularizer.L2Decay(0.5)
    attr = fluid.ParamAttr("w", regularizer=decay, learning_rate=0.5)
    label = _label(fluid, (None, 1), "float32")
    out = _net(fluid, 1, param_attr=attr)
    _train(fluid, fluid.layers.square_error_cost(out, label))


def initial_values(fluid):
    of = fluid.initializer
    kinds = [
        of.Constant(0.5),
        of.Uniform(-0.2, 0.2, seed=3),
        of.Normal(0.1, 0.2, seed=4),
        of.TruncatedNormal(0.1, 0.2),
        of.Xavier(uniform=False, fan_in=10),
        of.Xavier(),
        of.MSRA(),
        of.MSRA(uniform=False, seed=5),
    ]
    x = fluid.data("x", [None, 8])
    for kind in kinds:
        x = fluid.layers.fc(x, 8, param_attr=kind, bias_attr=False)
    _train(fluid, x)


def densities(fluid):
    of = fluid.layers
    mean = of.fc(fluid.data("x", [None, 8]), 1)
    normal = of.Normal(mean, of.fill_constant([1], "float32", 1.0))
    other = of.Normal(0.0, 2.0)
    made = of.elementwise_add(normal.kl_divergence(other), normal.entropy())
    value = fluid.data("value", [None, 1])
    _train(fluid, of.elementwise_sub(made, normal.log_prob(value)))


def cases():
    """Every program of this file by name, in order."""
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
        with lzma.open(os.path.join(HERE, "layers_small.json.xz"), "wt") as file_:
            file_.write("{" + ",\n".join(lines_) + "}\n")
