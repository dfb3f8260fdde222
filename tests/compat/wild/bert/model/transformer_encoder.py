"""Transformer encoder."""


from functools import partial

import paddle.fluid as fluid
import paddle.fluid.layers as layers


def multi_head_attention(
    queries,
    keys,
    values,
    attn_bias,
    d_key,
    d_value,
    d_model,
    n_head=1,
    dropout_rate=0.0,
    param_initializer=None,
    name="multi_head_att",
):
    keys = queries if keys is None else keys
    values = keys if values is None else values

    def project(x, size, part):
        return layers.fc(
            input=x,
            size=size,
            num_flatten_dims=2,
            param_attr=fluid.ParamAttr(
                name=name + "_%s_fc.w_0" % part, initializer=param_initializer
            ),
            bias_attr=name + "_%s_fc.b_0" % part,
        )

    def split_heads(x):
        hidden_size = x.shape[-1]
        reshaped = layers.reshape(
            x=x, shape=[0, 0, n_head, hidden_size // n_head], inplace=True
        )
        return layers.transpose(x=reshaped, perm=[0, 2, 1, 3])

    q = split_heads(project(queries, d_key * n_head, "query"))
    k = split_heads(project(keys, d_key * n_head, "key"))
    v = split_heads(project(values, d_value * n_head, "value"))
    scaled_q = layers.scale(x=q, scale=d_key**-0.5)
    product = layers.matmul(x=scaled_q, y=k, transpose_y=True)
    if attn_bias:
        product += attn_bias
    weights = layers.softmax(product)
    if dropout_rate:
        weights = layers.dropout(
            weights,
            dropout_prob=dropout_rate,
            dropout_implementation="upscale_in_train",
            is_test=False,
        )
    out = layers.transpose(layers.matmul(weights, v), perm=[0, 2, 1, 3])
    out = layers.reshape(x=out, shape=[0, 0, out.shape[2] * out.shape[3]], inplace=True)
    return project(out, d_model, "output")


def pre_post_process_layer(prev_out, out, process_cmd, dropout_rate=0.0, name=""):
    for cmd in process_cmd:
        if cmd == "a":
            out = out + prev_out if prev_out else out
        elif cmd == "n":
            out_dtype = out.dtype
            if out_dtype == fluid.core.VarDesc.VarType.FP16:
                out = layers.cast(x=out, dtype="float32")
            out = layers.layer_norm(
                out,
                begin_norm_axis=len(out.shape) - 1,
                param_attr=fluid.ParamAttr(
                    name=name + "_layer_norm_scale",
                    initializer=fluid.initializer.Constant(1.0),
                ),
                bias_attr=fluid.ParamAttr(
                    name=name + "_layer_norm_bias",
                    initializer=fluid.initializer.Constant(0.0),
                ),
            )
            if out_dtype == fluid.core.VarDesc.VarType.FP16:
                out = layers.cast(x=out, dtype="float16")
        elif cmd == "d" and dropout_rate:
            out = layers.dropout(
                out,
                dropout_prob=dropout_rate,
                dropout_implementation="upscale_in_train",
                is_test=False,
            )
    return out


pre_process_layer = partial(pre_post_process_layer, None)
post_process_layer = pre_post_process_layer


def encoder_layer(
    enc_input,
    attn_bias,
    n_head,
    d_model,
    d_inner_hid,
    hidden_act,
    param_initializer,
    name,
):
    attn_output = multi_head_attention(
        enc_input,
        None,
        None,
        attn_bias,
        d_model // n_head,
        d_model // n_head,
        d_model,
        n_head,
        0.0,
        param_initializer,
        name + "_multi_head_att",
    )
    attn_output = post_process_layer(
        enc_input, attn_output, "dan", 0.0, name=name + "_post_att"
    )
    hidden = layers.fc(
        input=attn_output,
        size=d_inner_hid,
        num_flatten_dims=2,
        act=hidden_act,
        param_attr=fluid.ParamAttr(
            name=name + "_ffn_fc_0.w_0", initializer=param_initializer
        ),
        bias_attr=name + "_ffn_fc_0.b_0",
    )
    ffd_output = layers.fc(
        input=hidden,
        size=d_model,
        num_flatten_dims=2,
        param_attr=fluid.ParamAttr(
            name=name + "_ffn_fc_1.w_0", initializer=param_initializer
        ),
        bias_attr=name + "_ffn_fc_1.b_0",
    )
    return post_process_layer(
        attn_output, ffd_output, "dan", 0.0, name=name + "_post_ffn"
    )
