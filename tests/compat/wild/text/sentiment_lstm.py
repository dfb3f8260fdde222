"""The book's stacked bidirectional LSTM."""
import numpy as np
import paddle.fluid as fluid


def stacked_lstm_net(data, input_dim, class_dim=2, emb_dim=6, hid_dim=8, stacked_num=3):
    emb = fluid.embedding(input=data, size=[input_dim, emb_dim], is_sparse=True)
    fc1 = fluid.layers.fc(input=emb, size=hid_dim)
    lstm1, cell1 = fluid.layers.dynamic_lstm(input=fc1, size=hid_dim)
    inputs = [fc1, lstm1]
    for i in range(2, stacked_num + 1):
        fc = fluid.layers.fc(input=inputs, size=hid_dim)
        lstm, cell = fluid.layers.dynamic_lstm(
            input=fc, size=hid_dim, is_reverse=(i % 2) == 0)
        inputs = [fc, lstm]
    fc_last = fluid.layers.sequence_pool(input=inputs[0], pool_type='max')
    lstm_last = fluid.layers.sequence_pool(input=inputs[1], pool_type='max')
    return fluid.layers.fc(input=[fc_last, lstm_last], size=class_dim, act='softmax')


def main():
    data = fluid.data(name="words", shape=[None], dtype="int64", lod_level=1)
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    prediction = stacked_lstm_net(data, 30)
    cost = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
    fluid.optimizer.Adagrad(learning_rate=0.02).minimize(cost)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(2)
    for p in fluid.default_main_program().all_parameters():
        fluid.global_scope().find_var(p.name).get_tensor().set(
            rng.uniform(-.2, .2, p.shape).astype('float32'), exe.place)
    for step in range(4):
        lens = rng.randint(2, 7, 4).tolist()
        words = rng.randint(0, 30, sum(lens)).astype('int64')
        feed = {'words': fluid.create_lod_tensor(words, [lens], exe.place),
                'label': rng.randint(0, 2, (4, 1)).astype('int64')}
        print('step %d cost %.6f' % (step, exe.run(feed=feed, fetch_list=[cost])[0]))


if __name__ == '__main__':
    main()
