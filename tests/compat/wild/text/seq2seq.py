"""Attention over an encoder, cells from basic ops, and a while_loop that decodes."""
import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers

VOCAB, EMB, HID, LEN, BATCH = 12, 5, 6, 4, 5
START, END = 0, 1


def gru_cell(x, h, name):
    both = layers.concat([x, h], axis=1)
    gates = layers.fc(both, 2 * HID, act='sigmoid', param_attr=name + '_g_w',
                      bias_attr=name + '_g_b')
    update, reset = layers.split(gates, 2, dim=1)
    new = layers.fc(layers.concat([x, reset * h], axis=1), HID, act='tanh',
                    param_attr=name + '_n_w', bias_attr=name + '_n_b')
    return update * h + (1.0 - update) * new


def embed(ids, name):
    return fluid.embedding(ids, size=[VOCAB, EMB],
                           param_attr=fluid.ParamAttr(name=name, learning_rate=0.5))


def encode(src):
    emb = embed(src, 'src_emb')
    state = layers.fill_constant_batch_size_like(src, [-1, HID], 'float32', 0.0)
    states = []
    for t in range(LEN):
        state = gru_cell(layers.squeeze(layers.slice(emb, [1], [t], [t + 1]), [1]),
                         state, 'enc')
        states.append(state)
    return layers.stack(states, axis=1), state


def attend(memory, state):
    query = layers.fc(state, HID, bias_attr=False, param_attr='att_w')
    scores = layers.matmul(memory, layers.unsqueeze(query, [2]))
    weights = layers.softmax(layers.squeeze(scores, [2]))
    return layers.reduce_sum(layers.elementwise_mul(memory, weights, axis=0), dim=1)


def step(word_emb, state, memory):
    context = attend(memory, state)
    state = gru_cell(layers.concat([word_emb, context], 1), state, 'dec')
    logits = layers.fc(layers.dropout(state, 0.0), VOCAB, param_attr='out_w',
                       bias_attr='out_b')
    return logits, state


def training():
    src = fluid.data('src', [None, LEN], 'int64')
    trg = fluid.data('trg', [None, LEN + 1], 'int64')
    memory, state = encode(src)
    emb = embed(trg, 'trg_emb')
    losses = []
    for t in range(LEN):
        word = layers.squeeze(layers.slice(emb, [1], [t], [t + 1]), [1])
        logits, state = step(word, state, memory)
        label = layers.slice(trg, [1], [t + 1], [t + 2])
        losses.append(layers.softmax_with_cross_entropy(logits, label))
    return layers.reduce_mean(layers.concat(losses, axis=1))


def greedy():
    src = fluid.data('src', [None, LEN], 'int64')
    memory, state = encode(src)
    word = layers.fill_constant_batch_size_like(src, [-1, 1], 'int64', START)
    i = layers.fill_constant([1], 'int64', 0)
    limit = layers.fill_constant([1], 'int64', LEN)
    words = layers.fill_constant_batch_size_like(src, [-1, 1], 'int64', START)

    def cond(i, word, state, words):
        return layers.less_than(i, limit)

    def body(i, word, state, words):
        emb = layers.squeeze(embed(word, 'trg_emb'), [1])
        logits, state = step(emb, state, memory)
        word = layers.unsqueeze(layers.argmax(logits, axis=-1), [1])
        return [i + 1, word, state, layers.concat([words, word], axis=1)]

    return layers.while_loop(cond, body, [i, word, state, words])[3]


def batch(rng):
    src = rng.randint(2, VOCAB, (BATCH, LEN)).astype('int64')
    return {'src': src, 'trg': np.concatenate(
        [np.full((BATCH, 1), START), src[:, ::-1]], axis=1).astype('int64')}


def main():
    train_prog, infer_prog, startup = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(train_prog, startup), fluid.unique_name.guard():
        loss = training()
        fluid.optimizer.Adam(0.03, grad_clip=fluid.clip.GradientClipByGlobalNorm(
            5.0)).minimize(loss)
    with fluid.program_guard(infer_prog, fluid.Program()), fluid.unique_name.guard():
        words = greedy()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    rng = np.random.RandomState(30)
    for param in train_prog.all_parameters():
        fluid.global_scope().find_var(param.name).get_tensor().set(
            rng.uniform(-.3, .3, param.shape).astype('float32'), fluid.CPUPlace())
    for i in range(12):
        value = exe.run(train_prog, feed=batch(rng), fetch_list=[loss.name])[0]
        print('step %d loss %.6f' % (i, value))
    src = batch(rng)['src']
    for row, out in zip(src, exe.run(infer_prog, feed={'src': src}, fetch_list=[words])[0]):
        print(' '.join(map(str, row)), '->', ' '.join(map(str, out)))


if __name__ == '__main__':
    main()
