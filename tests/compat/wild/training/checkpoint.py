"""Train, save in the middle, be 'killed', and go on from the checkpoint."""
import os
import pickle
import shutil
import tempfile

import numpy as np
import paddle
import paddle.fluid as fluid


def network():
    img = fluid.layers.data(name='img', shape=[1, 8, 8], dtype='float32')
    label = fluid.layers.data(name='label', shape=[1], dtype='int64')
    conv = fluid.nets.img_conv_group(
        input=img, conv_num_filter=[4, 4], pool_size=2, pool_stride=2, conv_padding=1,
        conv_filter_size=3, conv_act='relu', conv_with_batchnorm=True,
        conv_batchnorm_drop_rate=[0.0, 0.0], pool_type='max')
    pred = fluid.layers.fc(input=conv, size=3, act='softmax')
    cost = fluid.layers.cross_entropy(input=pred, label=label)
    return img, label, pred, fluid.layers.mean(cost)


def reader(seed):
    def impl():
        rng = np.random.RandomState(seed)
        for _ in range(16):
            kind = rng.randint(3)
            img = 0.3 * rng.rand(1, 8, 8)
            img[0, 2 * kind] += 1
            yield img.astype('float32'), kind

    return impl


class Trainer:
    def __init__(self, folder):
        self.folder = folder
        self.main, self.startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(self.main, self.startup):
            with fluid.unique_name.guard():
                img, label, self.pred, self.loss = network()
                self.feeds = [img, label]
                lr = fluid.layers.exponential_decay(0.05, 2, 0.8, staircase=True)
                self.lr = lr
                self.test = self.main.clone(for_test=True)
                fluid.optimizer.Momentum(lr, 0.9).minimize(self.loss)
        self.exe = fluid.Executor(fluid.CPUPlace())
        self.scope = fluid.core.Scope()
        with fluid.scope_guard(self.scope):
            self.exe.run(self.startup)

    def initialize(self):
        rng = np.random.RandomState(0)
        for p in self.main.all_parameters():
            if len(p.shape) > 1:
                self.scope.find_var(p.name).get_tensor().set(
                    rng.randn(*p.shape).astype('float32') * 0.2, fluid.CPUPlace())

    def epoch(self, number):
        with fluid.scope_guard(self.scope):
            feeder = fluid.DataFeeder(self.feeds, fluid.CPUPlace(), self.main)
            for data in paddle.batch(reader(number), 8)():
                loss, lr = self.exe.run(self.main, feed=feeder.feed(data),
                                        fetch_list=[self.loss, self.lr])
                print('epoch %d loss %.6f lr %.5f' % (number, loss, lr))

    def save(self, epoch):
        with fluid.scope_guard(self.scope):
            path = os.path.join(self.folder, str(epoch))
            fluid.io.save_persistables(self.exe, path, self.main, filename='all')
            with open(os.path.join(path, 'meta'), 'wb') as f:
                pickle.dump({'epoch': epoch}, f, protocol=2)

    def resume(self):
        last = sorted(os.listdir(self.folder), key=int)[-1]
        with open(os.path.join(self.folder, last, 'meta'), 'rb') as f:
            meta = pickle.load(f)
        with fluid.scope_guard(self.scope):
            fluid.io.load_persistables(
                self.exe, os.path.join(self.folder, last), self.main, filename='all')
        return meta['epoch'] + 1


def main():
    folder = tempfile.mkdtemp()
    first = Trainer(os.path.join(folder, 'ckpt'))
    first.initialize()
    for epoch in range(2):
        first.epoch(epoch)
        first.save(epoch)
    first.epoch(2)

    second = Trainer(os.path.join(folder, 'ckpt'))
    start = second.resume()
    print('resumed at epoch %d' % start)
    second.epoch(start)
    counter = second.scope.find_var('@LR_DECAY_COUNTER@').get_tensor()
    print('steps', np.array(counter).tolist())

    # the newer way to save: .pdparams and .pdopt
    with fluid.scope_guard(second.scope):
        fluid.save(second.main, os.path.join(folder, 'new', 'model'))
    print(sorted(os.listdir(os.path.join(folder, 'new'))))
    third = Trainer(None)
    with fluid.scope_guard(third.scope):
        fluid.load(third.main, os.path.join(folder, 'new', 'model'), third.exe)
        state = fluid.io.load_program_state(os.path.join(folder, 'new', 'model'))
        print('%d values, %d parameters' % (
            len(state), len(fluid.io.get_program_parameter(third.main))))
    third.epoch(3)
    second.epoch(3)

    # what a server needs of it
    with fluid.scope_guard(third.scope):
        fluid.io.save_inference_model(
            os.path.join(folder, 'infer'), ['img'], [third.pred], third.exe, third.main)
    with fluid.scope_guard(fluid.Scope()):
        infer, names, targets = fluid.io.load_inference_model(
            os.path.join(folder, 'infer'), third.exe)
        pictures = np.array([p for p, _ in reader(7)()]).reshape(-1, 1, 8, 8)
        probs = third.exe.run(infer, feed={names[0]: pictures}, fetch_list=targets)[0]
        print('inference %s' % ' '.join('%.5f' % v for v in probs.max(1)[:6]))
    shutil.rmtree(folder)


if __name__ == '__main__':
    main()
