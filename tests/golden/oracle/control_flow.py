"""Networks with loops, branches and recurrence: how they are built, what they compute.

`CASES` maps a name to a function that builds a network with any implementation of the
API. Run under the reference, this file writes control_flow.json.gz beside itself: a
dump of each main program (`golden/transpiler/dump.py`), and for three signs of the
inputs the loss and the gradients of the parameters and inputs of a run.
"""

import gzip
import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = {}


def case(build):
    CASES[build.__name__] = build
    return build


def data(fluid, name, shape):
    var = fluid.data(name, shape, "float32")
    var.stop_gradient = False
    return var


def const(fluid, value):
    return fluid.layers.fill_constant([1], "float32", value)


def counter(fluid, value):
    return fluid.layers.fill_constant([1], "int64", value)


def negative(fluid, x):
    return fluid.layers.less_than(fluid.layers.reduce_mean(x), const(fluid, 0.0))


def train(fluid, loss):
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


@case
def while_overwrites(fluid):
    """The reference uses the last value of acc in every step: wrong gradients."""
    L = fluid.layers
    x = data(fluid, "x", [4, 3])
    i, n = counter(fluid, 0), counter(fluid, 3)
    acc = L.fill_constant([4, 3], "float32", 0.0)
    acc.stop_gradient = False
    go = L.less_than(i, n)
    with L.While(go).block():
        L.assign(L.elementwise_add(L.fc(acc, 3, act="tanh"), x), acc)
        L.increment(i, 1, in_place=True)
        L.less_than(i, n, cond=go)
    return train(fluid, L.mean(acc))


@case
def while_array(fluid):
    L = fluid.layers
    y = L.fc(data(fluid, "x", [4, 3]), 5)
    i, n = counter(fluid, 0), counter(fluid, 3)
    memory = L.array_write(y, i)
    go = L.less_than(i, n)
    with L.While(go).block():
        before = L.array_read(memory, i)
        after = L.fc(before, 5, act="tanh")
        L.increment(i, in_place=True)
        L.array_write(after, i, array=memory)
        L.less_than(i, n, cond=go)
    return train(fluid, L.mean(L.array_read(memory, n)))


@case
def while_loop(fluid):
    L = fluid.layers
    x, n = data(fluid, "x", [4, 3]), counter(fluid, 3)
    _, h = L.while_loop(
        lambda i, h: L.less_than(i, n),
        lambda i, h: [L.increment(i, 1), L.fc(h, 3, act="tanh")],
        [counter(fluid, 0), L.fc(x, 3)],
    )
    return train(fluid, L.mean(h))


@case
def branches_in_loop(fluid):
    """The branch that was not taken overwrites the gradient: wrong in the reference."""
    L = fluid.layers
    x, n, two = data(fluid, "x", [4, 3]), counter(fluid, 4), counter(fluid, 2)

    def body(i, h):
        tanh, twice = (lambda: L.fc(h, 3, act="tanh")), (lambda: L.scale(h, 2.0))
        h = L.cond(L.less_than(i, two), tanh, twice)
        return [L.increment(i, 1), h]

    start = [counter(fluid, 0), L.fc(x, 3)]
    _, h = L.while_loop(lambda i, h: L.less_than(i, n), body, start)
    return train(fluid, L.mean(h))


@case
def loop_in_branch(fluid):
    """No gradient comes out of the loop in the branch: wrong in the reference."""
    L = fluid.layers
    x, n = data(fluid, "x", [4, 3]), counter(fluid, 3)
    h = L.fc(x, 3)

    def loop():
        _, g = L.while_loop(
            lambda i, g: L.less_than(i, n),
            lambda i, g: [L.increment(i, 1), L.fc(g, 3, act="tanh")],
            [counter(fluid, 0), L.assign(h)],
        )
        return g

    h = L.cond(negative(fluid, x), loop, lambda: L.scale(h, 2.0))
    return train(fluid, L.mean(h))


@case
def cond_nested(fluid):
    L = fluid.layers
    x = data(fluid, "x", [None, 4])
    low, small = negative(fluid, x), L.less_than(L.reduce_mean(x), const(fluid, 0.5))

    def inner():
        return L.cond(small, lambda: L.fc(x, 3), lambda: L.tanh(L.fc(x, 3)))

    return train(fluid, L.mean(L.cond(low, lambda: L.fc(x, 3), inner)))


@case
def cond_overwrites(fluid):
    """Where the block does not run, the reference loses the gradient."""
    L = fluid.layers
    x = data(fluid, "x", [None, 4])
    low, y = negative(fluid, x), L.fc(x, 1)

    def twice():
        L.assign(L.scale(y, 2.0), y)

    L.cond(low, twice, None)
    return train(fluid, L.mean(y))


@case
def case_of_three(fluid):
    L = fluid.layers
    x = data(fluid, "x", [None, 4])
    mean = L.reduce_mean(x)
    small = L.less_than(mean, const(fluid, 0.5))
    pairs = [
        (negative(fluid, x), lambda: L.fc(x, 4)),
        (small, lambda: L.tanh(x)),
    ]
    return train(fluid, L.mean(L.case(pairs, default=lambda: L.scale(x, 3.0))))


@case
def switch_case(fluid):
    L = fluid.layers
    x, k = data(fluid, "x", [None, 4]), fluid.data("k", [1], "int32")
    fc, tanh = (lambda: L.fc(x, 4)), (lambda: L.tanh(x))
    a = L.switch_case(k, {1: fc, 2: tanh}, default=lambda: L.scale(x, 3.0))
    b = L.switch_case(k, [fc, tanh])
    return train(fluid, L.mean(a) + L.mean(b))


@case
def static_rnn(fluid):
    L = fluid.layers
    x, h0 = data(fluid, "x", [5, 2, 3]), data(fluid, "h0", [2, 4])
    c = data(fluid, "c", [2, 4])
    rnn = L.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        p = rnn.memory(init=h0)
        q = rnn.memory(shape=[-1, 4], batch_ref=now, init_value=0.5)
        h = L.elementwise_add(L.fc([now, p], 4, act="tanh"), c)
        r = L.elementwise_mul(q, h)
        rnn.update_memory(p, h)
        rnn.update_memory(q, r)
        rnn.output(h, r)
    a, b = rnn()
    return train(fluid, L.mean(a) + L.mean(b))


@case
def if_else(fluid):
    L = fluid.layers
    x = data(fluid, "x", [4, 1])
    rows = L.greater_than(x, L.fill_constant([4, 1], "float32", 0.7))
    chosen = L.IfElse(rows)
    with chosen.true_block():
        chosen.output(L.fc(chosen.input(x), 1))
    with chosen.false_block():
        chosen.output(L.scale(chosen.input(x), -10.0))
    return train(fluid, L.mean(chosen()[0]))


@case
def polynomial_cycle(fluid):
    rate = fluid.layers.polynomial_decay(0.1, 2, 0.01, 2.0, cycle=True)
    loss = fluid.layers.mean(fluid.layers.fc(data(fluid, "x", [4, 1]), 1))
    fluid.optimizer.SGD(rate).minimize(loss)
    return loss


@case
def warmup_before_steps(fluid):
    L = fluid.layers
    rate = L.piecewise_decay([3, 4], [0.1, 0.05, 0.01])
    rate = L.linear_lr_warmup(rate, 2, 0.0, 0.1)
    loss = L.mean(L.fc(data(fluid, "x", [4, 1]), 1))
    fluid.optimizer.SGD(rate).minimize(loss)
    return loss


def _nce(fluid, sampler, sparse, weighted):
    """By hand, since no layer takes the noise classes."""
    block = fluid.default_main_program().global_block()
    x, label = data(fluid, "x", [3, 4]), fluid.data("label", [3, 2], "int64")
    weight = fluid.layers.create_parameter([6, 4], "float32", name="w")
    bias = fluid.layers.create_parameter([6, 1], "float32", name="b")
    ins = {"Input": [x], "Label": [label], "Weight": [weight], "Bias": [bias]}
    if sampler == 2:
        shares = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.1], "float32")
        ins["CustomDistProbs"] = [fluid.layers.assign(shares)]
        ins["CustomDistAlias"] = [fluid.layers.assign(np.arange(6, dtype="int32"))]
        ins["CustomDistAliasProbs"] = [fluid.layers.assign(shares)]
    if weighted:
        ins["SampleWeight"] = [fluid.data("weight", [3, 1], "float32")]
    made = {
        slot: [block.create_var(name=slot, dtype=kind)]
        for slot, kind in (
            ("Cost", "float32"),
            ("SampleLogits", "float32"),
            ("SampleLabels", "int64"),
        )
    }
    attrs = {
        "num_total_classes": 6,
        "num_neg_samples": 3,
        "sampler": sampler,
        "is_sparse": sparse,
        "custom_neg_classes": [3, 1, 4],
    }
    block.append_op(type="nce", inputs=ins, outputs=made, attrs=attrs)
    return train(fluid, fluid.layers.mean(made["Cost"][0]))


@case
def nce_uniform(fluid):
    return _nce(fluid, 0, False, True)


@case
def nce_log_uniform(fluid):
    return _nce(fluid, 1, True, False)


@case
def nce_custom(fluid):
    return _nce(fluid, 2, False, False)


@case
def hsigmoid(fluid):
    x, label = data(fluid, "x", [3, 4]), fluid.data("label", [3, 1], "int64")
    return train(fluid, fluid.layers.mean(fluid.layers.hsigmoid(x, label, 6)))


def _custom_tree(fluid, sparse):
    x, label = data(fluid, "x", [3, 4]), fluid.data("label", [3, 1], "int64")
    table, code = (fluid.data(n, [3, 3], "int64") for n in ("table", "code"))
    cost = fluid.layers.hsigmoid(
        x, label, 6, path_table=table, path_code=code, is_custom=True, is_sparse=sparse
    )
    return train(fluid, fluid.layers.mean(cost))


@case
def hsigmoid_tree(fluid):
    return _custom_tree(fluid, False)


@case
def hsigmoid_tree_sparse(fluid):
    return _custom_tree(fluid, True)


# ---------------------------------------------------------------- what is recorded

FIXED = {
    "table": [[0, 1, 3], [0, 2, -1], [0, -1, -1]],
    "code": [[0, 1, 1], [1, 0, -1], [1, -1, -1]],
    "weight": [[1.0], [2.0], [0.5]],
}
KINDS = {"FP32": "float32", "INT64": "int64", "INT32": "int32"}
STEPS = 6


def kind(var):
    return KINDS[str(var.dtype).split(".")[-1]]


def feeds(block, sign):
    """Inputs: positive, small and positive (sign 0), or negative."""
    rng = np.random.RandomState(7)
    found = {}
    for name in sorted(block.vars):
        var = block.vars[name]
        if not getattr(var, "is_data", False):
            continue
        shape = [3 if d < 0 else d for d in var.shape]
        if name in FIXED:
            value = np.array(FIXED[name])
        elif name == "k":
            value = np.array([{1: 1, -1: 2, 0: 7}[sign]])
        elif kind(var) == "float32":
            value = rng.uniform(0.6, 1.5, shape) * (sign or 0.2)
        else:
            value = rng.randint(0, 4, shape)
        found[name] = value.astype(kind(var))
    return found


def build(fluid, name):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = CASES[name](fluid)
    return main, startup, loss


def learning_rate(block):
    return next(op.input("LearningRate")[0] for op in block.ops if op.type == "sgd")


def run(fluid, main, startup, loss, sign):
    """Name -> numbers: loss, gradients, parameters and rates of some steps."""
    block = main.global_block()
    scope, rng = fluid.Scope(), np.random.RandomState(5)
    exe = fluid.Executor(fluid.CPUPlace())
    found = {}
    with fluid.scope_guard(scope):
        exe.run(startup)
        params = sorted(block.all_parameters(), key=lambda v: v.name)
        for var in params:
            value = rng.uniform(-1, 1, var.shape).astype("float32")
            scope.find_var(var.name).get_tensor().set(value, fluid.CPUPlace())
        feed = feeds(block, sign)
        names = [v.name for v in params] + sorted(feed)
        grads = [
            n + "@GRAD"
            for n in names
            if n + "@GRAD" in block.vars
            and str(block.vars[n + "@GRAD"].type).endswith("LOD_TENSOR")
        ]
        fetch = [loss.name, learning_rate(block)] + grads
        for step in range(STEPS):
            values = exe.run(main, feed=feed, fetch_list=fetch)
            if step == 0:
                found.update(zip(fetch, values))
            found["rate/%d" % step] = values[1]
        for var in params:
            found[var.name] = np.array(scope.find_var(var.name).get_tensor())
    return {
        k: [list(v.shape), [float("%.7g" % x) for x in np.ravel(v)]]
        for k, v in found.items()
    }


def main():
    import paddle.fluid as fluid

    sys.path.append(os.path.join(HERE, "..", "transpiler"))
    from dump import dump

    found = {}
    for name in CASES:
        program, startup, loss = build(fluid, name)
        numbers = {
            str(sign): run(fluid, program, startup, loss, sign) for sign in (1, 0, -1)
        }
        found[name] = {"main": dump(program), "runs": numbers}
        print(name)
    text = json.dumps(found, sort_keys=True, separators=(",", ":"))
    with open(os.path.join(HERE, "control_flow.json.gz"), "wb") as raw:
        # no time and no name inside: the same bytes from every run
        with gzip.GzipFile("", "wb", 9, raw, 0) as file:
            file.write(text.encode())


if __name__ == "__main__":
    main()
