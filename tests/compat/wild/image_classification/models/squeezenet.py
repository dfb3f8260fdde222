
import paddle.fluid as fluid

__all__ = ["SqueezeNet1_1"]


class SqueezeNet:
    def __init__(self, version="1.0"):
        self.version = version

    def net(self, input, class_dim=1000, scale=1.0):
        def c(n):
            return max(2, int(n * scale))

        conv = fluid.layers.conv2d(
            input,
            num_filters=c(64),
            filter_size=3,
            stride=2,
            padding=1,
            act="relu",
            param_attr=fluid.param_attr.ParamAttr(name="conv1_weights"),
            bias_attr=fluid.param_attr.ParamAttr(name="conv1_offset"),
        )
        conv = fluid.layers.pool2d(conv, pool_size=3, pool_stride=2, pool_type="max")
        conv = self.make_fire(conv, c(16), c(64), c(64), name="fire2")
        conv = self.make_fire(conv, c(16), c(64), c(64), name="fire3")
        conv = fluid.layers.pool2d(
            conv, pool_size=3, pool_stride=2, pool_type="max", ceil_mode=True
        )
        conv = self.make_fire(conv, c(32), c(128), c(128), name="fire4")
        conv = fluid.layers.dropout(conv, dropout_prob=0.0)
        conv = fluid.layers.conv2d(
            conv,
            num_filters=class_dim,
            filter_size=1,
            act="relu",
            param_attr=fluid.param_attr.ParamAttr(name="conv10_weights"),
            bias_attr=fluid.param_attr.ParamAttr(name="conv10_offset"),
        )
        conv = fluid.layers.pool2d(conv, pool_type="avg", global_pooling=True)
        return fluid.layers.flatten(conv)

    def make_fire_conv(self, input, num_filters, filter_size, padding=0, name=None):
        return fluid.layers.conv2d(
            input,
            num_filters=num_filters,
            filter_size=filter_size,
            padding=padding,
            act="relu",
            param_attr=fluid.param_attr.ParamAttr(name=name + "_weights"),
            bias_attr=fluid.param_attr.ParamAttr(name=name + "_offset"),
        )

    def make_fire(
        self, input, squeeze_channels, expand1x1_channels, expand3x3_channels, name=None
    ):
        conv = self.make_fire_conv(
            input, squeeze_channels, 1, name=name + "_squeeze1x1"
        )
        conv_path1 = self.make_fire_conv(
            conv, expand1x1_channels, 1, name=name + "_expand1x1"
        )
        conv_path2 = self.make_fire_conv(
            conv, expand3x3_channels, 3, 1, name=name + "_expand3x3"
        )
        return fluid.layers.concat([conv_path1, conv_path2], axis=1)


def SqueezeNet1_1():
    return SqueezeNet(version="1.1")
