"""Machine translation as in the tutorials of 1.8: cells, `rnn` and decoders.

The encoder is a bidirectional GRU, the decoder a cell with attention. Training walks it
with `rnn` (or with a TrainingHelper in dynamic_decode), inference searches with a
BeamSearchDecoder (or goes greedily by a GreedyEmbeddingHelper).
"""
from __future__ import print_function

import argparse

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers

BOS, EOS, UNK = 0, 1, 2
dict_size = 12
source_dict_size = target_dict_size = dict_size
word_dim = 5
hidden_dim = 6
decoder_size = hidden_dim
batch_size = 5
max_length = 8
beam_size = 4


def data_func(is_train=True):
    src = fluid.data(name="src", shape=[None, None], dtype="int64")
    src_sequence_length = fluid.data(
        name="src_sequence_length", shape=[None], dtype="int64"
    )
    inputs = [src, src_sequence_length]
    if is_train:
        trg = fluid.data(name="trg", shape=[None, None], dtype="int64")
        trg_sequence_length = fluid.data(
            name="trg_sequence_length", shape=[None], dtype="int64"
        )
        label = fluid.data(name="label", shape=[None, None], dtype="int64")
        inputs += [trg, trg_sequence_length, label]
    return inputs


def encoder(src_embedding, src_sequence_length):
    encoder_fwd_cell = layers.GRUCell(hidden_size=hidden_dim)
    encoder_fwd_output, fwd_state = layers.rnn(
        cell=encoder_fwd_cell,
        inputs=src_embedding,
        sequence_length=src_sequence_length,
        time_major=False,
        is_reverse=False,
    )
    encoder_bwd_cell = layers.GRUCell(hidden_size=hidden_dim)
    encoder_bwd_output, bwd_state = layers.rnn(
        cell=encoder_bwd_cell,
        inputs=src_embedding,
        sequence_length=src_sequence_length,
        time_major=False,
        is_reverse=True,
    )
    encoder_output = layers.concat(
        input=[encoder_fwd_output, encoder_bwd_output], axis=2
    )
    encoder_state = layers.concat(input=[fwd_state, bwd_state], axis=1)
    return encoder_output, encoder_state


class DecoderCell(layers.RNNCell):
    """A GRU whose input is the word beside what attention takes of the source."""

    def __init__(self, hidden_size):
        self.hidden_size = hidden_size
        self.gru_cell = layers.GRUCell(hidden_size)

    def attention(self, hidden, encoder_output, encoder_output_proj, padding_mask):
        decoder_state_proj = layers.unsqueeze(
            layers.fc(
                hidden,
                size=self.hidden_size,
                bias_attr=False,
                param_attr="attention_state.w",
            ),
            [1],
        )
        mixed_state = layers.elementwise_add(encoder_output_proj, decoder_state_proj)
        attn_scores = layers.squeeze(
            layers.fc(
                input=layers.tanh(mixed_state),
                size=1,
                num_flatten_dims=2,
                bias_attr=False,
                param_attr="attention_score.w",
            ),
            [2],
        )
        attn_scores = layers.softmax(layers.elementwise_add(attn_scores, padding_mask))
        return layers.reduce_sum(
            layers.elementwise_mul(encoder_output, attn_scores, axis=0), dim=1
        )

    def call(
        self, step_input, hidden, encoder_output, encoder_output_proj, padding_mask
    ):
        context = self.attention(
            hidden, encoder_output, encoder_output_proj, padding_mask
        )
        step_input = layers.concat([step_input, context], axis=1)
        output, new_hidden = self.gru_cell(step_input, hidden)
        return output, new_hidden

    @property
    def state_shape(self):
        return [self.hidden_size]


def output_layer(hidden):
    return layers.fc(
        hidden,
        size=target_dict_size,
        num_flatten_dims=len(hidden.shape) - 1,
        param_attr="output.w",
        bias_attr=False,
    )


def source_side():
    src, src_sequence_length = data_func(is_train=False)
    src_embedding = fluid.embedding(
        input=src, size=[source_dict_size, word_dim], param_attr="src_embedding"
    )
    encoder_output, encoder_state = encoder(src_embedding, src_sequence_length)
    decoder_initial_states = layers.fc(
        encoder_state, size=decoder_size, act="tanh", param_attr="boot.w"
    )
    encoder_output_proj = layers.fc(
        input=encoder_output,
        size=decoder_size,
        num_flatten_dims=2,
        bias_attr=False,
        param_attr="attention_memory.w",
    )
    src_mask = layers.sequence_mask(
        src_sequence_length, maxlen=layers.shape(src)[1], dtype="float32"
    )
    padding_mask = (src_mask - 1.0) * 1e9
    memory = dict(
        encoder_output=encoder_output,
        encoder_output_proj=encoder_output_proj,
        padding_mask=padding_mask,
    )
    return memory, decoder_initial_states


def target_embedding(ids):
    return fluid.embedding(
        ids, size=[target_dict_size, word_dim], param_attr="trg_embedding"
    )


def train_model(use_helper):
    memory, initial_states = source_side()
    trg, trg_sequence_length, label = data_func(is_train=True)[2:]
    decoder_cell = DecoderCell(hidden_size=decoder_size)
    if use_helper:
        helper = layers.TrainingHelper(target_embedding(trg), trg_sequence_length)
        decoder = layers.BasicDecoder(decoder_cell, helper, output_fn=output_layer)
        decoder_output, _, lengths = layers.dynamic_decode(
            decoder,
            inits=initial_states,
            impute_finished=True,
            return_length=True,
            **memory
        )
        logits = decoder_output.cell_outputs
    else:
        decoder_output, _ = layers.rnn(
            cell=decoder_cell,
            inputs=target_embedding(trg),
            initial_states=initial_states,
            time_major=False,
            **memory
        )
        logits = output_layer(decoder_output)
    loss = layers.softmax_with_cross_entropy(
        logits=logits, label=layers.unsqueeze(label, axes=[2])
    )
    mask = layers.sequence_mask(
        trg_sequence_length, maxlen=layers.shape(logits)[1], dtype="float32"
    )
    loss = layers.squeeze(loss, [2]) * mask
    return layers.reduce_sum(loss) / layers.reduce_sum(mask)


def infer_model(use_helper):
    memory, initial_states = source_side()
    decoder_cell = DecoderCell(hidden_size=decoder_size)
    if use_helper:
        start = layers.fill_constant_batch_size_like(
            initial_states, shape=[-1], dtype="int64", value=BOS
        )
        helper = layers.GreedyEmbeddingHelper(target_embedding, start, end_token=EOS)
        decoder = layers.BasicDecoder(decoder_cell, helper, output_fn=output_layer)
        output, _, lengths = layers.dynamic_decode(
            decoder,
            inits=initial_states,
            max_step_num=max_length,
            is_test=True,
            return_length=True,
            **memory
        )
        return output.sample_ids, lengths
    tiled = {
        name: layers.BeamSearchDecoder.tile_beam_merge_with_batch(value, beam_size)
        for name, value in sorted(memory.items())
    }
    beam_search_decoder = layers.BeamSearchDecoder(
        cell=decoder_cell,
        start_token=BOS,
        end_token=EOS,
        beam_size=beam_size,
        embedding_fn=target_embedding,
        output_fn=output_layer,
    )
    decoder_output, final_states = layers.dynamic_decode(
        decoder=beam_search_decoder,
        inits=initial_states,
        max_step_num=max_length,
        output_time_major=False,
        **tiled
    )
    return decoder_output, final_states.log_probs


def optimizer_func():
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(clip_norm=5.0))
    lr_decay = layers.learning_rate_scheduler.noam_decay(hidden_dim, 20)
    return fluid.optimizer.Adam(
        learning_rate=lr_decay,
        regularization=fluid.regularizer.L2DecayRegularizer(
            regularization_coeff=1e-4
        ),
    )


def pairs(seed, count):
    """The target is the source backwards."""
    rng = np.random.RandomState(seed)
    for _ in range(count):
        source = rng.randint(3, dict_size, rng.randint(1, 6)).tolist()
        yield source, source[::-1]


def padded(rows):
    longest = max(len(row) for row in rows)
    made = np.full((len(rows), longest), EOS, dtype="int64")
    for i, row in enumerate(rows):
        made[i, : len(row)] = row
    return made, np.array([len(row) for row in rows], dtype="int64")


def inputs_generator(seed, count, is_train=True):
    data = list(pairs(seed, count))
    for begin in range(0, count, batch_size):
        batch = data[begin : begin + batch_size]
        src, src_length = padded([s for s, _ in batch])
        feed = {"src": src, "src_sequence_length": src_length}
        if is_train:
            feed["trg"], feed["trg_sequence_length"] = padded(
                [[BOS] + t for _, t in batch]
            )
            feed["label"] = padded([t + [EOS] for _, t in batch])[0]
        yield feed


def train(exe, use_helper, epochs):
    train_prog, startup_prog = fluid.Program(), fluid.Program()
    with fluid.program_guard(train_prog, startup_prog):
        with fluid.unique_name.guard():
            loss = train_model(use_helper)
            optimizer_func().minimize(loss)
    exe.run(startup_prog)
    rng = np.random.RandomState(11)
    for p in sorted(train_prog.all_parameters(), key=lambda p: p.name):
        value = rng.normal(0, 0.4, p.shape).astype("float32")
        fluid.global_scope().find_var(p.name).get_tensor().set(value, exe.place)
    for epoch in range(epochs):
        for step, feed in enumerate(inputs_generator(epoch, 20)):
            cost = exe.run(train_prog, feed=feed, fetch_list=[loss])[0][0]
            print("epoch: %d, step: %d, loss: %.6f" % (epoch, step, cost))


def infer(exe, use_helper):
    infer_prog, startup_prog = fluid.Program(), fluid.Program()
    with fluid.program_guard(infer_prog, startup_prog):
        with fluid.unique_name.guard():
            fetched = infer_model(use_helper)
    infer_prog = infer_prog.clone(for_test=True)
    for feed in inputs_generator(99, 6, is_train=False):
        ids, more = exe.run(infer_prog, feed=feed, fetch_list=list(fetched))
        for i, length in enumerate(feed["src_sequence_length"]):
            print("source:", feed["src"][i, :length].tolist())
            if use_helper:
                print("  greedy:", ids[i, : more[i]].tolist())
                continue
            for k in range(beam_size):
                hypothesis = ids[i, :, k].tolist()
                if EOS in hypothesis:
                    hypothesis = hypothesis[: hypothesis.index(EOS)]
                print("  %.5f" % more[i, k], hypothesis)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--use_helper", action="store_true")
    args = parser.parse_args()
    executor = fluid.Executor(fluid.CPUPlace())
    train(executor, args.use_helper, args.epochs)
    infer(executor, args.use_helper)
