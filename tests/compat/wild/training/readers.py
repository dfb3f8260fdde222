"""Every reader: py_reader, PyReader, DataLoader with processes, decorators."""

import os
import numpy as np
import paddle
import paddle.fluid as fluid


def sample_gen():
    for i in range(10):
        yield np.full((4,), i, "float32"), np.array([i % 3], "int64")


def net(x, y):
    p = fluid.layers.fc(
        x,
        3,
        act="softmax",
        param_attr=fluid.initializer.Constant(0.1),
        bias_attr=fluid.initializer.NumpyArrayInitializer(
            np.array([0.1, -0.1, 0.2], "float32")
        ),
    )
    return fluid.layers.mean(fluid.layers.cross_entropy(p, y)), fluid.layers.shape(x)


def fresh(f, *a):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(
        main, startup
    ), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        f(exe, main, startup, *a)


def old_py_reader(exe, main, startup, double):
    reader = fluid.layers.py_reader(
        capacity=8,
        shapes=[(-1, 4), (-1, 1)],
        dtypes=["float32", "int64"],
        name="r",
        use_double_buffer=double,
        lod_levels=[0, 0],
    )
    x, y = fluid.layers.read_file(reader)
    loss, shape = net(x, y)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe.run(startup)
    if double:
        reader.decorate_paddle_reader(paddle.batch(sample_gen, 4))
    else:

        def tensors():
            for b in paddle.batch(sample_gen, 3)():
                yield [np.array([s[0] for s in b]), np.array([s[1] for s in b])]

        reader.decorate_tensor_provider(tensors)
    for epoch in range(2):
        reader.start()
        try:
            while True:
                l, s = exe.run(main, fetch_list=[loss.name, shape.name])
                print("py_reader", double, epoch, "%.6f" % l[0], s)
        except fluid.core.EOFException:
            reader.reset()


def by_data(exe, main, startup):
    x = fluid.layers.data("x", [4], dtype="float32")
    y = fluid.layers.data("y", [1], dtype="int64")
    reader = fluid.layers.create_py_reader_by_data(
        capacity=4, feed_list=[x, y], name="by_data"
    )
    x, y = fluid.layers.read_file(reader)
    loss, shape = net(x, y)
    exe.run(startup)
    reader.decorate_sample_list_generator(paddle.batch(sample_gen, 6))
    reader.start()
    try:
        while True:
            print("by_data %.6f %s" % tuple(exe.run(main, fetch_list=[loss, shape])))
    except fluid.core.EOFException:
        print("eof")
        reader.reset()


def pyreader(exe, main, startup, iterable, return_list):
    x = fluid.data("x", [None, 4], "float32")
    y = fluid.data("y", [None, 1], "int64")
    loss, shape = net(x, y)
    reader = fluid.io.PyReader(
        feed_list=[x, y], capacity=2, iterable=iterable, return_list=return_list
    )
    exe.run(startup)
    reader.decorate_sample_generator(
        sample_gen,
        batch_size=4,
        drop_last=False,
        places=fluid.cpu_places(1) if iterable else None,
    )
    for e in range(2):
        if iterable:
            for data in reader():
                if return_list:
                    data = dict(zip(["x", "y"], data[0]))
                    print(type(data["x"]).__name__)
                else:
                    print(
                        type(data).__name__,
                        len(data),
                        sorted(data[0]) if isinstance(data, list) else sorted(data),
                    )
                print(
                    "PyReader %.6f %s"
                    % tuple(exe.run(main, feed=data, fetch_list=[loss, shape]))
                )
        else:
            reader.start()
            while True:
                try:
                    print("PyReader %.6f %s" % tuple(exe.run(fetch_list=[loss, shape])))
                except fluid.core.EOFException:
                    reader.reset()
                    break


def loader(exe, main, startup, multi):
    x = fluid.data("x", [None, 4], "float32")
    y = fluid.data("y", [None, 1], "int64")
    loss, shape = net(x, y)
    reader = fluid.io.DataLoader.from_generator(
        feed_list=[x, y], capacity=5, use_multiprocess=multi
    )

    def batches():
        for b in paddle.batch(sample_gen, 5, drop_last=True)():
            yield [np.stack([s[0] for s in b]), np.stack([s[1] for s in b])]

    reader.set_batch_generator(batches, places=fluid.CPUPlace())
    exe.run(startup)
    prog = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name)
    for e in range(2):
        for i, feed in enumerate(reader()):
            print(
                "loader %.6f %s"
                % tuple(exe.run(prog, feed=feed, fetch_list=[loss, shape]))
            )


def decorators():
    r = paddle.reader.map_readers(
        lambda a, b: (a[0].sum(), b), sample_gen, lambda: iter(range(10))
    )
    print(sum(float(a) + b for a, b in r()))
    r = paddle.reader.xmap_readers(
        lambda s: s[0].mean() * 2, sample_gen, 2, 4, order=True
    )
    print([float(v) for v in r()])
    r = paddle.reader.buffered(paddle.reader.firstn(sample_gen, 3), 2)
    print(len(list(r())), len(list(paddle.reader.chain(sample_gen, sample_gen)())))
    r = paddle.reader.compose(sample_gen, lambda: iter(range(10)))
    print([len(t) for t in r()][:2])
    try:
        list(paddle.reader.compose(sample_gen, lambda: iter(range(4)))())
    except paddle.reader.ComposeNotAligned as e:
        print("not aligned")
    r = paddle.reader.cache(sample_gen)
    print(len(list(r())), len(list(r())))
    ints = lambda: iter([[i, i] for i in range(10)])
    r = paddle.reader.multiprocess_reader([ints, ints], use_pipe=True, queue_size=20)
    print(len(list(r())))
    b = fluid.io.batch(fluid.io.shuffle(sample_gen, 100), 3, drop_last=True)
    print([len(x) for x in b()])


if __name__ == "__main__":
    fresh(old_py_reader, True)
    fresh(old_py_reader, False)
    fresh(by_data)
    fresh(pyreader, True, False)
    fresh(pyreader, True, True)
    fresh(loader, False)
    fresh(loader, True)
    decorators()
