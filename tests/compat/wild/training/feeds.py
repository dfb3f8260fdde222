"""Ways of feeding and fetching: DataFeeder, nested lists, sequences."""

import json
import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid import layers as L

place = fluid.CPUPlace()


def feeder():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        a = fluid.data("a", [None, 2, 2], "float32")
        b = L.data("b", [1], dtype="int64", lod_level=2)
        c = L.data("c", [3], dtype="float64")
        d = L.data("d", [1], dtype="float32", lod_level=1)
        e = L.data("e", [1], dtype="int32")
        outs = [
            L.reduce_sum(a),
            L.sequence_pool(L.cast(b, "float32"), "sum"),
            L.reduce_sum(c),
            L.sequence_pool(d, "average"),
            L.shape(e),
        ]
    f = fluid.DataFeeder([a, b, c, d, e], place, program=main)
    rows = [
        ([1, 2, 3, 4], [[1, 2], [3]], [0.1, 0.2, 0.3], [1.0, 2.0], [5]),
        ([5, 6, 7, 8], [[4], [5, 6], [7]], [1, 2, 3], [3.0], [6]),
    ]
    feed = f.feed(rows)
    for n in sorted(feed):
        t = feed[n]
        print(n, t.shape(), t.recursive_sequence_lengths(), np.array(t).dtype)
    exe = fluid.Executor(place)
    for o in exe.run(main, feed=feed, fetch_list=outs, return_numpy=False):
        print(np.array(o).ravel().tolist(), o.lod())
    r = f.decorate_reader(lambda: iter([rows, rows]), multi_devices=False)
    print(len(list(r())), sorted(next(iter(r()))))


def fetching():
    main, start = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, start):
        x = fluid.data("x", [None, 3])
        w = L.create_parameter(
            [3, 1],
            "float32",
            name="w",
            default_initializer=fluid.initializer.Constant(1.0),
        )
        y = L.matmul(x, w)
        loss = L.mean(y)
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(place)
    exe.run(start)
    f = {"x": np.ones((2, 3), "float32")}
    print(exe.run(main, feed=f, fetch_list=[loss, "w", y.name, w.name + "@GRAD", x]))
    print(
        exe.run(main, f, [loss]),
        exe.run(main, feed=f, fetch_list=loss),
        exe.run(main, feed=f, fetch_list=["w"]),
    )
    print(
        exe.run(main, feed=f),
        exe.run(main, feed=f, fetch_list=[]),
        exe.run(main, feed=f, fetch_list=None),
    )
    print(
        exe.run(
            program=main, feed=dict(f, w=np.zeros((3, 1), "float32")), fetch_list=[loss]
        )
    )
    l = exe.run(main, feed=f, fetch_list=[loss])[0]
    total = 0.0
    total += l
    total += float(l)
    best = min(1e9, l)
    print(
        json.dumps({"loss": float(l), "mean": np.mean([l, l]).item()}),
        "loss {}".format(l),
        "%.4f" % total,
        best < 5,
        l[0] == l,
        l.dtype,
        type(l[0]).__name__,
        np.array([l, l]).shape,
    )
    print(
        "{:.3f} {:.4f}".format(l[0], np.mean(l)),
        str(l),
        "a" + str(l[0]),
        round(float(l), 3),
        int(np.array([3.7])[0]),
        4,
    )
    t = fluid.global_scope().find_var("w").get_tensor()
    old = np.array(t)
    t.set(old * 0 + 2, place)
    print(np.array(t).tolist(), old.tolist(), t.shape(), t.lod())
    snap = {
        p.name: np.array(fluid.global_scope().find_var(p.name).get_tensor())
        for p in main.all_parameters()
    }
    exe.run(main, feed=f)
    print(snap["w"].tolist())
    for n in snap:
        fluid.global_scope().find_var(n).get_tensor().set(snap[n], place)
    print(exe.run(main.clone(for_test=True), feed=f, fetch_list=[loss.name]))


def sequences():
    main, start = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, start):
        reader = L.py_reader(
            capacity=4,
            shapes=[[-1, 1], [-1, 1]],
            lod_levels=[1, 0],
            dtypes=["int64", "int64"],
            use_double_buffer=True,
            name="seq",
        )
        words, lab = L.read_file(reader)
        emb = L.embedding(
            words,
            [10, 3],
            param_attr=fluid.ParamAttr(
                "emb", initializer=fluid.initializer.Constant(0.1)
            ),
        )
        pool = L.sequence_pool(emb, "sum")
        loss = L.mean(
            L.cross_entropy(
                L.fc(
                    pool,
                    2,
                    act="softmax",
                    param_attr=fluid.initializer.NumpyArrayInitializer(
                        np.array([[0.1, 0.2], [0.3, -0.1], [0.2, 0.2]], "float32")
                    ),
                ),
                lab,
            )
        )
        test = main.clone(for_test=True)
        fluid.optimizer.Adagrad(0.1).minimize(loss)
    exe = fluid.Executor(place)
    exe.run(start)

    def samples():
        for i in range(1, 6):
            yield list(range(i)), i % 2

    reader.decorate_paddle_reader(paddle.batch(paddle.reader.buffered(samples, 3), 2))
    for p in range(2):
        reader.start()
        losses = []
        while True:
            try:
                l, pl = exe.run(main, fetch_list=[loss, pool], return_numpy=False)
                losses.append(float(np.array(l)))
                print(np.array(pl).shape, "%.5f" % losses[-1])
            except fluid.core.EOFException:
                reader.reset()
                break
        print("pass %d mean %.5f" % (p, np.mean(losses)))


if __name__ == "__main__":
    feeder()
    with fluid.scope_guard(fluid.Scope()):
        fetching()
    with fluid.scope_guard(fluid.Scope()):
        sequences()
