
import paddle.fluid as fluid
from paddle.fluid.param_attr import ParamAttr

__all__ = ["DenseNet"]


class DenseNet:
    def __init__(self, layers=121):
        self.layers = layers

    def net(self, input, bn_size=4, dropout=0, class_dim=1000, scale=1.0):
        num_init_features, growth_rate = int(64 * scale), int(32 * scale)
        block_config = [2, 3]
        conv = fluid.layers.conv2d(
            input=input,
            num_filters=num_init_features,
            filter_size=7,
            stride=2,
            padding=3,
            act=None,
            param_attr=ParamAttr(name="conv1_weights"),
            bias_attr=False,
        )
        conv = self.bn(conv, "conv1_bn")
        conv = fluid.layers.pool2d(
            input=conv, pool_size=3, pool_stride=2, pool_padding=1, pool_type="max"
        )
        num_features = num_init_features
        for i, num_layers in enumerate(block_config):
            conv = self.make_dense_block(
                conv,
                num_layers,
                bn_size,
                growth_rate,
                dropout,
                name="conv" + str(i + 2),
            )
            num_features = num_features + num_layers * growth_rate
            if i != len(block_config) - 1:
                conv = self.make_transition(
                    conv, num_features // 2, name="conv" + str(i + 2) + "_blk"
                )
                num_features = num_features // 2
        conv = self.bn(conv, "conv5_blk_bn")
        conv = fluid.layers.pool2d(input=conv, global_pooling=True, pool_type="avg")
        return fluid.layers.fc(
            input=conv,
            size=class_dim,
            param_attr=ParamAttr(name="fc_weights"),
            bias_attr=ParamAttr(name="fc_offset"),
        )

    def bn(self, input, name):
        return fluid.layers.batch_norm(
            input=input,
            act="relu",
            param_attr=ParamAttr(name=name + "_scale"),
            bias_attr=ParamAttr(name + "_offset"),
            moving_mean_name=name + "_mean",
            moving_variance_name=name + "_variance",
        )

    def make_transition(self, input, num_output_features, name=None):
        bn_ac = self.bn(input, name + "_bn")
        conv = fluid.layers.conv2d(
            input=bn_ac,
            num_filters=num_output_features,
            filter_size=1,
            stride=1,
            act=None,
            bias_attr=False,
            param_attr=ParamAttr(name=name + "_weights"),
        )
        return fluid.layers.pool2d(
            input=conv, pool_size=2, pool_stride=2, pool_type="avg"
        )

    def make_dense_block(
        self, input, num_layers, bn_size, growth_rate, dropout, name=None
    ):
        conv = input
        for layer in range(num_layers):
            conv = self.make_dense_layer(
                conv, growth_rate, bn_size, dropout, name=name + "_" + str(layer + 1)
            )
        return conv

    def make_dense_layer(self, input, growth_rate, bn_size, dropout, name=None):
        bn_ac = self.bn(input, name + "_x1_bn")
        conv = fluid.layers.conv2d(
            input=bn_ac,
            num_filters=bn_size * growth_rate,
            filter_size=1,
            stride=1,
            act=None,
            bias_attr=False,
            param_attr=ParamAttr(name=name + "_x1_weights"),
        )
        bn_ac = self.bn(conv, name + "_x2_bn")
        conv = fluid.layers.conv2d(
            input=bn_ac,
            num_filters=growth_rate,
            filter_size=3,
            stride=1,
            padding=1,
            act=None,
            bias_attr=False,
            param_attr=ParamAttr(name=name + "_x2_weights"),
        )
        if dropout:
            conv = fluid.layers.dropout(x=conv, dropout_prob=dropout)
        return fluid.layers.concat([input, conv], axis=1)
