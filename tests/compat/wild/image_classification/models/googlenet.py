
import paddle.fluid as fluid
from paddle.fluid.param_attr import ParamAttr

__all__ = ["GoogleNet"]


class GoogleNet:
    """Three heads: the auxiliary losses count 0.3."""

    def conv_layer(
        self, input, num_filters, filter_size, stride=1, groups=1, act=None, name=None
    ):
        channels = input.shape[1]
        stdv = (3.0 / (filter_size**2 * channels)) ** 0.5
        return fluid.layers.conv2d(
            input=input,
            num_filters=num_filters,
            filter_size=filter_size,
            stride=stride,
            padding=(filter_size - 1) // 2,
            groups=groups,
            act=act,
            param_attr=ParamAttr(
                initializer=fluid.initializer.Uniform(-stdv, stdv),
                name=name + "_weights",
            ),
            bias_attr=False,
            name=name,
        )

    def inception(self, input, filters, name):
        f1, f3r, f3, f5r, f5, proj = filters
        conv1 = self.conv_layer(input, f1, 1, name="inception_" + name + "_1x1")
        conv3r = self.conv_layer(
            input, f3r, 1, name="inception_" + name + "_3x3_reduce"
        )
        conv3 = self.conv_layer(conv3r, f3, 3, name="inception_" + name + "_3x3")
        conv5r = self.conv_layer(
            input, f5r, 1, name="inception_" + name + "_5x5_reduce"
        )
        conv5 = self.conv_layer(conv5r, f5, 5, name="inception_" + name + "_5x5")
        pool = fluid.layers.pool2d(
            input=input, pool_size=3, pool_stride=1, pool_padding=1, pool_type="max"
        )
        convprj = self.conv_layer(pool, proj, 1, name="inception_" + name + "_3x3_proj")
        cat = fluid.layers.concat(input=[conv1, conv3, conv5, convprj], axis=1)
        return fluid.layers.relu(cat)

    def head(self, input, class_dim, name):
        pool = fluid.layers.pool2d(input=input, pool_type="avg", global_pooling=True)
        return fluid.layers.fc(input=pool, size=class_dim, act="softmax", name=name)

    def net(self, input, class_dim=1000, scale=1.0):
        def cut(*channels):
            return [max(2, int(c * scale)) for c in channels]

        conv = self.conv_layer(input, cut(64)[0], 7, 2, name="conv1")
        pool = fluid.layers.pool2d(
            input=conv, pool_size=3, pool_type="max", pool_stride=2
        )
        conv = self.conv_layer(pool, cut(64)[0], 1, name="conv2_1x1")
        conv = self.conv_layer(conv, cut(192)[0], 3, name="conv2_3x3")
        ince3a = self.inception(conv, cut(64, 96, 128, 16, 32, 32), "ince3a")
        ince3b = self.inception(ince3a, cut(128, 128, 192, 32, 96, 64), "ince3b")
        pool3 = fluid.layers.pool2d(
            input=ince3b, pool_size=3, pool_type="max", pool_stride=2
        )
        ince4a = self.inception(pool3, cut(192, 96, 208, 16, 48, 64), "ince4a")
        ince4d = self.inception(ince4a, cut(112, 144, 288, 32, 64, 64), "ince4d")
        out1 = self.head(ince4a, class_dim, "out1")
        out2 = self.head(ince4d, class_dim, "out2")
        out = self.head(ince4d, class_dim, "out")
        return out, out1, out2
