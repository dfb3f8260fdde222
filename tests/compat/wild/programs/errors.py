"""What raises and what does not: feeds, names, layers, files, readers."""

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.core as core

exe = fluid.Executor(fluid.CPUPlace())
place = fluid.CPUPlace()


def attempt(label, f, *kinds):
    try:
        r = f()
        print(label, "fine", None if r is None else np.shape(r))
    except kinds or Exception as e:
        print(label, "raised")


if __name__ == "__main__":
    x = fluid.data("x", [None, 4], "float32")
    y = fluid.layers.data("y", [1], dtype="int64")
    h = fluid.layers.fc(x, 3, param_attr=fluid.initializer.Constant(0.1))
    loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(h, y))
    good = {"x": np.ones((2, 4), "float32"), "y": np.zeros((2, 1), "int64")}
    attempt("uninit", lambda: exe.run(feed=good, fetch_list=[loss]))
    exe.run(fluid.default_startup_program())
    attempt("good", lambda: exe.run(feed=good, fetch_list=[loss])[0])
    attempt(
        "wrong width",
        lambda: exe.run(
            feed=dict(good, x=np.ones((2, 5), "float32")), fetch_list=[loss]
        )[0],
    )
    attempt(
        "wrong rank",
        lambda: exe.run(feed=dict(good, x=np.ones((4,), "float32")), fetch_list=[loss])[
            0
        ],
    )
    attempt(
        "float64",
        lambda: exe.run(feed=dict(good, x=np.ones((2, 4))), fetch_list=[loss])[0],
    )
    attempt(
        "int32 label",
        lambda: exe.run(
            feed=dict(good, y=np.zeros((2, 1), "int32")), fetch_list=[loss]
        )[0],
    )
    attempt(
        "missing feed", lambda: exe.run(feed={"x": good["x"]}, fetch_list=[loss])[0]
    )
    attempt(
        "extra feed",
        lambda: exe.run(feed=dict(good, z=good["x"]), fetch_list=[loss])[0],
    )
    attempt("list feed", lambda: exe.run(feed=[good], fetch_list=[loss])[0])
    attempt(
        "ragged",
        lambda: exe.run(
            feed=dict(good, x=[[1.0, 2.0], [1.0, 2.0, 3.0, 4.0]]), fetch_list=[loss]
        )[0],
    )
    attempt("unknown fetch", lambda: exe.run(feed=good, fetch_list=["nope"])[0])
    attempt("fetch str", lambda: exe.run(feed=good, fetch_list=loss.name)[0])
    attempt("fetch var", lambda: exe.run(feed=good, fetch_list=loss)[0])
    attempt("fetch int", lambda: exe.run(feed=good, fetch_list=[3])[0])
    attempt("program type", lambda: exe.run("main", feed=good, fetch_list=[loss])[0])
    attempt("feed type", lambda: exe.run(feed=3, fetch_list=[loss])[0])
    attempt(
        "label out of range",
        lambda: exe.run(
            feed=dict(good, y=np.full((2, 1), 1, "int64")), fetch_list=[loss]
        )[0],
    )
    attempt(
        "no such var", lambda: fluid.default_main_program().global_block().var("qq")
    )
    attempt("fc bad", lambda: fluid.layers.fc("x", 3))
    attempt("fc int", lambda: fluid.layers.fc(fluid.data("i", [None, 3], "int32"), 3))
    attempt("concat bad", lambda: fluid.layers.concat(3))
    attempt("matmul shapes", lambda: fluid.layers.matmul(x, x))
    attempt("reshape", lambda: fluid.layers.reshape(x, [3, -1, -1]))
    attempt("cast", lambda: fluid.layers.cast(x, "nonsense"))
    attempt(
        "conv channels",
        lambda: fluid.layers.conv2d(fluid.data("im", [None, 3, 8, 8]), 4, 3, groups=2),
    )
    attempt(
        "pool type",
        lambda: fluid.layers.pool2d(fluid.data("im2", [None, 3, 8, 8]), 2, "median"),
    )
    attempt("data dup", lambda: fluid.data("x", [None, 7], "float32"))
    attempt("embedding float", lambda: fluid.layers.embedding(x, [3, 4]))
    attempt(
        "dropout", lambda: fluid.layers.dropout(x, 0.5, dropout_implementation="up")
    )
    attempt("act", lambda: fluid.layers.fc(x, 3, act="nonact"))
    attempt("sgd no lr", lambda: fluid.optimizer.SGD(None))
    attempt("adam", lambda: fluid.optimizer.Adam(learning_rate="0.1"))
    attempt("minimize nonscalar", lambda: fluid.optimizer.SGD(0.1).minimize(h))
    attempt("paramattr", lambda: fluid.layers.fc(x, 3, param_attr=3.5))
    attempt("load nothing", lambda: fluid.io.load_persistables(exe, "./not_there"))
    attempt(
        "load infer nothing", lambda: fluid.io.load_inference_model("./not_there", exe)
    )
    attempt(
        "fluid.load nothing",
        lambda: fluid.load(fluid.default_main_program(), "./not_there"),
    )
    attempt(
        "save infer", lambda: fluid.io.save_inference_model("m", ["q"], [loss], exe)
    )
    attempt(
        "set wrong",
        lambda: (
            fluid.global_scope().find_var("fc_0.w_0").get_tensor().set([1, 2], place)
        ),
    )
    attempt(
        "bad lod",
        lambda: fluid.create_lod_tensor(np.zeros((5, 1), "int64"), [[2, 2]], place),
    )
    attempt(
        "while cond",
        lambda: fluid.layers.While(cond=fluid.layers.fill_constant([2], "bool", True)),
    )
    attempt(
        "cond branches",
        lambda: fluid.layers.cond(
            fluid.layers.fill_constant([1], "bool", True), 3, None
        ),
    )
    attempt("feeder", lambda: fluid.DataFeeder(feed_list=["nope"], place=place))
    feeder = fluid.DataFeeder(feed_list=[x, y], place=place)
    attempt("feeder short", lambda: feeder.feed([([1.0, 2.0], [0])]))
    attempt("feeder arity", lambda: feeder.feed([([1.0, 2.0, 3.0, 4.0],)]))
    attempt("metric", lambda: fluid.metrics.Accuracy().eval())
    attempt("metric update", lambda: fluid.metrics.Accuracy().update("a", 1))
    attempt("precision", lambda: fluid.metrics.Precision().eval())
    main, start = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, start):
        r = fluid.layers.py_reader(capacity=4, shapes=[[-1, 2]], dtypes=["float32"])
        v = fluid.layers.read_file(r)
        s = fluid.layers.reduce_sum(v)
    exe.run(start)
    r.decorate_batch_generator(
        lambda: ([np.full((1, 2), i, "float32")] for i in range(3))
    )
    for epoch in range(2):
        r.start()
        n = 0
        try:
            while True:
                n += float(exe.run(main, fetch_list=[s])[0])
        except fluid.core.EOFException:
            r.reset()
        print("epoch", epoch, n)
    exe.close()
    attempt("closed", lambda: exe.run(feed=good, fetch_list=[loss])[0])
