"""Trains a sentiment net of sequence layers under the reference; writes the losses.

The same `build` and `batches` serve the test, which starts from the recorded
parameters.
"""

import json
import os

import numpy as np

STEPS = 10
WORDS = 30


def build(fluid):
    """embedding -> two sequence_conv_pool -> fc softmax; the loss, and its startup."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        words = fluid.data("words", [None, 1], "int64", lod_level=1)
        label = fluid.data("label", [None, 1], "int64")
        layers, nets = fluid.layers, fluid.nets
        vectors = layers.embedding(words, [WORDS, 6], is_sparse=True)
        three = nets.sequence_conv_pool(vectors, 5, 3, act="tanh", pool_type="sqrt")
        four = nets.sequence_conv_pool(vectors, 5, 4, act="tanh", pool_type="max")
        guess = layers.fc([three, four], 2, act="softmax")
        loss = layers.mean(layers.cross_entropy(guess, label))
        fluid.optimizer.Adagrad(0.05).minimize(loss)
    return main, startup, loss


def batches():
    """(ids [n, 1], lengths, labels) of each step."""
    rng = np.random.RandomState(11)
    for _ in range(STEPS):
        lengths = rng.randint(1, 9, 6)
        ids = rng.randint(0, WORDS, (int(lengths.sum()), 1)).astype("int64")
        ends = np.cumsum(lengths)
        first = ids[ends - lengths, 0]
        yield ids, lengths.tolist(), (first % 2).reshape(-1, 1).astype("int64")


def train(fluid, main, loss, executor):
    """The loss of each step."""
    losses = []
    for ids, lengths, label in batches():
        words = fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace())
        feed = {"words": words, "label": label}
        (value,) = executor.run(main, feed=feed, fetch_list=[loss])
        losses.append(float(value.reshape(-1)[0]))
    return losses


def record(fluid):
    main, startup, loss = build(fluid)
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        executor = fluid.Executor(fluid.CPUPlace())
        startup.random_seed = 3
        executor.run(startup)
        start = {
            p.name: np.array(scope.find_var(p.name).get_tensor())
            for p in main.all_parameters()
        }
        losses = train(fluid, main, loss, executor)
        end = {n: np.array(scope.find_var(n).get_tensor()) for n in start}
    plain = {
        "start": {n: v.tolist() for n, v in start.items()},
        "end": {n: v.tolist() for n, v in end.items()},
        "losses": losses,
    }
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "sequence_training.json"), "w") as file:
        json.dump(plain, file)
    print(losses)


if __name__ == "__main__":
    import paddle.fluid as reference

    record(reference)
