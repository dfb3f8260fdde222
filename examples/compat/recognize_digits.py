"""A convolutional network on digit-like pictures, in the style of the 1.x tutorial."""

from __future__ import print_function

import argparse

import numpy
import paddle.fluid as fluid


def pictures(count, seed):
    """(n, 1, 28, 28) pictures of ten kinds, and their kinds."""
    random = numpy.random.RandomState(seed)
    kinds = numpy.random.RandomState(11).rand(10, 1, 28, 28)
    labels = random.randint(0, 10, [count, 1])
    noise = random.rand(count, 1, 28, 28)
    return (kinds[labels[:, 0]] + 0.5 * noise).astype("float32"), labels.astype("int64")


def multilayer_perceptron(img):
    hidden = fluid.layers.fc(input=img, size=64, act="relu")
    hidden = fluid.layers.fc(input=hidden, size=32, act="relu")
    return fluid.layers.fc(input=hidden, size=10, act="softmax")


def convolutional_neural_network(img):
    conv_pool_1 = fluid.nets.simple_img_conv_pool(
        input=img, filter_size=5, num_filters=8, pool_size=2, pool_stride=2, act="relu"
    )
    conv_pool_1 = fluid.layers.batch_norm(conv_pool_1)
    conv_pool_2 = fluid.nets.simple_img_conv_pool(
        input=conv_pool_1,
        filter_size=5,
        num_filters=12,
        pool_size=2,
        pool_stride=2,
        act="relu",
    )
    return fluid.layers.fc(input=conv_pool_2, size=10, act="softmax")


def set_parameters(program, place, seed=0):
    random = numpy.random.RandomState(seed)
    for param in sorted(program.all_parameters(), key=lambda p: p.name):
        scale = 0.1 if len(param.shape) > 1 else 0.01
        value = (scale * random.randn(*param.shape)).astype("float32")
        if param.name.startswith("batch_norm"):
            value += 1.0
        fluid.global_scope().find_var(param.name).get_tensor().set(value, place)


def main(net="conv"):
    place = fluid.CPUPlace()
    img = fluid.data(name="img", shape=[None, 1, 28, 28], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    build = convolutional_neural_network if net == "conv" else multilayer_perceptron
    prediction = build(img)
    cost = fluid.layers.cross_entropy(input=prediction, label=label)
    avg_cost = fluid.layers.mean(cost)
    acc = fluid.layers.accuracy(input=prediction, label=label)
    test_program = fluid.default_main_program().clone(for_test=True)
    optimizer = fluid.optimizer.Momentum(learning_rate=0.01, momentum=0.9)
    optimizer.minimize(avg_cost)

    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    set_parameters(fluid.default_main_program(), place)
    images, labels = pictures(16 * 12, seed=1)
    for step in range(12):
        here = slice(16 * step, 16 * step + 16)
        metrics = exe.run(
            fluid.default_main_program(),
            feed={"img": images[here], "label": labels[here]},
            fetch_list=[avg_cost, acc],
        )
        print("step %d loss %.7f accuracy %.4f" % (step, metrics[0], metrics[1]))
    images, labels = pictures(64, seed=2)
    test_loss, test_acc = exe.run(
        test_program, feed={"img": images, "label": labels}, fetch_list=[avg_cost, acc]
    )
    print("test loss %.7f accuracy %.4f" % (test_loss, test_acc))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--net", choices=["conv", "mlp"], default="conv")
    main(parser.parse_args().net)
