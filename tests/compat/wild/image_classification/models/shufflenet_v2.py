
import paddle.fluid as fluid
from paddle.fluid.initializer import MSRA
from paddle.fluid.param_attr import ParamAttr

__all__ = ["ShuffleNetV2"]


def channel_shuffle(x, groups):
    batchsize, num_channels, height, width = (
        x.shape[0],
        x.shape[1],
        x.shape[2],
        x.shape[3],
    )
    channels_per_group = num_channels // groups
    x = fluid.layers.reshape(
        x=x, shape=[batchsize, groups, channels_per_group, height, width]
    )
    x = fluid.layers.transpose(x=x, perm=[0, 2, 1, 3, 4])
    return fluid.layers.reshape(x=x, shape=[batchsize, num_channels, height, width])


class ShuffleNetV2:
    def net(self, input, class_dim=1000, scale=1.0):
        stage_out = [int(c * scale) // 2 * 2 for c in (24, 48, 96)]
        conv1 = self.conv_bn_layer(
            input=input,
            filter_size=3,
            num_filters=stage_out[0],
            padding=1,
            stride=2,
            name="stage1_conv",
        )
        x = fluid.layers.pool2d(
            input=conv1, pool_size=3, pool_stride=2, pool_padding=1, pool_type="max"
        )
        for stage, repeats in enumerate([2, 2]):
            for i in range(repeats):
                name = "%d_%d" % (stage + 2, i + 1)
                if i == 0:
                    x = self.inverted_residual_unit(
                        x, stage_out[stage + 1], stride=2, benchmodel=2, name=name
                    )
                else:
                    x = self.inverted_residual_unit(
                        x, stage_out[stage + 1], stride=1, benchmodel=1, name=name
                    )
        output = fluid.layers.pool2d(input=x, pool_type="avg", global_pooling=True)
        return fluid.layers.fc(
            input=output,
            size=class_dim,
            param_attr=ParamAttr(initializer=MSRA(), name="fc6_weights"),
            bias_attr=ParamAttr(name="fc6_offset"),
        )

    def conv_bn_layer(
        self,
        input,
        filter_size,
        num_filters,
        stride,
        padding,
        num_groups=1,
        use_cudnn=True,
        if_act=True,
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
        act = "relu" if if_act else None
        bn_name = name + "_bn"
        return fluid.layers.batch_norm(
            input=conv,
            act=act,
            param_attr=ParamAttr(name=bn_name + "_scale"),
            bias_attr=ParamAttr(name=bn_name + "_offset"),
            moving_mean_name=bn_name + "_mean",
            moving_variance_name=bn_name + "_variance",
        )

    def branch(self, x, oup_inc, stride, name):
        conv_pw = self.conv_bn_layer(
            input=x,
            num_filters=oup_inc,
            filter_size=1,
            stride=1,
            padding=0,
            name="stage_" + name + "_conv1",
        )
        conv_dw = self.conv_bn_layer(
            input=conv_pw,
            num_filters=oup_inc,
            filter_size=3,
            stride=stride,
            padding=1,
            num_groups=oup_inc,
            if_act=False,
            use_cudnn=False,
            name="stage_" + name + "_conv2",
        )
        return self.conv_bn_layer(
            input=conv_dw,
            num_filters=oup_inc,
            filter_size=1,
            stride=1,
            padding=0,
            name="stage_" + name + "_conv3",
        )

    def inverted_residual_unit(self, input, num_filters, stride, benchmodel, name):
        oup_inc = num_filters // 2
        inp = input.shape[1]
        if benchmodel == 1:
            x1, x2 = fluid.layers.split(
                input, num_or_sections=[inp // 2, inp // 2], dim=1
            )
            out = fluid.layers.concat(
                [x1, self.branch(x2, oup_inc, stride, name)], axis=1
            )
        else:
            dw = self.conv_bn_layer(
                input=input,
                num_filters=inp,
                filter_size=3,
                stride=stride,
                padding=1,
                num_groups=inp,
                if_act=False,
                use_cudnn=False,
                name="stage_" + name + "_conv4",
            )
            linear = self.conv_bn_layer(
                input=dw,
                num_filters=oup_inc,
                filter_size=1,
                stride=1,
                padding=0,
                name="stage_" + name + "_conv5",
            )
            out = fluid.layers.concat(
                [linear, self.branch(input, oup_inc, stride, name)], axis=1
            )
        return channel_shuffle(out, 2)
