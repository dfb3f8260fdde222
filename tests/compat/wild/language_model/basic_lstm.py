"""A language model over `fluid.contrib.layers.basic_lstm` or `basic_gru`.

States go from batch to batch through the feed; perplexity on held-out words; the next
words by feeding the last one again.
"""
from __future__ import print_function

import argparse

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers
from paddle.fluid.contrib.layers import basic_gru, basic_lstm


def parse_args():
    parser = argparse.ArgumentParser("language model")
    parser.add_argument("--cell", choices=["lstm", "gru"], default="lstm")
    parser.add_argument("--num_layers", type=int, default=2)
    parser.add_argument("--hidden_size", type=int, default=8)
    parser.add_argument("--num_steps", type=int, default=6)
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--vocab_size", type=int, default=20)
    parser.add_argument("--max_epoch", type=int, default=3)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--max_grad_norm", type=float, default=2.0)
    parser.add_argument("--init_scale", type=float, default=0.2)
    return parser.parse_args()


def lm_model(args):
    shape = [args.num_layers, None, args.hidden_size]
    x = fluid.data(name="x", shape=[None, None], dtype="int64")
    y = fluid.data(name="y", shape=[None, None], dtype="int64")
    init_hidden = fluid.data(name="init_hidden", shape=shape, dtype="float32")
    init_cell = fluid.data(name="init_cell", shape=shape, dtype="float32")
    uniform = fluid.initializer.UniformInitializer(-args.init_scale, args.init_scale)
    x_emb = fluid.embedding(
        input=x,
        size=[args.vocab_size, args.hidden_size],
        dtype="float32",
        is_sparse=False,
        param_attr=fluid.ParamAttr(name="embedding_para", initializer=uniform),
    )
    common = dict(
        num_layers=args.num_layers,
        dropout_prob=args.dropout,
        param_attr=fluid.ParamAttr(name="rnn_w", initializer=uniform),
        bias_attr=fluid.ParamAttr(
            name="rnn_b", initializer=fluid.initializer.Constant(0.0)
        ),
    )
    if args.cell == "lstm":
        rnn_out, last_hidden, last_cell = basic_lstm(
            x_emb, init_hidden, init_cell, args.hidden_size, forget_bias=0.0, **common
        )
    else:
        rnn_out, last_hidden = basic_gru(
            x_emb, init_hidden, args.hidden_size, **common
        )
        last_cell = layers.assign(init_cell)
    projection = layers.fc(
        rnn_out,
        size=args.vocab_size,
        num_flatten_dims=2,
        param_attr=fluid.ParamAttr(name="softmax_weight", initializer=uniform),
        bias_attr=fluid.ParamAttr(name="softmax_bias", initializer=uniform),
    )
    loss = layers.softmax_with_cross_entropy(
        logits=projection, label=layers.unsqueeze(y, [2]), soft_label=False
    )
    loss = layers.reduce_sum(layers.reduce_mean(loss, dim=[0]))
    best = layers.argmax(projection, axis=-1)
    return loss, last_hidden, last_cell, best


def corpus(length, vocab_size, seed):
    """Words that mostly follow on their predecessors."""
    rng = np.random.RandomState(seed)
    words = [0]
    for _ in range(length - 1):
        words.append((words[-1] + 1 + 5 * int(rng.rand() < 0.15)) % vocab_size)
    return np.array(words, dtype="int64")


def batches(words, args):
    rows = len(words) // args.batch_size
    data = words[: rows * args.batch_size].reshape(args.batch_size, rows)
    for begin in range(0, rows - 1, args.num_steps):
        end = min(begin + args.num_steps, rows - 1)
        yield data[:, begin:end], data[:, begin + 1 : end + 1]


def main():
    args = parse_args()
    main_program, startup_program = fluid.Program(), fluid.Program()
    with fluid.program_guard(main_program, startup_program):
        with fluid.unique_name.guard():
            loss, last_hidden, last_cell, best = lm_model(args)
            test_program = main_program.clone(for_test=True)
            optimizer = fluid.optimizer.AdamOptimizer(
                learning_rate=0.02,
                grad_clip=fluid.clip.GradientClipByGlobalNorm(args.max_grad_norm),
            )
            optimizer.minimize(loss)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(startup_program)
    rng = np.random.RandomState(123)
    for param in sorted(main_program.all_parameters(), key=lambda p: p.name):
        value = rng.uniform(-args.init_scale, args.init_scale, param.shape)
        tensor = fluid.global_scope().find_var(param.name).get_tensor()
        tensor.set(value.astype("float32"), place)
        print(param.name, param.shape)
    fetched = [loss, last_hidden, last_cell, best]

    def zeros(rows):
        shape = (args.num_layers, rows, args.hidden_size)
        return np.zeros(shape, "float32"), np.zeros(shape, "float32")

    def run_epoch(program, words):
        total, steps = 0.0, 0
        hidden, cell = zeros(args.batch_size)
        for x, y in batches(words, args):
            feed = {"x": x, "y": y, "init_hidden": hidden, "init_cell": cell}
            cost, hidden, cell, _ = exe.run(program, feed=feed, fetch_list=fetched)
            total += cost[0]
            steps += x.shape[1]
        return np.exp(total / steps)

    train_words = corpus(200, args.vocab_size, seed=1)
    valid_words = corpus(80, args.vocab_size, seed=2)
    for epoch in range(args.max_epoch):
        train_ppl = run_epoch(main_program, train_words)
        valid_ppl = run_epoch(test_program, valid_words)
        print("epoch %d train ppl %.5f valid ppl %.5f" % (epoch, train_ppl, valid_ppl))

    hidden, cell = zeros(1)
    word, said = np.array([[3]], "int64"), [3]
    for _ in range(8):
        feed = {"x": word, "y": word, "init_hidden": hidden, "init_cell": cell}
        _, hidden, cell, word = exe.run(test_program, feed=feed, fetch_list=fetched)
        said.append(int(word[0, 0]))
    print("said", said)


if __name__ == "__main__":
    main()
