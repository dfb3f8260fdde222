
import math

import paddle.fluid as fluid
from paddle.fluid.param_attr import ParamAttr

__all__ = ["ResNet", "ResNet18", "ResNet50"]


class ResNet:
    def __init__(self, layers=50):
        self.layers = layers

    def net(self, input, class_dim=1000, scale=1.0):
        layers = self.layers
        supported_layers = [18, 34, 50]
        assert layers in supported_layers, (
            f"supported layers are {supported_layers} but input layer is {layers}"
        )
        depth = {18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [2, 1, 1, 1]}[layers]
        num_filters = [int(f * scale) for f in [64, 128, 256, 512]]

        conv = self.conv_bn_layer(
            input=input,
            num_filters=num_filters[0],
            filter_size=7,
            stride=2,
            act="relu",
            name="conv1",
        )
        conv = fluid.layers.pool2d(
            input=conv, pool_size=3, pool_stride=2, pool_padding=1, pool_type="max"
        )
        for block in range(len(depth)):
            for i in range(depth[block]):
                conv_name = "res" + str(block + 2) + chr(97 + i)
                build = self.bottleneck_block if layers >= 50 else self.basic_block
                conv = build(
                    input=conv,
                    num_filters=num_filters[block],
                    stride=2 if i == 0 and block != 0 else 1,
                    name=conv_name,
                )
        pool = fluid.layers.pool2d(input=conv, pool_type="avg", global_pooling=True)
        stdv = 1.0 / math.sqrt(pool.shape[1] * 1.0)
        out = fluid.layers.fc(
            input=pool,
            size=class_dim,
            param_attr=fluid.param_attr.ParamAttr(
                initializer=fluid.initializer.Uniform(-stdv, stdv)
            ),
        )
        return out

    def conv_bn_layer(
        self, input, num_filters, filter_size, stride=1, groups=1, act=None, name=None
    ):
        conv = fluid.layers.conv2d(
            input=input,
            num_filters=num_filters,
            filter_size=filter_size,
            stride=stride,
            padding=(filter_size - 1) // 2,
            groups=groups,
            act=None,
            param_attr=ParamAttr(name=name + "_weights"),
            bias_attr=False,
            name=name + ".conv2d.output.1",
        )
        if name == "conv1":
            bn_name = "bn_" + name
        else:
            bn_name = "bn" + name[3:]
        return fluid.layers.batch_norm(
            input=conv,
            act=act,
            name=bn_name + ".output.1",
            param_attr=ParamAttr(name=bn_name + "_scale"),
            bias_attr=ParamAttr(bn_name + "_offset"),
            moving_mean_name=bn_name + "_mean",
            moving_variance_name=bn_name + "_variance",
        )

    def shortcut(self, input, ch_out, stride, is_first, name):
        ch_in = input.shape[1]
        if ch_in != ch_out or stride != 1 or is_first:
            return self.conv_bn_layer(input, ch_out, 1, stride, name=name)
        return input

    def bottleneck_block(self, input, num_filters, stride, name):
        conv0 = self.conv_bn_layer(
            input=input,
            num_filters=num_filters,
            filter_size=1,
            act="relu",
            name=name + "_branch2a",
        )
        conv1 = self.conv_bn_layer(
            input=conv0,
            num_filters=num_filters,
            filter_size=3,
            stride=stride,
            act="relu",
            name=name + "_branch2b",
        )
        conv2 = self.conv_bn_layer(
            input=conv1,
            num_filters=num_filters * 4,
            filter_size=1,
            act=None,
            name=name + "_branch2c",
        )
        short = self.shortcut(
            input, num_filters * 4, stride, is_first=False, name=name + "_branch1"
        )
        return fluid.layers.elementwise_add(
            x=short, y=conv2, act="relu", name=name + ".add.output.5"
        )

    def basic_block(self, input, num_filters, stride, name):
        conv0 = self.conv_bn_layer(
            input=input,
            num_filters=num_filters,
            filter_size=3,
            act="relu",
            stride=stride,
            name=name + "_branch2a",
        )
        conv1 = self.conv_bn_layer(
            input=conv0,
            num_filters=num_filters,
            filter_size=3,
            act=None,
            name=name + "_branch2b",
        )
        short = self.shortcut(
            input, num_filters, stride, is_first=False, name=name + "_branch1"
        )
        return fluid.layers.elementwise_add(x=short, y=conv1, act="relu")


def ResNet18():
    return ResNet(layers=18)


def ResNet50():
    return ResNet(layers=50)
