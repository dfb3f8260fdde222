"""Machine translation with the decoders of fluid.contrib, as the book once had it."""
from __future__ import print_function

import argparse

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as pd
from paddle.fluid.contrib.decoder.beam_search_decoder import *
from paddle.fluid.executor import Executor

dict_size = 13
source_dict_dim = target_dict_dim = dict_size
hidden_dim = 6
word_dim = 5
batch_size = 4
max_length = 7
topk_size = 8
beam_size = 3
decoder_size = hidden_dim
IS_SPARSE = True
START, END = 0, 1


def encoder():
    src_word = pd.data(name="src_word", shape=[1], dtype="int64", lod_level=1)
    src_embedding = pd.embedding(
        input=src_word,
        size=[source_dict_dim, word_dim],
        dtype="float32",
        is_sparse=IS_SPARSE,
    )
    fc1 = pd.fc(input=src_embedding, size=hidden_dim * 4, act="tanh")
    lstm_hidden0, lstm_0 = pd.dynamic_lstm(input=fc1, size=hidden_dim * 4)
    return pd.sequence_last_step(input=lstm_hidden0)


def decoder_state_cell(context):
    h = InitState(init=context, need_reorder=True)
    c = InitState(init_boot=context, shape=[-1, decoder_size], value=0.0)
    state_cell = StateCell(
        inputs={"x": None}, states={"h": h, "c": c}, out_state="h", name="cell"
    )

    @state_cell.state_updater
    def updater(state_cell):
        current_word = state_cell.get_input("x")
        prev_h = state_cell.get_state("h")
        prev_c = state_cell.get_state("c")
        # the state first: the result has no LoD that later steps could stumble on
        gates = pd.fc(input=[prev_h, current_word], size=3 * decoder_size)
        i, o, j = pd.split(gates, 3, dim=1)
        kept = pd.elementwise_mul(prev_c, 1.0 - pd.sigmoid(i))
        new_c = pd.elementwise_add(kept, pd.elementwise_mul(pd.sigmoid(i), pd.tanh(j)))
        state_cell.set_state("c", new_c)
        state_cell.set_state("h", pd.elementwise_mul(pd.sigmoid(o), pd.tanh(new_c)))

    return state_cell


def decoder_train(state_cell):
    trg_language_word = pd.data(
        name="target_word", shape=[1], dtype="int64", lod_level=1
    )
    trg_embedding = pd.embedding(
        input=trg_language_word,
        size=[target_dict_dim, word_dim],
        dtype="float32",
        is_sparse=IS_SPARSE,
    )
    decoder = TrainingDecoder(state_cell)
    with decoder.block():
        current_word = decoder.step_input(trg_embedding)
        decoder.state_cell.compute_state(inputs={"x": current_word})
        current_score = pd.fc(
            input=decoder.state_cell.get_state("h"), size=target_dict_dim, act="softmax"
        )
        decoder.state_cell.update_states()
        decoder.output(current_score)
    return decoder()


def decoder_decode(state_cell):
    init_ids = pd.data(name="init_ids", shape=[1], dtype="int64", lod_level=2)
    init_scores = pd.data(name="init_scores", shape=[1], dtype="float32", lod_level=2)
    decoder = BeamSearchDecoder(
        state_cell=state_cell,
        init_ids=init_ids,
        init_scores=init_scores,
        target_dict_dim=target_dict_dim,
        word_dim=word_dim,
        input_var_dict={},
        topk_size=topk_size,
        sparse_emb=IS_SPARSE,
        max_len=max_length,
        beam_size=beam_size,
        end_id=END,
        name=None,
    )
    decoder.decode()
    return decoder()


def corpus(seed, count):
    """Each word of the target is one more than the source's; long ones are cut."""

    def reader():
        rng = np.random.RandomState(seed)
        for _ in range(count):
            source = rng.randint(2, dict_size - 1, rng.randint(1, 7)).tolist()
            target = [word + 1 for word in source[:4]]
            yield source, [START] + target, target + [END]

    return reader


def train_main(exe, passes):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        rnn_out = decoder_train(decoder_state_cell(encoder()))
        label = pd.data(name="target_next", shape=[1], dtype="int64", lod_level=1)
        cost = pd.cross_entropy(input=rnn_out, label=label)
        avg_cost = pd.mean(x=cost)
        optimizer = fluid.optimizer.Adagrad(learning_rate=0.1)
        optimizer.minimize(avg_cost)
    exe.run(startup)
    rng = np.random.RandomState(4)
    for p in sorted(main.all_parameters(), key=lambda p: p.name):
        value = rng.normal(0, 0.4, p.shape).astype("float32")
        fluid.global_scope().find_var(p.name).get_tensor().set(value, exe.place)
    block = main.global_block()
    feeder = fluid.DataFeeder(
        [block.var(n) for n in ("src_word", "target_word", "target_next")], exe.place
    )
    for pass_id in range(passes):
        reader = paddle.batch(corpus(pass_id, 16), batch_size=batch_size)
        for batch_id, data in enumerate(reader()):
            outs = exe.run(main, feed=feeder.feed(data), fetch_list=[avg_cost])
            print("pass_id=%d batch=%d avg_cost=%.6f" % (pass_id, batch_id, outs[0][0]))


def decode_main(exe):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        translation_ids, translation_scores = decoder_decode(
            decoder_state_cell(encoder())
        )
    sources = [source for source, _, _ in corpus(77, 4)()]
    ones = [[1] * len(sources)] * 2
    init_ids = fluid.create_lod_tensor(
        np.full((len(sources), 1), START, "int64"), ones, exe.place
    )
    init_scores = fluid.create_lod_tensor(
        np.zeros((len(sources), 1), "float32"), ones, exe.place
    )
    words = fluid.create_lod_tensor(
        np.concatenate(sources).reshape(-1, 1).astype("int64"),
        [[len(s) for s in sources]],
        exe.place,
    )
    result_ids, result_scores = exe.run(
        main,
        feed={"src_word": words, "init_ids": init_ids, "init_scores": init_scores},
        fetch_list=[translation_ids, translation_scores],
        return_numpy=False,
    )
    hypotheses, tokens = result_ids.lod()
    ids, scores = np.array(result_ids), np.array(result_scores)
    for i, source in enumerate(sources):
        print("source", source)
        for j in range(hypotheses[i], hypotheses[i + 1]):
            begin, end = tokens[j], tokens[j + 1]
            print("  %.5f" % scores[end - 1], ids[begin:end].tolist())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--passes", type=int, default=4)
    args = parser.parse_args()
    executor = Executor(fluid.CPUPlace())
    train_main(executor, args.passes)
    decode_main(executor)
