
import paddle.fluid as fluid

__all__ = ["VGGNet", "VGG11", "VGG16"]


class VGGNet:
    def __init__(self, layers=16):
        self.layers = layers

    def net(self, input, class_dim=1000, scale=1.0):
        vgg_spec = {
            11: ([1, 1, 2, 2, 2]),
            13: ([2, 2, 2, 2, 2]),
            16: ([2, 2, 3, 3, 3]),
        }
        assert self.layers in vgg_spec, (
            f"supported layers are {vgg_spec.keys()} but input layer is {self.layers}"
        )
        conv = input
        for i, (nums, ch) in enumerate(
            zip(vgg_spec[self.layers], [64, 128, 256, 512, 512])
        ):
            conv = self.conv_block(
                conv, int(ch * scale), nums, name="conv%d_" % (i + 1)
            )
        fc_dim = int(4096 * scale)
        fc_name = ["fc6", "fc7", "fc8"]
        for name in fc_name[:2]:
            conv = fluid.layers.fc(
                input=conv,
                size=fc_dim,
                act="relu",
                param_attr=fluid.param_attr.ParamAttr(name=name + "_weights"),
                bias_attr=fluid.param_attr.ParamAttr(name=name + "_offset"),
            )
            conv = fluid.layers.dropout(x=conv, dropout_prob=0.0)
        out = fluid.layers.fc(
            input=conv,
            size=class_dim,
            param_attr=fluid.param_attr.ParamAttr(name=fc_name[2] + "_weights"),
            bias_attr=fluid.param_attr.ParamAttr(name=fc_name[2] + "_offset"),
        )
        return out

    def conv_block(self, input, num_filter, groups, name=None):
        conv = input
        for i in range(groups):
            conv = fluid.layers.conv2d(
                input=conv,
                num_filters=num_filter,
                filter_size=3,
                stride=1,
                padding=1,
                act="relu",
                param_attr=fluid.param_attr.ParamAttr(
                    name=name + str(i + 1) + "_weights"
                ),
                bias_attr=False,
            )
        return fluid.layers.pool2d(
            input=conv, pool_size=2, pool_type="max", pool_stride=2
        )


def VGG11():
    return VGGNet(layers=11)


def VGG16():
    return VGGNet(layers=16)
