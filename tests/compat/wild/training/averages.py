"""ExponentialMovingAverage, ModelAverage and Lookahead around the same regression."""
import numpy as np
import paddle.fluid as fluid


def build(lr):
    x = fluid.data(name='x', shape=[None, 5], dtype='float32')
    y = fluid.data(name='y', shape=[None, 1], dtype='float32')
    init = fluid.initializer.NumpyArrayInitializer(
        np.linspace(-1, 1, 20).reshape(5, 4).astype('float32'))
    hidden = fluid.layers.fc(
        x, 4, act='tanh', param_attr=fluid.ParamAttr(name='w1', initializer=init))
    pred = fluid.layers.fc(
        hidden, 1, param_attr=fluid.ParamAttr(
            name='w2', initializer=fluid.initializer.Constant(0.25), learning_rate=2.0),
        bias_attr=False)
    loss = fluid.layers.reduce_mean(fluid.layers.square_error_cost(pred, y))
    return loss


def batches(n, rng):
    for _ in range(n):
        x = rng.uniform(-1, 1, (10, 5)).astype('float32')
        yield {'x': x, 'y': (x.sum(1, keepdims=True) > 0).astype('float32')}


def session(function):
    """Run in programs, names and a scope of its own."""
    def wrapped():
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard(), \
                fluid.scope_guard(fluid.Scope()):
            print('--', function.__name__)
            function(fluid.Executor(fluid.CPUPlace()), main, startup,
                     np.random.RandomState(0))
    return wrapped


@session
def exponential(exe, main, startup, rng):
    loss = build(0.1)
    test = main.clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    steps = fluid.layers.learning_rate_scheduler._decay_step_counter()
    ema = fluid.optimizer.ExponentialMovingAverage(0.9, thres_steps=steps)
    ema.update()
    exe.run(startup)
    for feed in batches(8, rng):
        print('%.6f' % exe.run(main, feed=feed, fetch_list=[loss])[0])
    probe = next(batches(1, rng))
    print('raw %.6f' % exe.run(test, feed=probe, fetch_list=[loss])[0])
    with ema.apply(exe):
        print('averaged %.6f' % exe.run(test, feed=probe, fetch_list=[loss])[0])
    print('restored %.6f' % exe.run(test, feed=probe, fetch_list=[loss])[0])


@session
def model_average(exe, main, startup, rng):
    loss = build(0.1)
    test = main.clone(for_test=True)
    optimizer = fluid.optimizer.DecayedAdagrad(0.1, decay=0.9)
    optimizer.minimize(loss)
    average = fluid.optimizer.ModelAverage(
        0.5, min_average_window=2, max_average_window=6)
    exe.run(startup)
    for feed in batches(9, rng):
        print('%.6f' % exe.run(main, feed=feed, fetch_list=[loss])[0])
    probe = next(batches(1, rng))
    with average.apply(exe, need_restore=False):
        print('averaged %.6f' % exe.run(test, feed=probe, fetch_list=[loss])[0])
    print('kept %.6f' % exe.run(test, feed=probe, fetch_list=[loss])[0])
    average.restore(exe)
    print('raw %.6f' % exe.run(test, feed=probe, fetch_list=[loss])[0])


@session
def lookahead(exe, main, startup, rng):
    loss = build(0.1)
    sgd = fluid.optimizer.Momentum(0.1, 0.5)
    optimizer = fluid.optimizer.LookaheadOptimizer(sgd, alpha=0.5, k=3)
    optimizer.minimize(loss)
    exe.run(startup)
    for feed in batches(9, rng):
        print('%.6f' % exe.run(main, feed=feed, fetch_list=[loss])[0])


if __name__ == '__main__':
    for run in (exponential, model_average, lookahead):
        run()
