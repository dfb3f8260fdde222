"""Machine translation as in the book: an encoder of two LSTMs, a decoder with attention
in a DynamicRNN, and a beam search over it in a While with arrays."""
from __future__ import print_function

import argparse

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as pd
from paddle.fluid.executor import Executor

dict_size = 14
source_dict_dim = target_dict_dim = dict_size
hidden_dim = 6  # at 8 the lstm of 1.8 gave gradients with a part missing
word_dim = 6
batch_size = 4
beam_size = 3
max_length = 9
decoder_size = hidden_dim
START, END = 0, 1


def fc(input, size, name, **kwargs):
    attrs = [
        fluid.ParamAttr(name="%s.w%d" % (name, i))
        for i in range(len(input) if isinstance(input, list) else 1)
    ]
    return pd.fc(
        input=input,
        size=size,
        param_attr=attrs if isinstance(input, list) else attrs[0],
        bias_attr=fluid.ParamAttr(name=name + ".b"),
        **kwargs
    )


def lstm_step(x_t, hidden_t_prev, cell_t_prev, size):
    def linear(inputs, name):
        return fc(inputs, size, name)

    forget_gate = pd.sigmoid(x=linear([hidden_t_prev, x_t], "forget"))
    input_gate = pd.sigmoid(x=linear([hidden_t_prev, x_t], "input"))
    output_gate = pd.sigmoid(x=linear([hidden_t_prev, x_t], "output"))
    cell_tilde = pd.tanh(x=linear([hidden_t_prev, x_t], "cell"))
    cell_t = pd.sums(
        input=[
            pd.elementwise_mul(x=forget_gate, y=cell_t_prev),
            pd.elementwise_mul(x=input_gate, y=cell_tilde),
        ]
    )
    hidden_t = pd.elementwise_mul(x=output_gate, y=pd.tanh(x=cell_t))
    return hidden_t, cell_t


def bi_lstm_encoder(input_seq, gate_size):
    ends = []
    for is_reverse in (False, True):
        proj = fc(input_seq, gate_size * 4, "enc_in%d" % is_reverse, act="tanh")
        hidden, _ = pd.dynamic_lstm(
            input=proj,
            size=gate_size * 4,
            use_peepholes=False,
            is_reverse=is_reverse,
            param_attr=fluid.ParamAttr(name="enc%d.w" % is_reverse),
            bias_attr=fluid.ParamAttr(name="enc%d.b" % is_reverse),
        )
        ends.append(hidden)
    return ends


def encoder():
    src_word = pd.data(name="src_word_id", shape=[1], dtype="int64", lod_level=1)
    src_embedding = pd.embedding(
        input=src_word,
        size=[source_dict_dim, word_dim],
        dtype="float32",
        is_sparse=True,
        param_attr=fluid.ParamAttr(name="src_emb"),
    )
    src_forward, src_reversed = bi_lstm_encoder(src_embedding, hidden_dim)
    encoded_vector = pd.concat(input=[src_forward, src_reversed], axis=1)
    encoded_proj = pd.fc(
        input=encoded_vector,
        size=decoder_size,
        bias_attr=False,
        param_attr=fluid.ParamAttr(name="enc_proj"),
    )
    backward_first = pd.sequence_pool(input=src_reversed, pool_type="first")
    decoder_boot = pd.fc(
        input=backward_first,
        size=decoder_size,
        bias_attr=False,
        act="tanh",
        param_attr=fluid.ParamAttr(name="boot"),
    )
    return encoded_vector, encoded_proj, decoder_boot


def simple_attention(encoder_vec, encoder_proj, decoder_state):
    decoder_state_proj = pd.fc(
        input=decoder_state,
        size=decoder_size,
        bias_attr=False,
        param_attr=fluid.ParamAttr(name="att_state"),
    )
    decoder_state_expand = pd.sequence_expand(x=decoder_state_proj, y=encoder_proj)
    concated = pd.concat(input=[encoder_proj, decoder_state_expand], axis=1)
    attention_weights = pd.fc(
        input=concated,
        size=1,
        act="tanh",
        bias_attr=False,
        param_attr=fluid.ParamAttr(name="att"),
    )
    attention_weights = pd.sequence_softmax(input=attention_weights)
    weights_reshape = pd.reshape(x=attention_weights, shape=[-1])
    scaled = pd.elementwise_mul(x=encoder_vec, y=weights_reshape, axis=0)
    return pd.sequence_pool(input=scaled, pool_type="sum")


def target_embedding(word):
    return pd.embedding(
        input=word,
        size=[target_dict_dim, word_dim],
        dtype="float32",
        is_sparse=True,
        param_attr=fluid.ParamAttr(name="trg_emb"),
    )


def train_decoder(encoded_vector, encoded_proj, decoder_boot):
    trg = pd.data(name="target_language_word", shape=[1], dtype="int64", lod_level=1)
    trg_embedding = target_embedding(trg)
    rnn = pd.DynamicRNN()
    cell_init = pd.fill_constant_batch_size_like(
        input=decoder_boot, value=0.0, shape=[-1, decoder_size], dtype="float32"
    )
    cell_init.stop_gradient = False
    with rnn.block():
        current_word = rnn.step_input(trg_embedding)
        encoder_vec = rnn.static_input(encoded_vector)
        encoder_proj = rnn.static_input(encoded_proj)
        hidden_mem = rnn.memory(init=decoder_boot, need_reorder=True)
        cell_mem = rnn.memory(init=cell_init)
        context = simple_attention(encoder_vec, encoder_proj, hidden_mem)
        decoder_inputs = pd.concat(input=[context, current_word], axis=1)
        h, c = lstm_step(decoder_inputs, hidden_mem, cell_mem, decoder_size)
        rnn.update_memory(hidden_mem, h)
        rnn.update_memory(cell_mem, c)
        out = fc(h, target_dict_dim, "out", act="softmax")
        rnn.output(out)
    return rnn()


def decode():
    """Beam search; the attention looks at the source of each prefix."""
    encoded_vector, encoded_proj, decoder_boot = encoder()
    array_len = pd.fill_constant(shape=[1], dtype="int64", value=max_length)
    counter = pd.zeros(shape=[1], dtype="int64", force_cpu=True)

    def array_of(value):
        array = pd.create_array("float32")
        pd.array_write(value, array=array, i=counter)
        return array

    states = array_of(decoder_boot)
    cells = array_of(pd.scale(decoder_boot, scale=0.0))
    vectors, projections = array_of(encoded_vector), array_of(encoded_proj)
    ids_array, scores_array = pd.create_array("int64"), pd.create_array("float32")
    init_ids = pd.data(name="init_ids", shape=[1], dtype="int64", lod_level=2)
    init_scores = pd.data(name="init_scores", shape=[1], dtype="float32", lod_level=2)
    pd.array_write(init_ids, array=ids_array, i=counter)
    pd.array_write(init_scores, array=scores_array, i=counter)
    cond = pd.less_than(x=counter, y=array_len)
    while_op = pd.While(cond=cond)
    with while_op.block():
        pre_ids = pd.array_read(array=ids_array, i=counter)
        pre_score = pd.array_read(array=scores_array, i=counter)
        pre_state = pd.array_read(array=states, i=counter)
        pre_cell = pd.array_read(array=cells, i=counter)
        vector = pd.array_read(array=vectors, i=counter)
        projection = pd.array_read(array=projections, i=counter)
        state = pd.sequence_expand(pre_state, pre_score)
        cell = pd.sequence_expand(pre_cell, pre_score)
        vector = pd.sequence_expand(vector, pre_score)
        projection = pd.sequence_expand(projection, pre_score)
        word = target_embedding(pre_ids)
        context = simple_attention(vector, projection, state)
        inputs = pd.concat(input=[context, word], axis=1)
        h, c = lstm_step(inputs, state, cell, decoder_size)
        shown = pd.lod_reset(x=h, y=pre_score)
        current_score = fc(shown, target_dict_dim, "out", act="softmax")
        topk_scores, topk_indices = pd.topk(current_score, k=beam_size)
        accu_scores = pd.elementwise_add(
            x=pd.log(topk_scores), y=pd.reshape(pre_score, shape=[-1]), axis=0
        )
        selected_ids, selected_scores = pd.beam_search(
            pre_ids, pre_score, topk_indices, accu_scores, beam_size, end_id=END, level=0
        )
        pd.increment(x=counter, value=1, in_place=True)
        for array, value in (
            (states, h),
            (cells, c),
            (vectors, vector),
            (projections, projection),
            (ids_array, selected_ids),
            (scores_array, selected_scores),
        ):
            pd.array_write(value, array=array, i=counter)
        length_cond = pd.less_than(x=counter, y=array_len)
        finish_cond = pd.logical_not(pd.is_empty(x=selected_ids))
        pd.logical_and(x=length_cond, y=finish_cond, out=cond)
    return pd.beam_search_decode(
        ids=ids_array, scores=scores_array, beam_size=beam_size, end_id=END
    )


def pairs(seed, count):
    """The target is the source backwards, between <s> and <e>."""

    def reader():
        rng = np.random.RandomState(seed)
        for _ in range(count):
            source = rng.randint(2, dict_size, rng.randint(1, 6)).tolist()
            target = source[::-1]
            yield source, [START] + target, target + [END]

    return reader


def start_from(program, place, seed=3):
    rng = np.random.RandomState(seed)
    for p in sorted(program.global_block().all_parameters(), key=lambda p: p.name):
        value = rng.normal(0, 0.4, p.shape).astype("float32")
        fluid.global_scope().find_var(p.name).get_tensor().set(value, place)


def train(place, passes):
    rnn_out = train_decoder(*encoder())
    label = pd.data(
        name="target_language_next_word", shape=[1], dtype="int64", lod_level=1
    )
    cost = pd.cross_entropy(input=rnn_out, label=label)
    avg_cost = pd.mean(cost)
    optimizer = fluid.optimizer.Adagrad(
        learning_rate=0.05,
        regularization=fluid.regularizer.L2DecayRegularizer(regularization_coeff=1e-4),
    )
    optimizer.minimize(avg_cost)
    exe = Executor(place)
    exe.run(fluid.default_startup_program())
    start_from(fluid.default_main_program(), place)
    main = fluid.default_main_program()
    names = ("src_word_id", "target_language_word", "target_language_next_word")
    feeder = fluid.DataFeeder([main.global_block().var(n) for n in names], place)
    for epoch in range(passes):
        reader = paddle.batch(
            paddle.reader.shuffle(pairs(epoch, 20), buf_size=1), batch_size=batch_size
        )
        for batch_id, data in enumerate(reader()):
            data.sort(key=lambda pair: -len(pair[0]))  # the longest first
            (loss,) = exe.run(main, feed=feeder.feed(data), fetch_list=[avg_cost])
            print("pass %d batch %d avg_cost %.6f" % (epoch, batch_id, loss[0]))


def translate(place):
    program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(program, startup):
        translation_ids, translation_scores = decode()
    exe = Executor(place)
    sources = [source for source, _, _ in pairs(77, 3)()]
    ones = [[1] * len(sources)] * 2
    start = np.full((len(sources), 1), START, "int64")
    feed = {
        "src_word_id": fluid.create_lod_tensor(sources, [[len(s) for s in sources]], place),
        "init_ids": fluid.create_lod_tensor(start, ones, place),
        "init_scores": fluid.create_lod_tensor(start.astype("float32"), ones, place),
    }
    ids, scores = exe.run(
        program,
        feed=feed,
        fetch_list=[translation_ids, translation_scores],
        return_numpy=False,
    )
    (hypotheses, tokens) = ids.lod()
    words, rated = np.array(ids), np.array(scores)
    for i, source in enumerate(sources):
        print("source", source)
        for j in range(hypotheses[i], hypotheses[i + 1]):
            start, stop = tokens[j], tokens[j + 1]
            print("  ", ["%.5f" % s for s in rated[start:stop]], words[start:stop].tolist())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--passes", type=int, default=3)
    args = parser.parse_args()
    cpu = fluid.CPUPlace()
    train(cpu, args.passes)
    translate(cpu)
