"""Linear regression on housing-like data, in the style of the 1.x tutorial."""

from __future__ import print_function

import numpy
import paddle
import paddle.fluid as fluid


def houses(count, seed):
    """A reader of (13 features, price)."""
    random = numpy.random.RandomState(seed)
    weights = numpy.random.RandomState(7).randn(13)

    def reader():
        for _ in range(count):
            features = random.randn(13)
            price = features.dot(weights) + 3.0 + 0.1 * random.randn()
            yield features.astype("float32"), numpy.array([price]).astype("float32")

    return reader


def set_parameters(program, place, seed=0):
    """Give every parameter values that do not depend on the system."""
    random = numpy.random.RandomState(seed)
    for param in sorted(program.all_parameters(), key=lambda p: p.name):
        value = random.uniform(-0.1, 0.1, param.shape).astype("float32")
        fluid.global_scope().find_var(param.name).get_tensor().set(value, place)


def main():
    use_cuda = fluid.core.is_compiled_with_cuda()
    place = fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace()
    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    y_predict = fluid.layers.fc(input=x, size=1, act=None)

    main_program = fluid.default_main_program()
    startup_program = fluid.default_startup_program()

    cost = fluid.layers.square_error_cost(input=y_predict, label=y)
    avg_loss = fluid.layers.mean(cost)
    sgd_optimizer = fluid.optimizer.SGD(learning_rate=0.01)
    sgd_optimizer.minimize(avg_loss)
    test_program = main_program.clone(for_test=True)

    exe = fluid.Executor(place)
    exe.run(startup_program)
    set_parameters(main_program, place)

    train_reader = paddle.batch(houses(200, 1), batch_size=20)
    test_reader = paddle.batch(houses(40, 2), batch_size=20)
    feeder = fluid.DataFeeder(place=place, feed_list=[x, y])
    for epoch in range(3):
        for data in train_reader():
            (loss,) = exe.run(
                main_program, feed=feeder.feed(data), fetch_list=[avg_loss]
            )
        print("epoch %d loss %.7f" % (epoch, loss[0]))
        total, count = 0.0, 0
        for data in test_reader():
            outs = exe.run(
                program=test_program, feed=feeder.feed(data), fetch_list=[avg_loss]
            )
            total += outs[0][0]
            count += 1
        print("epoch %d test loss %.7f" % (epoch, total / count))


if __name__ == "__main__":
    main()
