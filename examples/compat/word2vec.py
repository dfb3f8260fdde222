"""N-gram word vectors with one shared table, in the style of the 1.x tutorial."""

from __future__ import print_function

import numpy
import paddle.fluid as fluid

EMBED_SIZE = 16
HIDDEN_SIZE = 32
N = 5
DICT_SIZE = 50


def inference_program(words, is_sparse):
    embedded = []
    for word in words[:-1]:
        embedded.append(
            fluid.layers.embedding(
                input=word,
                size=[DICT_SIZE, EMBED_SIZE],
                dtype="float32",
                is_sparse=is_sparse,
                param_attr="shared_w",
            )
        )
    concat_embed = fluid.layers.concat(input=embedded, axis=1)
    hidden1 = fluid.layers.fc(input=concat_embed, size=HIDDEN_SIZE, act="sigmoid")
    return fluid.layers.fc(input=hidden1, size=DICT_SIZE, act="softmax")


def sentences(steps, batch):
    """Batches of n-grams of a language in which each word has a likely next one."""
    random = numpy.random.RandomState(4)
    follows = random.permutation(DICT_SIZE)
    for _ in range(steps):
        grams = [random.randint(0, DICT_SIZE, [batch, 1])]
        for _ in range(N - 1):
            grams.append(follows[grams[-1]])
        yield [g.astype("int64") for g in grams]


def set_parameters(scope, program, place):
    random = numpy.random.RandomState(0)
    for name in sorted(p.name for p in program.global_block().all_parameters()):
        tensor = scope.find_var(name).get_tensor()
        value = random.normal(0.0, 0.1, tensor.shape())
        tensor.set(value.astype(numpy.float32), place)


def main(is_sparse=True):
    names = ["firstw", "secondw", "thirdw", "fourthw", "nextw"]
    words = [fluid.layers.data(name=n, shape=[1], dtype="int64") for n in names]
    predict = inference_program(words, is_sparse)
    cost = fluid.layers.cross_entropy(input=predict, label=words[-1])
    avg_cost = fluid.layers.mean(cost)
    optimizer = fluid.optimizer.AdagradOptimizer(
        learning_rate=3e-2,
        regularization=fluid.regularizer.L2DecayRegularizer(8e-4),
    )
    optimizer.minimize(avg_cost)

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    set_parameters(fluid.global_scope(), fluid.default_main_program(), place)
    for step, grams in enumerate(sentences(20, 32)):
        avg_cost_np = exe.run(
            fluid.default_main_program(),
            feed=dict(zip(names, grams)),
            fetch_list=[avg_cost],
        )
        print("step %d loss %.7f" % (step, avg_cost_np[0]))


if __name__ == "__main__":
    main()
