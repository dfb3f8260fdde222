
import math

import paddle.fluid as fluid

__all__ = ["SE_ResNeXt", "SE_ResNeXt50_32x4d"]


class SE_ResNeXt:
    def __init__(self, layers=50, cardinality=32, reduction_ratio=16):
        self.layers = layers
        self.cardinality = cardinality
        self.reduction_ratio = reduction_ratio

    def net(self, input, class_dim=1000, scale=1.0):
        cardinality = max(2, int(self.cardinality * scale))
        depth = [1, 1, 1]
        num_filters = [int(n * scale) for n in [128, 256, 512]]
        conv = self.conv_bn_layer(
            input=input,
            num_filters=num_filters[0] // 2,
            filter_size=7,
            stride=2,
            act="relu",
        )
        conv = fluid.layers.pool2d(
            input=conv, pool_size=3, pool_stride=2, pool_padding=1, pool_type="max"
        )
        for block in range(len(depth)):
            for i in range(depth[block]):
                conv = self.bottleneck_block(
                    input=conv,
                    num_filters=num_filters[block],
                    stride=2 if i == 0 and block != 0 else 1,
                    cardinality=cardinality,
                    reduction_ratio=max(2, int(self.reduction_ratio * scale)),
                )
        pool = fluid.layers.pool2d(
            input=conv,
            pool_size=7,
            pool_type="avg",
            global_pooling=True,
            use_cudnn=False,
        )
        drop = fluid.layers.dropout(x=pool, dropout_prob=0.0, seed=1)
        stdv = 1.0 / math.sqrt(drop.shape[1] * 1.0)
        out = fluid.layers.fc(
            input=drop,
            size=class_dim,
            param_attr=fluid.param_attr.ParamAttr(
                initializer=fluid.initializer.Uniform(-stdv, stdv)
            ),
        )
        return out

    def shortcut(self, input, ch_out, stride):
        ch_in = input.shape[1]
        if ch_in != ch_out or stride != 1:
            filter_size = 1
            return self.conv_bn_layer(input, ch_out, filter_size, stride)
        else:
            return input

    def bottleneck_block(
        self, input, num_filters, stride, cardinality, reduction_ratio
    ):
        conv0 = self.conv_bn_layer(
            input=input, num_filters=num_filters, filter_size=1, act="relu"
        )
        conv1 = self.conv_bn_layer(
            input=conv0,
            num_filters=num_filters,
            filter_size=3,
            stride=stride,
            groups=cardinality,
            act="relu",
        )
        conv2 = self.conv_bn_layer(
            input=conv1, num_filters=num_filters * 2, filter_size=1, act=None
        )
        scale = self.squeeze_excitation(
            input=conv2, num_channels=num_filters * 2, reduction_ratio=reduction_ratio
        )
        short = self.shortcut(input, num_filters * 2, stride)
        return fluid.layers.elementwise_add(x=short, y=scale, act="relu")

    def conv_bn_layer(
        self, input, num_filters, filter_size, stride=1, groups=1, act=None
    ):
        conv = fluid.layers.conv2d(
            input=input,
            num_filters=num_filters,
            filter_size=filter_size,
            stride=stride,
            padding=(filter_size - 1) // 2,
            groups=groups,
            act=None,
            bias_attr=False,
        )
        return fluid.layers.batch_norm(input=conv, act=act)

    def squeeze_excitation(self, input, num_channels, reduction_ratio):
        pool = fluid.layers.pool2d(
            input=input, pool_size=0, pool_type="avg", global_pooling=True
        )
        stdv = 1.0 / math.sqrt(pool.shape[1] * 1.0)
        squeeze = fluid.layers.fc(
            input=pool,
            size=num_channels // reduction_ratio,
            act="relu",
            param_attr=fluid.param_attr.ParamAttr(
                initializer=fluid.initializer.Uniform(-stdv, stdv)
            ),
        )
        stdv = 1.0 / math.sqrt(squeeze.shape[1] * 1.0)
        excitation = fluid.layers.fc(
            input=squeeze,
            size=num_channels,
            act="sigmoid",
            param_attr=fluid.param_attr.ParamAttr(
                initializer=fluid.initializer.Uniform(-stdv, stdv)
            ),
        )
        scale = fluid.layers.elementwise_mul(x=input, y=excitation, axis=0)
        return scale


def SE_ResNeXt50_32x4d():
    return SE_ResNeXt(layers=50)
