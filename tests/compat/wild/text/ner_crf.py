"""Sequence labelling with a CRF over word and mark embeddings."""
import numpy as np
import paddle.fluid as fluid

WORDS, LABELS = 20, 5


def main():
    word = fluid.layers.data('word', shape=[1], dtype='int64', lod_level=1)
    target = fluid.layers.data('target', shape=[1], dtype='int64', lod_level=1)
    emb = fluid.layers.embedding(word, [WORDS, 8], param_attr='emb')
    hidden = fluid.layers.fc(emb, 3 * 6, act='tanh', param_attr='h.w')
    hidden = fluid.layers.dynamic_gru(input=hidden, size=6)
    feature = fluid.layers.fc(hidden, LABELS, param_attr='f.w')
    cost = fluid.layers.linear_chain_crf(
        input=feature, label=target,
        param_attr=fluid.ParamAttr(name='crfw', learning_rate=0.1))
    avg_cost = fluid.layers.mean(cost)
    decode = fluid.layers.crf_decoding(
        input=feature, param_attr=fluid.ParamAttr(name='crfw'))
    fluid.optimizer.SGD(0.05).minimize(avg_cost)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(0)
    for p in fluid.default_main_program().all_parameters():
        fluid.global_scope().find_var(p.name).get_tensor().set(
            rng.uniform(-.2, .2, p.shape).astype('float32'), exe.place)
    feeder = fluid.DataFeeder([word, target], exe.place)
    for step in range(5):
        lines = [rng.randint(0, WORDS, rng.randint(2, 6)) for _ in range(4)]
        batch = [(line.tolist(), (line % LABELS).tolist()) for line in lines]
        out = exe.run(feed=feeder.feed(batch), fetch_list=[avg_cost, decode],
                      return_numpy=False)
        print('step %d cost %.6f' % (step, np.array(out[0])[0]))


if __name__ == '__main__':
    main()
