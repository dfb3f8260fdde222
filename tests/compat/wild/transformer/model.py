from functools import partial

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers
from config import ModelHyperParams

word_emb_param_names = ("src_word_emb_table", "trg_word_emb_table")
pos_enc_param_names = ("src_pos_enc_table", "trg_pos_enc_table")


def position_encoding_init(n_position, d_pos_vec):
    """Generate the initial values for the sinusoid position encoding table."""
    position = np.arange(n_position)
    num_timescales = d_pos_vec // 2
    log_timescale_increment = np.log(1e4 / float(1)) / (num_timescales - 1)
    inv_timescales = np.exp(np.arange(num_timescales) * -log_timescale_increment)
    scaled_time = np.expand_dims(position, 1) * np.expand_dims(inv_timescales, 0)
    signal = np.concatenate([np.sin(scaled_time), np.cos(scaled_time)], axis=1)
    signal = np.pad(signal, [[0, 0], [0, np.mod(d_pos_vec, 2)]], "constant")
    return signal.astype("float32")


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
):
    keys = queries if keys is None else keys
    values = keys if values is None else values
    if not (len(queries.shape) == len(keys.shape) == len(values.shape) == 3):
        raise ValueError("Inputs: quries, keys and values should all be 3-D tensors.")

    def __split_heads(x, n_head):
        if n_head == 1:
            return x
        hidden_size = x.shape[-1]
        reshaped = layers.reshape(
            x=x, shape=[0, 0, n_head, hidden_size // n_head], inplace=True
        )
        return layers.transpose(x=reshaped, perm=[0, 2, 1, 3])

    def __combine_heads(x):
        if len(x.shape) == 3:
            return x
        trans_x = layers.transpose(x, perm=[0, 2, 1, 3])
        return layers.reshape(
            x=trans_x, shape=[0, 0, trans_x.shape[2] * trans_x.shape[3]], inplace=True
        )

    q = layers.fc(
        input=queries, size=d_key * n_head, bias_attr=False, num_flatten_dims=2
    )
    k = layers.fc(input=keys, size=d_key * n_head, bias_attr=False, num_flatten_dims=2)
    v = layers.fc(
        input=values, size=d_value * n_head, bias_attr=False, num_flatten_dims=2
    )
    q, k, v = [__split_heads(x, n_head) for x in (q, k, v)]
    product = layers.matmul(x=q, y=k, transpose_y=True, alpha=d_key**-0.5)
    if attn_bias:
        product += attn_bias
    weights = layers.softmax(product)
    if dropout_rate:
        weights = layers.dropout(
            weights, dropout_prob=dropout_rate, seed=1, is_test=False
        )
    out = layers.matmul(weights, v)
    return layers.fc(
        input=__combine_heads(out), size=d_model, bias_attr=False, num_flatten_dims=2
    )


def positionwise_feed_forward(x, d_inner_hid, d_hid, dropout_rate):
    hidden = layers.fc(input=x, size=d_inner_hid, num_flatten_dims=2, act="relu")
    if dropout_rate:
        hidden = layers.dropout(hidden, dropout_prob=dropout_rate, is_test=False)
    return layers.fc(input=hidden, size=d_hid, num_flatten_dims=2)


def pre_post_process_layer(prev_out, out, process_cmd, dropout_rate=0.0):
    for cmd in process_cmd:
        if cmd == "a":
            out = out + prev_out if prev_out else out
        elif cmd == "n":
            out = layers.layer_norm(
                out,
                begin_norm_axis=len(out.shape) - 1,
                param_attr=fluid.initializer.Constant(1.0),
                bias_attr=fluid.initializer.Constant(0.0),
            )
        elif cmd == "d":
            if dropout_rate:
                out = layers.dropout(out, dropout_prob=dropout_rate, is_test=False)
    return out


pre_process_layer = partial(pre_post_process_layer, None)
post_process_layer = pre_post_process_layer


def prepare_encoder_decoder(
    src_word,
    src_pos,
    src_vocab_size,
    src_emb_dim,
    src_max_len,
    dropout_rate=0.0,
    word_emb_param_name=None,
    pos_enc_param_name=None,
):
    src_word_emb = fluid.embedding(
        src_word,
        size=[src_vocab_size, src_emb_dim],
        padding_idx=ModelHyperParams.bos_idx,
        param_attr=fluid.ParamAttr(
            name=word_emb_param_name,
            initializer=fluid.initializer.Normal(0.0, src_emb_dim**-0.5),
        ),
    )
    src_word_emb = layers.scale(x=src_word_emb, scale=src_emb_dim**0.5)
    src_pos_enc = fluid.embedding(
        src_pos,
        size=[src_max_len, src_emb_dim],
        param_attr=fluid.ParamAttr(
            name=pos_enc_param_name,
            trainable=False,
            initializer=fluid.initializer.NumpyArrayInitializer(
                position_encoding_init(src_max_len, src_emb_dim)
            ),
        ),
    )
    src_pos_enc.stop_gradient = True
    enc_input = src_word_emb + src_pos_enc
    return (
        layers.dropout(enc_input, dropout_prob=dropout_rate, is_test=False)
        if dropout_rate
        else enc_input
    )


def encoder(enc_input, attn_bias, hp):
    for i in range(hp.n_layer):
        pre = pre_process_layer(enc_input, hp.preprocess_cmd)
        attn = multi_head_attention(
            pre, None, None, attn_bias, hp.d_key, hp.d_value, hp.d_model, hp.n_head
        )
        attn = post_process_layer(enc_input, attn, hp.postprocess_cmd)
        ffd = positionwise_feed_forward(
            pre_process_layer(attn, hp.preprocess_cmd),
            hp.d_inner_hid,
            hp.d_model,
            hp.relu_dropout,
        )
        enc_input = post_process_layer(attn, ffd, hp.postprocess_cmd)
    return pre_process_layer(enc_input, hp.preprocess_cmd)


def decoder(dec_input, enc_output, slf_attn_bias, src_attn_bias, hp):
    for i in range(hp.n_layer):
        slf = multi_head_attention(
            pre_process_layer(dec_input, hp.preprocess_cmd),
            None,
            None,
            slf_attn_bias,
            hp.d_key,
            hp.d_value,
            hp.d_model,
            hp.n_head,
        )
        slf = post_process_layer(dec_input, slf, hp.postprocess_cmd)
        ctx = multi_head_attention(
            pre_process_layer(slf, hp.preprocess_cmd),
            enc_output,
            enc_output,
            src_attn_bias,
            hp.d_key,
            hp.d_value,
            hp.d_model,
            hp.n_head,
        )
        ctx = post_process_layer(slf, ctx, hp.postprocess_cmd)
        ffd = positionwise_feed_forward(
            pre_process_layer(ctx, hp.preprocess_cmd),
            hp.d_inner_hid,
            hp.d_model,
            hp.relu_dropout,
        )
        dec_input = post_process_layer(ctx, ffd, hp.postprocess_cmd)
    return pre_process_layer(dec_input, hp.preprocess_cmd)


def transformer(inputs, hp, label_smooth_eps):
    (
        src_word,
        src_pos,
        src_slf_attn_bias,
        trg_word,
        trg_pos,
        trg_slf_attn_bias,
        trg_src_attn_bias,
        label,
        weights,
    ) = inputs
    enc_input = prepare_encoder_decoder(
        src_word,
        src_pos,
        hp.src_vocab_size,
        hp.d_model,
        hp.max_length,
        hp.prepostprocess_dropout,
        word_emb_param_names[0],
        pos_enc_param_names[0],
    )
    enc_output = encoder(enc_input, src_slf_attn_bias, hp)
    trg_emb = word_emb_param_names[0 if hp.weight_sharing else 1]
    dec_input = prepare_encoder_decoder(
        trg_word,
        trg_pos,
        hp.trg_vocab_size,
        hp.d_model,
        hp.max_length,
        hp.prepostprocess_dropout,
        trg_emb,
        pos_enc_param_names[1],
    )
    dec_output = decoder(
        dec_input, enc_output, trg_slf_attn_bias, trg_src_attn_bias, hp
    )
    dec_output = layers.reshape(
        dec_output, shape=[-1, dec_output.shape[-1]], inplace=True
    )
    if hp.weight_sharing:
        predict = layers.matmul(
            x=dec_output,
            y=fluid.default_main_program().global_block().var(word_emb_param_names[0]),
            transpose_y=True,
        )
    else:
        predict = layers.fc(input=dec_output, size=hp.trg_vocab_size, bias_attr=False)

    if label_smooth_eps:
        label = layers.label_smooth(
            label=layers.one_hot(input=label, depth=hp.trg_vocab_size),
            epsilon=label_smooth_eps,
        )
    cost = layers.softmax_with_cross_entropy(
        logits=predict, label=label, soft_label=True if label_smooth_eps else False
    )
    weighted_cost = layers.elementwise_mul(x=cost, y=weights, axis=0)
    sum_cost = layers.reduce_sum(weighted_cost)
    token_num = layers.reduce_sum(weights)
    token_num.stop_gradient = True
    avg_cost = sum_cost / token_num
    return sum_cost, avg_cost, predict, token_num
