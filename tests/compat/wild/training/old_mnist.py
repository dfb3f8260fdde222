"""The API of 2018: py_reader, read_file, double_buffer, a ParallelExecutor for each of
training and testing with share_vars_from, parameter names found by their suffix."""
import numpy
import paddle
import paddle.fluid as fluid
from paddle.fluid.executor import Executor, global_scope

BATCH = 6


def digits(seed, n):
    def reader():
        rnd = numpy.random.RandomState(seed)
        for _ in xrange(n):
            kind = rnd.randint(10)
            img = rnd.rand(64).astype(numpy.float)
            img[kind * 6:kind * 6 + 4] += 1.0
            yield img.astype('float32') / 2 - .5, int(kind)
    return reader


try:
    xrange
except NameError:
    xrange = range


def normalized(reader):
    def mapper(sample):
        img, label = sample
        return img - img.mean(), label
    return paddle.reader.xmap_readers(mapper, reader, 1, 4, order=True)


def network(is_train, prefix):
    reader = fluid.layers.py_reader(
        capacity=4, shapes=[(-1, 64), (-1, 1)], dtypes=['float32', 'int64'],
        lod_levels=[0, 0], name=prefix + '_reader', use_double_buffer=True)
    img, label = fluid.layers.read_file(reader)
    hidden = img
    for i in xrange(2):
        hidden = fluid.layers.fc(
            input=hidden, size=20, act='tanh', param_attr='fc%d.w' % i,
            bias_attr=fluid.ParamAttr(
                name='fc%d.b' % i, initializer=fluid.initializer.Constant(0.1)))
    prediction = fluid.layers.fc(
        input=hidden, size=10, act='softmax', param_attr='out.w', bias_attr='out.b')
    loss = fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=label))
    acc = fluid.layers.accuracy(input=prediction, label=label, k=2)
    return reader, loss, acc


def run_pass(exe, reader, names):
    reader.start()
    result = []
    try:
        while True:
            result.append([numpy.asarray(v).mean() for v in exe.run(fetch_list=names)])
    except fluid.core.EOFException:
        reader.reset()
    return numpy.array(result)


def main():
    train_prog, test_prog, startup = (fluid.Program() for _ in range(3))
    with fluid.program_guard(train_prog, startup):
        with fluid.unique_name.guard():
            reader, loss, acc = network(True, 'train')
            fluid.optimizer.Momentum(
                learning_rate=fluid.layers.piecewise_decay([4, 8], [0.2, 0.1, 0.05]),
                momentum=0.9).minimize(loss)
    with fluid.program_guard(test_prog, startup):
        with fluid.unique_name.guard():
            test_reader, test_loss, test_acc = network(False, 'test')
    test_prog = test_prog.clone(for_test=True)
    place = fluid.CPUPlace()
    Executor(place).run(startup)
    rnd = numpy.random.RandomState(1)
    for param in train_prog.all_parameters():
        if param.name.endswith('.w'):
            tensor = global_scope().find_var(param.name).get_tensor()
            tensor.set(rnd.normal(0, 0.2, param.shape).astype('float32'), place)

    train_exe = fluid.ParallelExecutor(
        use_cuda=False, loss_name=loss.name, main_program=train_prog)
    test_exe = fluid.ParallelExecutor(
        use_cuda=False, main_program=test_prog, share_vars_from=train_exe)
    reader.decorate_paddle_reader(paddle.batch(normalized(digits(2, 30)), BATCH))
    test_reader.decorate_paddle_reader(paddle.batch(normalized(digits(3, 12)), BATCH))
    for pass_id in xrange(3):
        values = run_pass(train_exe, reader, [loss.name, acc.name])
        for batch_id in xrange(len(values)):
            print("pass %d batch %d loss %.6f acc %.4f" % (
                (pass_id, batch_id) + tuple(values[batch_id])))
        print("test loss %.6f acc %.4f" % tuple(
            run_pass(test_exe, test_reader, [test_loss.name, test_acc.name]).mean(0)))


if __name__ == '__main__':
    main()
