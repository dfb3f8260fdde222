"""U-Net and a DeepLab-like head for segmentation; scopes carry the parameter names."""


import argparse
import contextlib

import numpy as np
import paddle.fluid as fluid

name_scope = ""


@contextlib.contextmanager
def scope(name):
    global name_scope
    bk = name_scope
    name_scope = name_scope + name + "/"
    yield
    name_scope = bk


def param(kind="weights", reg=1e-4):
    return fluid.ParamAttr(
        name=name_scope + kind,
        regularizer=fluid.regularizer.L2DecayRegularizer(regularization_coeff=reg),
        initializer=fluid.initializer.TruncatedNormal(loc=0.0, scale=0.06),
    )


def conv(*args, **kargs):
    kargs["param_attr"] = param()
    if kargs.get("bias_attr"):
        kargs["bias_attr"] = fluid.ParamAttr(
            name=name_scope + "biases", regularizer=None
        )
    else:
        kargs["bias_attr"] = False
    return fluid.layers.conv2d(*args, **kargs)


def bn_relu(data):
    with scope("BatchNorm"):
        return fluid.layers.relu(
            fluid.layers.batch_norm(
                data,
                param_attr=fluid.ParamAttr(name=name_scope + "gamma"),
                bias_attr=fluid.ParamAttr(name=name_scope + "beta"),
                moving_mean_name=name_scope + "moving_mean",
                moving_variance_name=name_scope + "moving_variance",
                momentum=0.99,
                epsilon=1e-3,
            )
        )


def double_conv(data, ch, name):
    with scope(name):
        with scope("conv0"):
            data = bn_relu(conv(data, ch, 3, stride=1, padding=1))
        with scope("conv1"):
            return bn_relu(conv(data, ch, 3, stride=1, padding=1))


def unet(x, classes):
    shortcuts = []
    data = double_conv(x, 4, "stem")
    for i, ch in enumerate((8, 8)):
        shortcuts.append(data)
        data = fluid.layers.pool2d(data, 2, "max", pool_stride=2)
        data = double_conv(data, ch, "down%d" % i)
    for i, ch in enumerate((8, 4)):
        short = shortcuts.pop()
        if i == 0:
            data = fluid.layers.resize_bilinear(
                data,
                out_shape=fluid.layers.slice(
                    fluid.layers.shape(short), axes=[0], starts=[2], ends=[4]
                ),
            )
        else:
            with scope("deconv"):
                data = fluid.layers.conv2d_transpose(
                    data,
                    num_filters=ch,
                    filter_size=2,
                    stride=2,
                    padding=0,
                    param_attr=param(),
                    bias_attr=False,
                )
        data = double_conv(fluid.layers.concat([data, short], axis=1), ch, "up%d" % i)
    with scope("logit"):
        return conv(data, classes, 3, stride=1, padding=1, bias_attr=True)


def deeplab(x, classes):
    with scope("entry"):
        data = bn_relu(conv(x, 8, 3, stride=2, padding=1))
    with scope("dw"):
        data = bn_relu(
            conv(data, 8, 3, stride=1, dilation=2, padding=2, groups=8, use_cudnn=False)
        )
    branches = []
    with scope("aspp"):
        image = fluid.layers.reduce_mean(data, [2, 3], keep_dim=True)
        with scope("pool"):
            image = fluid.layers.relu(conv(image, 4, 1, 1))
        branches.append(fluid.layers.resize_bilinear(image, [8, 8]))
        for rate in (1, 2, 3):
            with scope("rate%d" % rate):
                branches.append(
                    bn_relu(conv(data, 4, 3, stride=1, dilation=rate, padding=rate))
                )
    data = fluid.layers.concat(branches, 1)
    with scope("logit"):
        data = conv(data, classes, 1, stride=1, padding=0, bias_attr=True)
    return fluid.layers.resize_bilinear(
        data, [16, 16], align_corners=False, align_mode=1
    )


def loss_of(logit, label, classes, ignore_index=255):
    label_nignore = fluid.layers.cast(
        label.astype("int32") != fluid.layers.assign(np.array([ignore_index], "int32")),
        "float32",
    )
    label_nignore.stop_gradient = True
    logit = fluid.layers.transpose(logit, [0, 2, 3, 1])
    logit = fluid.layers.reshape(logit, [-1, classes])
    flat = fluid.layers.cast(fluid.layers.reshape(label, [-1, 1]), "int64")
    loss = fluid.layers.softmax_with_cross_entropy(
        logit, flat, ignore_index=ignore_index
    )
    avg = fluid.layers.mean(loss) / (fluid.layers.mean(label_nignore) + 1e-5)
    pred = fluid.layers.reshape(fluid.layers.argmax(logit, axis=-1), [-1, 1])
    miou = fluid.layers.mean_iou(
        fluid.layers.cast(pred, "int32"),
        fluid.layers.cast(
            fluid.layers.elementwise_min(
                flat,
                fluid.layers.fill_constant_batch_size_like(
                    flat, [-1, 1], "int64", classes - 1
                ),
            ),
            "int32",
        ),
        classes,
    )[0]
    return avg, miou


def main(net, classes=3):
    image = fluid.data("image", [None, 3, 16, 16], "float32")
    label = fluid.data("label", [None, 1, 16, 16], "int32")
    logit = {"unet": unet, "deeplab": deeplab}[net](image, classes)
    loss, miou = loss_of(logit, label, classes)
    decay = fluid.layers.learning_rate_scheduler.polynomial_decay(
        0.005, 6, end_learning_rate=0, power=0.9
    )
    opt = fluid.optimizer.Momentum(
        decay,
        momentum=0.9,
        regularization=fluid.regularizer.L2DecayRegularizer(regularization_coeff=4e-5),
    )
    opt.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(11)
    for p in fluid.default_main_program().list_vars():
        if fluid.io.is_parameter(p) and p.name.endswith("weights"):
            fluid.global_scope().find_var(p.name).get_tensor().set(
                (0.3 * rng.randn(*p.shape)).astype("float32"), fluid.CPUPlace()
            )
    for step in range(5):
        mask = rng.randint(0, classes, (2, 1, 4, 4)).repeat(4, 2).repeat(4, 3)
        pictures = np.eye(3)[mask[:, 0]].transpose(0, 3, 1, 2) + 0.3 * rng.randn(
            2, 3, 16, 16
        )
        out = exe.run(
            feed={"image": pictures.astype("float32"), "label": mask.astype("int32")},
            fetch_list=[loss, miou, decay],
        )
        print(
            "step %d loss %.6f miou %.4f lr %.6f"
            % tuple([step] + [np.asarray(o).item() for o in out])
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--net", default="unet")
    main(parser.parse_args().net)
