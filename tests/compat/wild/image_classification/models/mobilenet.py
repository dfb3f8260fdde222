
import paddle.fluid as fluid
from paddle.fluid.initializer import MSRA
from paddle.fluid.param_attr import ParamAttr

__all__ = ["MobileNet"]


class MobileNet:
    def net(self, input, class_dim=1000, scale=1.0):
        input = self.conv_bn_layer(
            input,
            filter_size=3,
            channels=3,
            num_filters=int(32 * scale),
            stride=2,
            padding=1,
            name="conv1",
        )
        blocks = [
            ("conv2_1", 32, 64, 32, 1),
            ("conv2_2", 64, 128, 64, 2),
            ("conv3_1", 128, 128, 128, 1),
            ("conv3_2", 128, 256, 128, 2),
        ]
        for name, num_filters1, num_filters2, num_groups, stride in blocks:
            input = self.depthwise_separable(
                input,
                num_filters1=num_filters1,
                num_filters2=num_filters2,
                num_groups=num_groups,
                stride=stride,
                scale=scale,
                name=name,
            )
        input = fluid.layers.pool2d(
            input=input,
            pool_size=0,
            pool_stride=1,
            pool_type="avg",
            global_pooling=True,
        )
        output = fluid.layers.fc(
            input=input,
            size=class_dim,
            param_attr=ParamAttr(initializer=MSRA(), name="fc7_weights"),
            bias_attr=ParamAttr(name="fc7_offset"),
        )
        return output

    def conv_bn_layer(
        self,
        input,
        filter_size,
        num_filters,
        stride,
        padding,
        channels=None,
        num_groups=1,
        act="relu",
        use_cudnn=True,
        name=None,
    ):
        conv = fluid.layers.conv2d(
            input=input,
            num_filters=num_filters,
            filter_size=filter_size,
            stride=stride,
            padding=padding,
            groups=num_groups,
            act=None,
            use_cudnn=use_cudnn,
            param_attr=ParamAttr(initializer=MSRA(), name=name + "_weights"),
            bias_attr=False,
        )
        bn_name = name + "_bn"
        return fluid.layers.batch_norm(
            input=conv,
            act=act,
            param_attr=ParamAttr(name=bn_name + "_scale"),
            bias_attr=ParamAttr(name=bn_name + "_offset"),
            moving_mean_name=bn_name + "_mean",
            moving_variance_name=bn_name + "_variance",
        )

    def depthwise_separable(
        self, input, num_filters1, num_filters2, num_groups, stride, scale, name=None
    ):
        depthwise_conv = self.conv_bn_layer(
            input=input,
            filter_size=3,
            num_filters=int(num_filters1 * scale),
            stride=stride,
            padding=1,
            num_groups=int(num_groups * scale),
            use_cudnn=False,
            name=name + "_dw",
        )
        pointwise_conv = self.conv_bn_layer(
            input=depthwise_conv,
            filter_size=1,
            num_filters=int(num_filters2 * scale),
            stride=1,
            padding=0,
            name=name + "_sep",
        )
        return pointwise_conv
