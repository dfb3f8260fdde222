"""The recurrent language model, as StaticRNN or rolled out over the steps."""


import paddle.fluid as fluid
import paddle.fluid.layers as layers
from paddle.fluid.layers.control_flow import StaticRNN as PaddingRNN


def lstm_cell(weight_ih, bias, input, pre_hidden, pre_cell):
    nn = layers.concat([input, pre_hidden], 1)
    gate_input = layers.matmul(x=nn, y=weight_ih)
    gate_input = layers.elementwise_add(gate_input, bias)
    i, j, f, o = layers.split(gate_input, num_or_sections=4, dim=-1)
    c = pre_cell * layers.sigmoid(f) + layers.sigmoid(i) * layers.tanh(j)
    m = layers.tanh(c) * layers.sigmoid(o)
    return m, c


def make_weights(hidden_size, num_layers, init_scale):
    weights, biases = [], []
    for i in range(num_layers):
        weights.append(
            layers.create_parameter(
                [hidden_size * 2, hidden_size * 4],
                dtype="float32",
                name="fc_weight_" + str(i),
                default_initializer=fluid.initializer.UniformInitializer(
                    low=-init_scale, high=init_scale
                ),
            )
        )
        biases.append(
            layers.create_parameter(
                [hidden_size * 4],
                dtype="float32",
                name="fc_bias_" + str(i),
                default_initializer=fluid.initializer.Constant(0.0),
            )
        )
    return weights, biases


def padding_rnn(
    input_embedding, hidden_size, num_layers, init_hidden, init_cell, init_scale=0.1
):
    """One op `recurrent` for all steps."""
    weights, biases = make_weights(hidden_size, num_layers, init_scale)
    hidden_array, cell_array = [], []
    for i in range(num_layers):
        for state, array in ((init_hidden, hidden_array), (init_cell, cell_array)):
            part = layers.slice(state, axes=[0], starts=[i], ends=[i + 1])
            array.append(layers.reshape(part, shape=[-1, hidden_size]))

    input_embedding = layers.transpose(input_embedding, perm=[1, 0, 2])
    rnn = PaddingRNN()
    with rnn.step():
        input = rnn.step_input(input_embedding)
        for k in range(num_layers):
            pre_hidden = rnn.memory(init=hidden_array[k])
            pre_cell = rnn.memory(init=cell_array[k])
            m, c = lstm_cell(weights[k], biases[k], input, pre_hidden, pre_cell)
            rnn.update_memory(pre_hidden, m)
            rnn.update_memory(pre_cell, c)
            rnn.step_output(m)
            rnn.step_output(c)
            input = m
        rnn.step_output(input)
    rnnout = rnn()

    last_hidden_array, last_cell_array = [], []
    real_res = rnnout[-1]
    for i in range(num_layers):
        m, c = rnnout[i * 2], rnnout[i * 2 + 1]
        m.stop_gradient = True
        c.stop_gradient = True
        last_hidden_array.append(
            layers.slice(m, axes=[0], starts=[-1], ends=[1000000000])
        )
        last_cell_array.append(
            layers.slice(c, axes=[0], starts=[-1], ends=[1000000000])
        )
    real_res = layers.transpose(x=real_res, perm=[1, 0, 2])
    return (
        real_res,
        layers.concat(last_hidden_array, 0),
        layers.concat(last_cell_array, 0),
    )


def encoder_static(
    input_embedding,
    len,
    hidden_size,
    num_layers,
    init_hidden,
    init_cell,
    init_scale=0.1,
):
    """The steps one after the other, as ops of the main block."""
    weights, biases = make_weights(hidden_size, num_layers, init_scale)
    hidden_array, cell_array = [], []
    for i in range(num_layers):
        for state, array in ((init_hidden, hidden_array), (init_cell, cell_array)):
            part = layers.slice(state, axes=[0], starts=[i], ends=[i + 1])
            array.append(layers.reshape(part, shape=[-1, hidden_size], inplace=True))

    res = []
    for index in range(len):
        input = layers.slice(
            input_embedding, axes=[1], starts=[index], ends=[index + 1]
        )
        input = layers.reshape(input, shape=[-1, hidden_size])
        for k in range(num_layers):
            m, c = lstm_cell(
                weights[k], biases[k], input, hidden_array[k], cell_array[k]
            )
            hidden_array[k], cell_array[k] = m, c
            input = m
        res.append(input)
    last_hidden = layers.reshape(
        layers.concat(hidden_array, 1), shape=[-1, num_layers, hidden_size]
    )
    last_cell = layers.reshape(
        layers.concat(cell_array, 1), shape=[-1, num_layers, hidden_size]
    )
    real_res = layers.concat([layers.unsqueeze(r, axes=[1]) for r in res], 1)
    return (
        real_res,
        layers.transpose(last_hidden, perm=[1, 0, 2]),
        layers.transpose(last_cell, perm=[1, 0, 2]),
    )


def lm_model(
    hidden_size,
    vocab_size,
    batch_size,
    num_layers=2,
    num_steps=20,
    init_scale=0.1,
    rnn_model="static",
):
    x = fluid.data(name="x", shape=[batch_size, num_steps, 1], dtype="int64")
    y = fluid.data(name="y", shape=[batch_size * num_steps, 1], dtype="int64")
    init_hidden = fluid.data(
        name="init_hidden", shape=[num_layers, batch_size, hidden_size], dtype="float32"
    )
    init_cell = fluid.data(
        name="init_cell", shape=[num_layers, batch_size, hidden_size], dtype="float32"
    )
    init_cell.persistable = True
    init_hidden.persistable = True

    x_emb = layers.embedding(
        input=x,
        size=[vocab_size, hidden_size],
        dtype="float32",
        is_sparse=False,
        param_attr=fluid.ParamAttr(
            name="embedding_para",
            initializer=fluid.initializer.UniformInitializer(
                low=-init_scale, high=init_scale
            ),
        ),
    )
    x_emb = layers.reshape(x_emb, shape=[-1, num_steps, hidden_size], inplace=True)

    if rnn_model == "padding":
        rnn_out, last_hidden, last_cell = padding_rnn(
            x_emb, hidden_size, num_layers, init_hidden, init_cell, init_scale
        )
    else:
        rnn_out, last_hidden, last_cell = encoder_static(
            x_emb,
            num_steps,
            hidden_size,
            num_layers,
            init_hidden,
            init_cell,
            init_scale,
        )
    rnn_out = layers.reshape(rnn_out, shape=[-1, hidden_size], inplace=True)

    softmax_weight = layers.create_parameter(
        [hidden_size, vocab_size], dtype="float32", name="softmax_weight"
    )
    softmax_bias = layers.create_parameter(
        [vocab_size], dtype="float32", name="softmax_bias"
    )
    projection = layers.matmul(rnn_out, softmax_weight)
    projection = layers.elementwise_add(projection, softmax_bias)
    loss = layers.softmax_with_cross_entropy(
        logits=projection, label=y, soft_label=False
    )
    loss = layers.reshape(loss, shape=[-1, num_steps], inplace=True)
    loss = layers.reduce_mean(loss, dim=[0])
    loss = layers.reduce_sum(loss)
    loss.persistable = True
    last_cell.persistable = True
    last_hidden.persistable = True

    # the states go back to where they came from, so that the next batch goes on
    layers.assign(input=last_cell, output=init_cell)
    layers.assign(input=last_hidden, output=init_hidden)
    return loss, last_hidden, last_cell, ["x", "y", "init_hidden", "init_cell"]
