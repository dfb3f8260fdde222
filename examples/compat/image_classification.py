"""VGG and ResNet on small pictures, in the style of the 1.x tutorial."""

from __future__ import print_function

import sys

import numpy as np
import paddle.fluid as fluid


def vgg_bn_drop(input):
    def conv_block(ipt, num_filter, groups, dropouts):
        return fluid.nets.img_conv_group(
            input=ipt,
            pool_size=2,
            pool_stride=2,
            conv_num_filter=[num_filter] * groups,
            conv_filter_size=3,
            conv_act="relu",
            conv_with_batchnorm=True,
            conv_batchnorm_drop_rate=dropouts,
            pool_type="max",
        )

    conv1 = conv_block(input, 8, 2, [0.0, 0.0])
    conv2 = conv_block(conv1, 16, 2, [0.0, 0.0])
    drop = fluid.layers.dropout(x=conv2, dropout_prob=0.0)
    fc1 = fluid.layers.fc(input=drop, size=32, act=None)
    bn = fluid.layers.batch_norm(input=fc1, act="relu")
    fc2 = fluid.layers.fc(input=bn, size=32, act=None)
    return fluid.layers.fc(input=fc2, size=10, act="softmax")


def conv_bn_layer(
    input, ch_out, filter_size, stride, padding, act="relu", bias_attr=False
):
    tmp = fluid.layers.conv2d(
        input=input,
        filter_size=filter_size,
        num_filters=ch_out,
        stride=stride,
        padding=padding,
        act=None,
        bias_attr=bias_attr,
    )
    return fluid.layers.batch_norm(input=tmp, act=act)


def basicblock(input, ch_in, ch_out, stride):
    tmp = conv_bn_layer(input, ch_out, 3, stride, 1)
    tmp = conv_bn_layer(tmp, ch_out, 3, 1, 1, act=None, bias_attr=True)
    short = input
    if ch_in != ch_out:
        short = conv_bn_layer(input, ch_out, 1, stride, 0, None)
    return fluid.layers.elementwise_add(x=tmp, y=short, act="relu")


def resnet_cifar10(ipt):
    conv1 = conv_bn_layer(ipt, ch_out=8, filter_size=3, stride=1, padding=1)
    res1 = basicblock(conv1, 8, 8, 1)
    res2 = basicblock(res1, 8, 16, 2)
    pool = fluid.layers.pool2d(
        input=res2, pool_size=8, pool_type="avg", pool_stride=1, global_pooling=True
    )
    return fluid.layers.fc(input=pool, size=10, act="softmax")


def set_parameters(program, place):
    random = np.random.RandomState(3)
    for param in sorted(program.all_parameters(), key=lambda p: p.name):
        value = (0.1 * random.randn(*param.shape)).astype("float32")
        if "batch_norm" in param.name and not param.name.endswith("b_0"):
            value += 1.0
        fluid.global_scope().find_var(param.name).get_tensor().set(value, place)


def train(network):
    main_program, startup_program = fluid.Program(), fluid.Program()
    with fluid.program_guard(main_program, startup_program):  # noqa: SIM117
        with fluid.unique_name.guard():
            images = fluid.data(name="pixel", shape=[None, 3, 16, 16], dtype="float32")
            label = fluid.data(name="label", shape=[None, 1], dtype="int64")
            predict = network(images)
            cost = fluid.layers.cross_entropy(input=predict, label=label)
            avg_cost = fluid.layers.mean(cost)
            accuracy = fluid.layers.accuracy(input=predict, label=label)
            test_program = main_program.clone(for_test=True)
            rate = fluid.layers.piecewise_decay([4, 8], values=[0.1, 0.05, 0.01])
            optimizer = fluid.optimizer.Momentum(
                learning_rate=rate,
                momentum=0.9,
                regularization=fluid.regularizer.L2Decay(1e-4),
            )
            optimizer.minimize(avg_cost)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    with fluid.scope_guard(fluid.core.Scope()):
        exe.run(startup_program)
        set_parameters(main_program, place)
        random = np.random.RandomState(5)
        kinds = random.rand(10, 3, 16, 16)
        for step in range(10):
            labels = random.randint(0, 10, (8, 1)).astype("int64")
            data = kinds[labels[:, 0]] + 0.3 * random.rand(8, 3, 16, 16)
            feed = {"pixel": data.astype("float32"), "label": labels}
            loss, acc = exe.run(main_program, feed, fetch_list=[avg_cost, accuracy])
            print("%s step %d loss %.7f" % (network.__name__, step, float(loss)))
        outs = exe.run(test_program, feed=feed, fetch_list=[avg_cost.name])
        print("%s test loss %.6f" % (network.__name__, np.mean(outs[0])))


if __name__ == "__main__":
    for network in (vgg_bn_drop, resnet_cifar10):
        if len(sys.argv) < 2 or sys.argv[1] in network.__name__:
            train(network)
