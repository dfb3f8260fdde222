"""Text classification the ERNIE way: padded ids with lengths, py_reader, metrics."""

import argparse

import numpy as np
import paddle.fluid as fluid

VOCAB, MAX_LEN, CLASSES = 40, 8, 3


def textcnn(ids, seq_len):
    mask = fluid.layers.sequence_mask(seq_len, maxlen=MAX_LEN, dtype="float32")
    emb = fluid.embedding(ids, size=[VOCAB, 8], padding_idx=0, param_attr="emb_w")
    emb = emb * fluid.layers.unsqueeze(mask, axes=[2])
    emb = fluid.layers.unsqueeze(emb, axes=[1])
    outs = []
    for size in (1, 2, 3):
        conv = fluid.layers.conv2d(
            emb, num_filters=4, filter_size=[size, 8], act="relu"
        )
        pool = fluid.layers.pool2d(
            conv, pool_size=[MAX_LEN - size + 1, 1], pool_type="max"
        )
        outs.append(fluid.layers.reshape(pool, [-1, 4]))
    return fluid.layers.concat(outs, axis=-1)


def lod_bow(ids, seq_len):
    unpad = fluid.layers.sequence_unpad(ids, length=seq_len)
    emb = fluid.embedding(unpad, size=[VOCAB, 8], param_attr="emb_w")
    first = fluid.layers.sequence_first_step(emb)
    both = [fluid.layers.sequence_pool(emb, t) for t in ("max", "average")]
    return fluid.layers.tanh(fluid.layers.concat(both + [first], axis=1))


def attention(ids, seq_len):
    emb = fluid.embedding(ids, size=[VOCAB, 8], param_attr="emb_w")
    score = fluid.layers.fc(emb, 1, num_flatten_dims=2, act="tanh")
    score = fluid.layers.squeeze(score, [2])
    mask = fluid.layers.sequence_mask(seq_len, maxlen=MAX_LEN, dtype="float32")
    weights = fluid.layers.softmax(score + (1.0 - mask) * -1e9)
    return fluid.layers.reduce_sum(
        fluid.layers.elementwise_mul(emb, weights, axis=0), dim=1
    )


NETS = {"textcnn": textcnn, "bow": lod_bow, "attention": attention}


def create_model(net, is_prediction=False, pyreader_name="train"):
    ids = fluid.data(name="src_ids", shape=[None, MAX_LEN], dtype="int64")
    seq_len = fluid.data(name="seq_lens", shape=[None], dtype="int64")
    labels = fluid.data(name="labels", shape=[None, 1], dtype="int64")
    pyreader = fluid.io.PyReader(
        feed_list=[ids, seq_len, labels], capacity=8, iterable=False
    )
    feats = NETS[net](ids, seq_len)
    logits = fluid.layers.fc(feats, CLASSES, param_attr="cls_w", bias_attr="cls_b")
    ce, probs = fluid.layers.softmax_with_cross_entropy(
        logits=logits, label=labels, return_softmax=True
    )
    loss = fluid.layers.mean(x=ce)
    num_seqs = fluid.layers.create_tensor(dtype="int64")
    accuracy = fluid.layers.accuracy(input=probs, label=labels, total=num_seqs)
    return pyreader, loss, probs, accuracy, num_seqs, labels


def examples(seed, count, batch_size):
    rng = np.random.RandomState(seed)
    for _ in range(count):
        label = rng.randint(0, CLASSES, (batch_size, 1))
        lens = rng.randint(3, MAX_LEN + 1, batch_size)
        ids = rng.randint(1, VOCAB, (batch_size, MAX_LEN))
        ids[:, 0] = 1 + label[:, 0]
        ids[np.arange(MAX_LEN) >= lens[:, None]] = 0
        yield ids.astype("int64"), lens.astype("int64"), label.astype("int64")


def evaluate(exe, program, reader, fetch):
    reader.start()
    total_cost, total_acc, total_num_seqs = [], [], []
    while True:
        try:
            np_loss, np_acc, np_num_seqs = exe.run(program=program, fetch_list=fetch)
            total_cost.extend(np_loss * np_num_seqs)
            total_acc.extend(np_acc * np_num_seqs)
            total_num_seqs.extend(np_num_seqs)
        except fluid.core.EOFException:
            reader.reset()
            break
    return np.sum(total_cost) / np.sum(total_num_seqs), np.sum(total_acc) / np.sum(
        total_num_seqs
    )


def main(net):
    startup = fluid.Program()
    train_program, test_prog = fluid.Program(), fluid.Program()
    with fluid.program_guard(train_program, startup), fluid.unique_name.guard():
        reader, loss, probs, acc, num, labels = create_model(net)
        clip = fluid.clip.GradientClipByValue(max=0.5, min=-0.5)
        fluid.optimizer.AdamOptimizer(0.02, grad_clip=clip).minimize(loss)
    with fluid.program_guard(test_prog, startup), fluid.unique_name.guard():
        test_reader, t_loss, t_probs, t_acc, t_num, _ = create_model(net)
    test_prog = test_prog.clone(for_test=True)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    rng = np.random.RandomState(2)
    for p in train_program.all_parameters():
        fluid.global_scope().find_var(p.name).get_tensor().set(
            rng.uniform(-0.3, 0.3, p.shape).astype(np.float32), exe.place
        )
    test_reader.decorate_batch_generator(lambda: examples(1, 3, 4))
    reader.decorate_batch_generator(lambda: examples(0, 6, 4))
    composite = fluid.metrics.CompositeMetric()
    composite.add_metric(fluid.metrics.Precision())
    composite.add_metric(fluid.metrics.Recall())
    mean_acc = fluid.metrics.Accuracy()
    for epoch in range(2):
        reader.start()
        steps = 0
        try:
            while True:
                out = exe.run(train_program, fetch_list=[loss, acc, num, probs, labels])
                mean_acc.update(value=out[1], weight=out[2])
                composite.update(
                    preds=(out[3][:, 1:2] > 0.4).astype("float32"),
                    labels=(out[4] == 1).astype("int64"),
                )
                steps += 1
                print(
                    "epoch %d step %d loss %.6f acc %.3f"
                    % (epoch, steps, out[0], out[1])
                )
        except fluid.core.EOFException:
            reader.reset()
        print(
            "train acc %.4f precision %.4f recall %.4f"
            % ((mean_acc.eval(),) + tuple(composite.eval()))
        )
        mean_acc.reset()
        print(
            "dev loss %.6f acc %.4f"
            % evaluate(
                exe, test_prog, test_reader, [t_loss.name, t_acc.name, t_num.name]
            )
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--net", choices=sorted(NETS), default="textcnn")
    main(parser.parse_args().net)
