"""Skip-gram with negative samples from the reader, then analogies by cosine."""
import math

import numpy as np
import paddle.fluid as fluid

DICT, EMB, NEG = 20, 6, 3


def skip_gram_word2vec():
    def embedding(input, name, initializer):
        return fluid.embedding(
            input=input, is_sparse=True, size=[DICT, EMB],
            param_attr=fluid.ParamAttr(name=name, initializer=initializer))

    input_word = fluid.data(name="input_word", shape=[None, 1], dtype='int64')
    true_word = fluid.data(name='true_label', shape=[None, 1], dtype='int64')
    neg_word = fluid.data(name="neg_label", shape=[None, NEG], dtype='int64')
    init_width = 0.5 / EMB
    input_emb = embedding(input_word, 'emb', fluid.initializer.Uniform(
        low=-init_width, high=init_width))
    true_emb_w = embedding(true_word, 'emb_w', fluid.initializer.Constant(value=0.0))
    true_emb_b = fluid.embedding(
        input=true_word, is_sparse=True, size=[DICT, 1],
        param_attr=fluid.ParamAttr(
            name='emb_b', initializer=fluid.initializer.Constant(value=0.0)))
    input_emb = fluid.layers.squeeze(input=input_emb, axes=[1])
    true_emb_w = fluid.layers.squeeze(input=true_emb_w, axes=[1])
    true_emb_b = fluid.layers.squeeze(input=true_emb_b, axes=[1])
    neg_emb_w = embedding(neg_word, 'emb_w', fluid.initializer.Constant(value=0.0))
    neg_emb_w.stop_gradient = False
    neg_emb_b = fluid.layers.reshape(
        fluid.embedding(input=neg_word, is_sparse=True, size=[DICT, 1],
                        param_attr='emb_b'), shape=[-1, NEG])
    true_logits = fluid.layers.elementwise_add(
        fluid.layers.reduce_sum(
            fluid.layers.elementwise_mul(input_emb, true_emb_w), dim=1, keep_dim=True),
        true_emb_b)
    input_emb_re = fluid.layers.reshape(input_emb, shape=[-1, 1, EMB])
    neg_matmul = fluid.layers.matmul(input_emb_re, neg_emb_w, transpose_y=True)
    neg_matmul_re = fluid.layers.reshape(neg_matmul, shape=[-1, NEG])
    neg_logits = fluid.layers.elementwise_add(neg_matmul_re, neg_emb_b)
    label_ones = fluid.layers.fill_constant_batch_size_like(
        true_logits, shape=[-1, 1], value=1.0, dtype='float32')
    label_zeros = fluid.layers.fill_constant_batch_size_like(
        true_logits, shape=[-1, NEG], value=0.0, dtype='float32')
    true_xent = fluid.layers.sigmoid_cross_entropy_with_logits(true_logits, label_ones)
    neg_xent = fluid.layers.sigmoid_cross_entropy_with_logits(neg_logits, label_zeros)
    cost = fluid.layers.elementwise_add(
        fluid.layers.reduce_sum(true_xent, dim=1),
        fluid.layers.reduce_sum(neg_xent, dim=1))
    return fluid.layers.reduce_mean(cost)


def reader(rng, batches, batch_size=16):
    for _ in range(batches):
        word = rng.randint(0, DICT, (batch_size, 1))
        true = (word + rng.choice([-1, 1], (batch_size, 1))) % DICT
        yield (word.astype(np.int), true.astype(np.long),
               rng.randint(0, DICT, (batch_size, NEG)).astype(np.int64))


def similar(inverted=False):
    word = fluid.layers.data(name='a', shape=[1], dtype='int64')
    all_label = fluid.layers.data(
        name='all', shape=[DICT, 1], append_batch_size=False, dtype='int64')
    table = fluid.embedding(all_label, size=[DICT, EMB], param_attr='emb')
    table = fluid.layers.l2_normalize(fluid.layers.squeeze(table, [1]), axis=-1)
    mine = fluid.layers.squeeze(
        fluid.embedding(word, size=[DICT, EMB], param_attr='emb'), [1])
    mine = fluid.layers.l2_normalize(mine, axis=-1)
    dist = fluid.layers.matmul(x=mine, y=table, transpose_y=True)
    return fluid.layers.topk(input=dist, k=3)


def main():
    loss = skip_gram_word2vec()
    rate = fluid.layers.exponential_decay(
        learning_rate=1.0, decay_steps=4, decay_rate=0.9, staircase=True)
    fluid.optimizer.SGD(learning_rate=rate).minimize(loss)
    infer = fluid.Program()
    with fluid.program_guard(infer, fluid.Program()):
        values, indices = similar()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(12)
    for name, scale in (('emb', 0.5), ('emb_w', 0.5)):
        fluid.global_scope().var(name).get_tensor().set(
            (scale * rng.randn(DICT, EMB)).astype('float32'), fluid.CPUPlace())
    for step, (word, true, neg) in enumerate(reader(rng, 10)):
        value = exe.run(feed={'input_word': word, 'true_label': true, 'neg_label': neg},
                        fetch_list=[loss])[0]
        print('step %d loss %.6f speed ok %s' % (step, value, not math.isnan(value)))
    top, which = exe.run(infer, fetch_list=[values, indices], feed={
        'a': np.array([[3], [8]]), 'all': np.arange(DICT).reshape(-1, 1)})
    for row, ids in zip(top, which):
        print(' '.join('%d:%.5f' % pair for pair in zip(ids, row)))


if __name__ == '__main__':
    main()
