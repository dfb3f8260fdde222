"""Runs under the reference: what the run that ends a pass does to a training.

Programs with a reader, a counter of the user's own, and a learning rate that decays by
the schedule's counter; per run the loss, the rate and the counters, for three passes.
"""

import json
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ["loader", "PyReader", "py_reader", "by_data", "two", "fed"]
WAYS = ["plain", "compiled", "parallel"]
COUNTER = "@LR_DECAY_COUNTER@"


def batches(count):
    def read():
        for i in range(count):
            yield (
                np.full([2, 2], i + 1, "float32"),
                np.full([2, 1], 0.5, "float32"),
            )

    return read


def one_column(count):
    return lambda: ((y,) for _, y in batches(count)())


def data(fluid):
    return [fluid.data("x", [None, 2]), fluid.data("y", [None, 1])]


def readers_of(fluid, kind):
    """The readers, and the variables x and y."""
    loader = fluid.io.DataLoader.from_generator
    if kind in ("loader", "fed"):
        x, y = data(fluid)
        made = loader([x, y], capacity=2, iterable=False)
        made.set_batch_generator(batches(3))
    elif kind == "PyReader":
        x, y = data(fluid)
        made = fluid.io.PyReader([x, y], capacity=2, iterable=False)
        made.decorate_batch_generator(batches(3))
    elif kind == "py_reader":
        shapes, dtypes = [(-1, 2), (-1, 1)], ["float32", "float32"]
        made = fluid.layers.py_reader(2, shapes, dtypes)
        x, y = fluid.layers.read_file(made)
        made.decorate_tensor_provider(batches(3))
    elif kind == "by_data":
        made = fluid.layers.create_py_reader_by_data(2, data(fluid))
        x, y = fluid.layers.read_file(made)
        made.decorate_tensor_provider(batches(3))
    else:  # the second of two ends
        x, y = data(fluid)
        first = loader([x], capacity=2, iterable=False)
        first.set_batch_generator(lambda: ((x,) for x, _ in batches(9)()))
        count = fluid.layers.create_global_var(
            [1], 0.0, "float32", persistable=True, name="between"
        )
        fluid.layers.assign(count + fluid.layers.reduce_mean(x), count)
        second = loader([y], capacity=2, iterable=False)
        second.set_batch_generator(one_column(3))
        return [first, second], x, y
    return [made], x, y


def counts(fluid, kind):
    """A counter before the reader: of runs, or of what is fed."""
    mine = fluid.layers.create_global_var(
        [1], 0.0, "float32", persistable=True, name="mine"
    )
    if kind == "fed":
        step = fluid.data("step", [1])
        fluid.layers.assign(mine + step, mine)
    else:
        fluid.layers.increment(mine)


def network(fluid, kind):
    counts(fluid, kind)
    readers, x, y = readers_of(fluid, kind)
    weight = fluid.initializer.Constant(0.5)
    predicted = fluid.layers.fc(x, 1, param_attr=weight, bias_attr=False)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(predicted, y))
    rate = fluid.layers.exponential_decay(0.01, 1, 0.5)
    fluid.optimizer.SGD(rate).minimize(loss)
    return readers, loss, rate


def runner(fluid, way, main, loss):
    cpu = fluid.CPUPlace()
    if way == "parallel":
        parallel = fluid.ParallelExecutor(False, loss.name, main)
        return lambda feed, names: parallel.run(names, feed=feed)
    program = main
    if way == "compiled":
        program = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name)
    exe = fluid.Executor(cpu)
    return lambda feed, names: exe.run(program, feed=feed, fetch_list=names)


def counters(fluid, names):
    scope = fluid.global_scope()
    return [
        float(np.array(scope.find_var(name).get_tensor()).ravel()[0]) for name in names
    ]


def log(fluid, kind, way):
    """A line per run: loss, rate and counters; or at the end the counters alone."""
    main, startup = fluid.Program(), fluid.Program()
    guards = fluid.program_guard(main, startup), fluid.unique_name.guard()
    with guards[0], guards[1], fluid.scope_guard(fluid.Scope()):
        readers, loss, rate = network(fluid, kind)
        fluid.Executor(fluid.CPUPlace()).run(startup)
        run = runner(fluid, way, main, loss)
        feed = {"step": np.array([2.0], "float32")} if kind == "fed" else None
        names = [COUNTER, "mine"] + (["between"] if kind == "two" else [])
        lines = []
        for _ in range(3):
            for reader in readers:
                reader.start()
            while True:
                try:
                    got = run(feed, [loss.name, rate.name])
                except fluid.core.EOFException:
                    lines.append(counters(fluid, names))
                    break
                values = [float(np.ravel(v)[0]) for v in got]
                lines.append(values + counters(fluid, names))
            for reader in readers:
                reader.reset()
        return lines


def main():
    import paddle.fluid as fluid

    os.environ["CPU_NUM"] = "1"
    # a feed for a CompiledProgram is not for programs that read, in the reference
    made = {
        kind + " " + way: log(fluid, kind, way)
        for kind in KINDS
        for way in (WAYS[:1] if kind == "fed" else WAYS)
    }
    with open(os.path.join(HERE, "reader_ends.json"), "w") as file:
        json.dump(made, file, indent=0)
        file.write("\n")


if __name__ == "__main__":
    main()
