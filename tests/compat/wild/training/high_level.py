"""A Trainer / Inferencer pair as in the book's contrib API, with events and readers."""
import os
import shutil
import tempfile

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid import core, framework, io, unique_name
from paddle.fluid.executor import Executor


class BeginEpochEvent(object):
    def __init__(self, epoch_id):
        self.epoch = epoch_id


class EndStepEvent(object):
    def __init__(self, epoch_id, step_id, metrics):
        self.epoch, self.step, self.metrics = epoch_id, step_id, metrics


class Trainer(object):
    def __init__(self, train_func, optimizer_func, place=None):
        self.scope = core.Scope()
        self.startup_program = framework.Program()
        self.train_program = framework.Program()
        with framework.program_guard(self.train_program, self.startup_program):
            self.train_func_outputs = train_func()
            self.test_program = self.train_program.clone(for_test=True)
            optimizer_func().minimize(self.train_func_outputs[0])
        self.place = place or core.CPUPlace()
        with fluid.scope_guard(self.scope):
            Executor(self.place).run(self.startup_program)

    def _feeder(self, feed_order):
        block = self.train_program.global_block()
        return fluid.DataFeeder([block.var(n) for n in feed_order], self.place)

    def train(self, num_epochs, event_handler, reader, feed_order):
        with fluid.scope_guard(self.scope):
            exe, feeder = Executor(self.place), self._feeder(feed_order)
            for epoch_id in range(num_epochs):
                event_handler(BeginEpochEvent(epoch_id))
                for step_id, data in enumerate(reader()):
                    metrics = exe.run(
                        self.train_program, feed=feeder.feed(data),
                        fetch_list=[var.name for var in self.train_func_outputs])
                    event_handler(EndStepEvent(epoch_id, step_id, metrics))

    def test(self, reader, feed_order):
        with fluid.scope_guard(self.scope):
            exe, feeder = Executor(self.place), self._feeder(feed_order)
            total, count = [0.0] * len(self.train_func_outputs), 0
            for data in reader():
                outs = exe.run(self.test_program, feed=feeder.feed(data),
                               fetch_list=self.train_func_outputs)
                total = [t + o[0] for t, o in zip(total, outs)]
                count += 1
            return [t / count for t in total]

    def save_params(self, param_path):
        with fluid.scope_guard(self.scope):
            io.save_params(Executor(self.place), dirname=param_path,
                           main_program=self.train_program)


class Inferencer(object):
    def __init__(self, infer_func, param_path, place=None):
        self.scope = core.Scope()
        self.inference_program = framework.Program()
        with framework.program_guard(self.inference_program):
            with unique_name.guard():
                self.predict_var = infer_func()
        self.exe = Executor(place or core.CPUPlace())
        with fluid.scope_guard(self.scope):
            io.load_params(self.exe, param_path, self.inference_program)
        self.inference_program = self.inference_program.clone(for_test=True)

    def infer(self, inputs, return_numpy=True):
        with fluid.scope_guard(self.scope):
            return self.exe.run(self.inference_program, feed=inputs,
                                fetch_list=[self.predict_var], return_numpy=return_numpy)


def inference_program():
    x = fluid.layers.data(name='x', shape=[13], dtype='float32')
    hidden = fluid.layers.fc(
        input=x, size=8, act='stanh', param_attr=fluid.ParamAttr(
            initializer=fluid.initializer.NumpyArrayInitializer(
                np.random.RandomState(0).randn(13, 8).astype('float32') * 0.3)))
    return fluid.layers.fc(
        input=hidden, size=1, act=None,
        param_attr=fluid.initializer.Constant(0.1))


def train_program():
    y = fluid.layers.data(name='y', shape=[1], dtype='float32')
    y_predict = inference_program()
    loss = fluid.layers.huber_loss(input=y_predict, label=y, delta=1.0)
    return [fluid.layers.mean(loss), fluid.layers.reduce_max(loss)]


def houses(seed):
    def features():
        rng = np.random.RandomState(seed)
        for _ in range(20):
            yield rng.randn(13).astype('float32')

    def prices():
        for x in features():
            yield np.array([x[:3].sum()], 'float32')

    return paddle.reader.compose(features, prices)


def main():
    with unique_name.guard():
        trainer = Trainer(train_program, lambda: fluid.optimizer.Adadelta(
            learning_rate=0.5, epsilon=1e-4, rho=0.9))
    params = os.path.join(tempfile.mkdtemp(), 'params')
    train_reader = paddle.batch(
        paddle.reader.chain(paddle.reader.cache(houses(1)), houses(2)), batch_size=10)
    test_reader = paddle.batch(houses(3), batch_size=20)
    order = ['x', 'y']

    def event_handler(event):
        if isinstance(event, EndStepEvent):
            print('epoch %d step %d cost %.6f worst %.5f' % (
                (event.epoch, event.step) + tuple(m[0] for m in event.metrics)))
            if event.step == 3:
                print('test cost %.6f worst %.5f' % tuple(trainer.test(test_reader, order)))
                trainer.save_params(params)
        elif isinstance(event, BeginEpochEvent):
            print('epoch %d begins' % event.epoch)

    trainer.train(2, event_handler, train_reader, order)
    print(sorted(os.listdir(params)))
    inferencer = Inferencer(inference_program, params)
    batch = np.array([x for x, _ in houses(4)()])
    print('infer ' + ' '.join('%.5f' % v for v in inferencer.infer({'x': batch})[0][:5, 0]))
    shutil.rmtree(os.path.dirname(params))


if __name__ == '__main__':
    main()
