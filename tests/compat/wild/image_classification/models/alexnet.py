
import math

import paddle.fluid as fluid

__all__ = ["AlexNet"]


class AlexNet:
    def __init__(self):
        pass

    def net(self, input, class_dim=1000, scale=1.0):
        layer_name = ["conv1", "conv2", "conv3", "conv4", "conv5"]
        spec = [
            (64, 11, 4, 2),
            (192, 5, 1, 2),
            (384, 3, 1, 1),
            (256, 3, 1, 1),
            (256, 3, 1, 1),
        ]
        conv = input
        for i, (ch, size, stride, padding) in enumerate(spec):
            fan = conv.shape[1] * size * size
            stdv = 1.0 / math.sqrt(fan)
            conv = fluid.layers.conv2d(
                input=conv,
                num_filters=int(ch * scale),
                filter_size=size,
                stride=stride,
                padding=padding,
                groups=1,
                act="relu",
                bias_attr=fluid.param_attr.ParamAttr(
                    initializer=fluid.initializer.Uniform(-stdv, stdv),
                    name=layer_name[i] + "_offset",
                ),
                param_attr=fluid.param_attr.ParamAttr(
                    initializer=fluid.initializer.Uniform(-stdv, stdv),
                    name=layer_name[i] + "_weights",
                ),
            )
            if i in (0, 1, 4):
                conv = fluid.layers.pool2d(
                    input=conv,
                    pool_size=3,
                    pool_stride=2,
                    pool_padding=0,
                    pool_type="max",
                )

        drop6 = fluid.layers.dropout(x=conv, dropout_prob=0.0)
        stdv = 1.0 / math.sqrt(drop6.shape[1] * drop6.shape[2] * drop6.shape[3] * 1.0)
        fc6 = fluid.layers.fc(
            input=drop6,
            size=int(4096 * scale),
            act="relu",
            bias_attr=fluid.param_attr.ParamAttr(
                initializer=fluid.initializer.Uniform(-stdv, stdv), name="fc6_offset"
            ),
            param_attr=fluid.param_attr.ParamAttr(
                initializer=fluid.initializer.Uniform(-stdv, stdv), name="fc6_weights"
            ),
        )
        drop7 = fluid.layers.dropout(
            x=fc6, dropout_prob=0.0, dropout_implementation="upscale_in_train"
        )
        out = fluid.layers.fc(input=drop7, size=class_dim)
        return out
