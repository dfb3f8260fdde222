"""Little inference models, for both systems.

PYTHON little_models.py save FOLDER     write all, separate and combined, and little.zip
PYTHON little_models.py check FOLDER    load what the other wrote; print how far off

Under the reference `save` made little.zip, which the tests read, and `check` of what
fluidx saved made little_models.json.
"""

import json
import os
import sys
import zipfile

import numpy as np

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def _ramp(*shape, dtype="float32"):
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) * 7 % 11 * 0.1 - 0.4).astype(dtype)


def _weight(fluid, name, *shape, dtype="float32"):
    values = fluid.initializer.NumpyArrayInitializer(_ramp(*shape).astype("float32"))
    made = fluid.layers.create_parameter(
        list(shape), "float32", name=name, default_initializer=values
    )
    return made if dtype == "float32" else fluid.layers.cast(made, dtype)


def _attr(fluid, name, *shape):
    return fluid.ParamAttr(
        name, initializer=fluid.initializer.NumpyArrayInitializer(_ramp(*shape))
    )


def _kept(fluid, name, value, dtype, shape=(2,)):
    return fluid.layers.create_global_var(
        list(shape), value, dtype, persistable=True, name=name
    )


@case
def feed_forward(fluid):
    x = fluid.data("x", [None, 4])
    h = fluid.layers.fc(x, 3, act="tanh", param_attr=_attr(fluid, "w", 4, 3))
    y = fluid.layers.fc(h, 2, act="softmax", param_attr=_attr(fluid, "v", 3, 2))
    return {"x": _ramp(5, 4)}, [y]


@case
def images(fluid):
    x = fluid.data("x", [None, 2, 6, 6])
    h = fluid.layers.conv2d(
        x, 3, 3, padding=1, act="relu", param_attr=_attr(fluid, "w", 3, 2, 3, 3)
    )
    h = fluid.layers.batch_norm(h)
    h = fluid.layers.dropout(fluid.layers.pool2d(h, 2, "max", 2), 0.5)
    return {"x": _ramp(2, 2, 6, 6)}, [fluid.layers.reduce_mean(h, [2, 3])]


@case
def attention(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 3, 4])
    q, k = (layers.matmul(x, _weight(fluid, n, 4, 4)) for n in ("q", "k"))
    share = layers.softmax(layers.matmul(q, k, transpose_y=True, alpha=0.5))
    y = layers.layer_norm(layers.matmul(share, x) + x, begin_norm_axis=2)
    return {"x": _ramp(2, 3, 4)}, [layers.transpose(y, [0, 2, 1])]


@case
def words(fluid):
    ids = fluid.data("ids", [None, 1], "int64", 1)
    rows = fluid.layers.embedding(ids, [9, 4], param_attr=_attr(fluid, "w", 9, 4))
    pooled = fluid.layers.sequence_pool(rows, "sqrt")
    last = fluid.layers.sequence_last_step(rows)
    feed = {"ids": (np.array([[1], [8], [3], [3], [0]]), [[2, 3]])}
    return feed, [fluid.layers.concat([pooled, last], 1), rows]


@case
def sequences(fluid):
    x = fluid.data("x", [None, 2], "float32", 1)
    y = fluid.layers.sequence_conv(x, 3, 3, param_attr=_attr(fluid, "w", 6, 3))
    back = fluid.layers.sequence_reverse(y)
    return {"x": (_ramp(6, 2), [[1, 3, 2]])}, [back]


@case
def branch(fluid):
    layers = fluid.layers
    x, w = fluid.data("x", [2, 3]), _weight(fluid, "w", 3, 3)
    total = layers.reduce_sum(x)
    above = layers.less_than(layers.fill_constant([1], "float32", 0.0), total)
    y = layers.cond(above, lambda: layers.matmul(x, w), lambda: x - 1.0)
    return {"x": _ramp(2, 3) + 1}, [y]


@case
def other_branch(fluid):
    feed, found = branch(fluid)
    return {"x": feed["x"] - 2}, found


@case
def choice(fluid):
    layers = fluid.layers
    x, i = fluid.data("x", [2, 3]), fluid.data("i", [1], "int32")
    w = _weight(fluid, "w", 3, 3)
    y = layers.switch_case(
        i,
        {0: lambda: x * 2.0, 1: lambda: layers.matmul(x, w)},
        lambda: layers.tanh(x),
    )
    return {"x": _ramp(2, 3), "i": np.array([1], "int32")}, [y]


@case
def loop(fluid):
    layers = fluid.layers
    x, w = fluid.data("x", [2, 3]), _weight(fluid, "w", 3, 3)
    i, n = (layers.fill_constant([1], "int64", v) for v in (0, 4))
    _, y = layers.while_loop(
        lambda i, h: layers.less_than(i, n),
        lambda i, h: [i + 1, layers.tanh(layers.matmul(h, w))],
        [i, x * 1.0],
    )
    return {"x": _ramp(2, 3)}, [y]


@case
def branch_in_a_loop(fluid):
    layers = fluid.layers
    x = fluid.data("x", [2, 3])
    i, n, two = (layers.fill_constant([1], "int64", v) for v in (0, 4, 2))

    def body(i, h):
        early = layers.less_than(i, two)
        return [i + 1, layers.cond(early, lambda: h * 2.0, lambda: h - 1.0)]

    _, y = layers.while_loop(lambda i, h: layers.less_than(i, n), body, [i, x * 1.0])
    return {"x": _ramp(2, 3)}, [y]


@case
def array(fluid):
    layers = fluid.layers
    x = fluid.data("x", [2, 3])
    i, n = (layers.fill_constant([1], "int64", v) for v in (0, 3))
    kept = layers.array_write(x, i)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        h = layers.array_read(kept, i)
        layers.increment(i, 1)
        layers.array_write(h * 1.5, i, kept)
        layers.less_than(i, n, cond=more)
    return {"x": _ramp(2, 3)}, [layers.array_read(kept, n), layers.array_length(kept)]


@case
def recurrent(fluid):
    layers = fluid.layers
    x, w = fluid.data("x", [4, 2, 3]), _weight(fluid, "w", 3, 3)
    rnn = layers.StaticRNN()
    with rnn.step():
        part = rnn.step_input(x)
        memory = rnn.memory(
            shape=[-1, 3], batch_ref=x, init_value=0.5, ref_batch_dim_idx=1
        )
        new = layers.tanh(layers.matmul(memory, w) + part)
        rnn.update_memory(memory, new)
        rnn.step_output(new)
    return {"x": _ramp(4, 2, 3)}, [rnn()]


@case
def rows_by_mask(fluid):
    layers = fluid.layers
    x, mask = fluid.data("x", [None, 2]), fluid.data("mask", [None, 1], "bool")
    both = layers.IfElse(mask)
    with both.true_block():
        both.output(both.input(x) * 2.0)
    with both.false_block():
        both.output(both.input(x) - 1.0)
    feed = {"x": _ramp(3, 2), "mask": np.array([[True], [False], [True]])}
    return feed, [both()[0]]


@case
def doubles(fluid):
    x = fluid.data("x", [None, 3], "float64")
    w = fluid.layers.create_parameter(
        [3, 2], "float64", "w", default_initializer=fluid.initializer.Constant(0.375)
    )
    return {"x": _ramp(4, 3, dtype="float64")}, [fluid.layers.matmul(x, w)]


@case
def kinds(fluid):
    """Persistable variables of the dtypes that both can save."""
    layers = fluid.layers
    x = fluid.data("x", [2], "float32")
    found = [x]
    for dtype in ("int32", "int64", "float64"):
        kept = _kept(fluid, "kept_" + dtype, 1, dtype)
        found.append(layers.cast(kept, "float32"))
    return {"x": np.ones(2, "float32")}, [layers.sums(found)]


@case
def several(fluid):
    layers = fluid.layers
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1], "int64")
    best, place = layers.topk(x, 2)
    hot = layers.one_hot(y, 4)
    feed = {"x": _ramp(3, 3), "y": np.array([[0], [3], [1]])}
    return feed, [best, place, hot, layers.cast(y, "int32")]


# ------------------------------------------------


def _tensor(fluid, value):
    if isinstance(value, tuple):
        return fluid.create_lod_tensor(value[0], value[1], fluid.CPUPlace())
    return value


def _run(fluid, exe, program, feed, fetch):
    fed = {k: _tensor(fluid, v) for k, v in feed.items()}
    return exe.run(program, feed=fed, fetch_list=fetch, return_numpy=False)


def save(fluid, folder, name):
    """Write a model in both forms, and what it computes."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        feed, targets = CASES[name](fluid)
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        test = main.clone(for_test=True)
        found = _run(fluid, exe, test, feed, [v.name for v in targets])
        values = {"out%d" % i: np.array(v) for i, v in enumerate(found)}
        for params in (None, "params"):
            form = os.path.join(folder, name, params or "separate")
            fluid.io.save_inference_model(
                form, sorted(feed), targets, exe, test, params_filename=params
            )
    np.savez(os.path.join(folder, name, "expected.npz"), **values)


def strip(path):
    """Take out of a program where its ops were built."""
    from paddle.fluid.proto import framework_pb2

    program = framework_pb2.ProgramDesc()
    with open(path, "rb") as f:
        program.ParseFromString(f.read())
    for block in program.blocks:
        for op in block.ops:
            kept = [a for a in op.attrs if a.name != "op_callstack"]
            del op.attrs[:]
            op.attrs.extend(kept)
    with open(path, "wb") as f:
        f.write(program.SerializeToString())


def pack(folder, target):
    """All files of the models in one archive."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for where, _, files in sorted(os.walk(folder)):
            for name in sorted(files):
                path = os.path.join(where, name)
                if name == "__model__":
                    strip(path)
                info = zipfile.ZipInfo(os.path.relpath(path, folder))
                info.compress_type = zipfile.ZIP_DEFLATED
                with open(path, "rb") as f:
                    packed.writestr(info, f.read())


def far(fluid, folder, name):
    """By form: how far from what was expected a model that was saved computes."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        feed, _ = CASES[name](fluid)
    wanted = dict(np.load(os.path.join(folder, name, "expected.npz")))
    exe, result = fluid.Executor(fluid.CPUPlace()), {}
    for params in (None, "params"):
        if params and not os.path.exists(os.path.join(folder, name, params, params)):
            continue  # a model without parameters
        form = os.path.join(folder, name, params or "separate")
        with fluid.scope_guard(fluid.Scope()):
            program, names, targets = fluid.io.load_inference_model(
                form, exe, params_filename=params
            )
            assert names == sorted(feed), names
            found = _run(fluid, exe, program, feed, targets)
        assert len(found) == len(wanted)
        worst = 0.0
        for i, value in enumerate(map(np.array, found)):
            other = wanted["out%d" % i]
            assert value.dtype == other.dtype, (name, value.dtype, other.dtype)
            assert value.shape == other.shape, (name, value.shape, other.shape)
            worst = max(worst, float(np.abs(value.astype("f8") - other).max()))
        result[params or "separate"] = worst
    return result


if __name__ == "__main__":
    import paddle.fluid as reference

    what, where = sys.argv[1:3]
    if what == "save":
        for model in CASES:
            save(reference, where, model)
        here = os.path.dirname(os.path.abspath(__file__))
        pack(where, os.path.join(here, "little.zip"))
    else:
        result = {n: far(reference, where, n) for n in CASES}
        print(json.dumps(result, indent=1, sort_keys=True))
