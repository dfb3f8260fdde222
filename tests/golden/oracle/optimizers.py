"""Optimizers under the reference: the ops they append, and what training does.

`PROGRAMS`: what `minimize` adds in odd settings (sparse gradients, clipping, decay,
rates). `TRAINERS`: parameters after each of four steps of a small net. Both take the
fluid module, so the tests run the same functions. Writes optimizers.json beside itself.
"""

import json
import os
import sys

import numpy as np

STEPS = 4
PROGRAMS, TRAINERS = {}, {}


def program(build):
    PROGRAMS[build.__name__] = build
    return build


def net(fluid, sparse=True, **attr):
    """Mean squared error of table[ids] w; both parameters by name."""
    layers = fluid.layers
    y = fluid.data("y", [None, 1])
    if sparse is None:
        x = fluid.data("x", [None, 4])
    else:
        ids = fluid.data("ids", [None, 1], dtype="int64")
        x = layers.embedding(
            ids,
            [6, 4],
            is_sparse=sparse,
            param_attr=fluid.ParamAttr(name="table", **attr),
        )
        attr = {}
    out = layers.fc(x, 1, bias_attr=False, param_attr=fluid.ParamAttr(name="w", **attr))
    return layers.mean(layers.square_error_cost(out, y))


def _sgd(fluid, loss, **kw):
    return fluid.optimizer.SGD(0.1, **kw).minimize(loss)


# ---------------------------------------------------------------- programs


@program
def l2_of_sparse(fluid):
    return _sgd(fluid, net(fluid), regularization=fluid.regularizer.L2Decay(0.1))


@program
def l1_of_sparse(fluid):
    return _sgd(fluid, net(fluid), regularization=fluid.regularizer.L1Decay(0.1))


@program
def own_decay_first(fluid):
    loss = net(fluid, regularizer=fluid.regularizer.L1Decay(0.3))
    return _sgd(fluid, loss, regularization=fluid.regularizer.L2Decay(0.1))


@program
def decay_of_zero(fluid):
    loss = net(fluid, None)
    return _sgd(fluid, loss, regularization=fluid.regularizer.L2Decay(0.0))


@program
def clip_global_norm_of_sparse(fluid):
    return _sgd(fluid, net(fluid), grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0))


@program
def clip_norm_of_sparse(fluid):
    return _sgd(fluid, net(fluid), grad_clip=fluid.clip.GradientClipByNorm(1.0))


@program
def clip_value_of_sparse(fluid):
    return _sgd(fluid, net(fluid), grad_clip=fluid.clip.GradientClipByValue(1.0))


@program
def clip_one_of_two(fluid):
    clip = fluid.clip.GradientClipByNorm(1.0, need_clip=lambda p: p.name == "w")
    return _sgd(fluid, net(fluid), grad_clip=clip)


@program
def clip_one_of_two_globally(fluid):
    clip = fluid.clip.GradientClipByGlobalNorm(1.0, need_clip=lambda p: p.name == "w")
    return _sgd(fluid, net(fluid), grad_clip=clip)


@program
def clip_none(fluid):
    clip = fluid.clip.GradientClipByGlobalNorm(1.0, need_clip=lambda p: False)
    return _sgd(fluid, net(fluid), grad_clip=clip)


@program
def set_clip_global_norm(fluid):
    loss = net(fluid)
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(1.0))
    return _sgd(fluid, loss)


@program
def set_clip_value(fluid):
    loss = net(fluid)
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByValue(1.0, -0.5))
    return _sgd(fluid, loss)


@program
def clip_then_decay(fluid):
    return fluid.optimizer.Adam(
        0.1,
        regularization=fluid.regularizer.L2Decay(0.1),
        grad_clip=fluid.clip.GradientClipByNorm(1.0),
    ).minimize(net(fluid))


@program
def rate_factor(fluid):
    return _sgd(fluid, net(fluid, None, learning_rate=0.5))


@program
def rate_variable(fluid):
    loss = net(fluid, None, learning_rate=0.5)
    rate = fluid.layers.create_global_var(
        [1], 0.1, "float32", persistable=True, name="rate"
    )
    return fluid.optimizer.Momentum(rate, 0.9).minimize(loss)


@program
def named_state(fluid):
    return fluid.optimizer.Momentum(0.1, 0.9, name="mine").minimize(net(fluid, None))


@program
def two_optimizers(fluid):
    loss = net(fluid, None)
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    return fluid.optimizer.Momentum(0.2, 0.9).minimize(loss)


@program
def lamb_without_decay(fluid):
    return fluid.optimizer.LambOptimizer(
        0.1, exclude_from_weight_decay_fn=lambda p: p.name == "w"
    ).minimize(net(fluid))


@program
def lazy_adam(fluid):
    return fluid.optimizer.Adam(0.1, lazy_mode=True).minimize(net(fluid))


@program
def adamax(fluid):
    return fluid.optimizer.Adamax(0.1).minimize(net(fluid, None))


@program
def dpsgd(fluid):
    return fluid.optimizer.Dpsgd(0.1, clip=10.0, batch_size=16.0, sigma=1.0).minimize(
        net(fluid, None)
    )


@program
def only_one_parameter(fluid):
    return fluid.optimizer.SGD(0.1, parameter_list=["w"]).minimize(net(fluid))


@program
def nothing_of_one(fluid):
    return _sgd(fluid, net(fluid, trainable=False))


@program
def no_grad_set(fluid):
    return fluid.optimizer.SGD(0.1).minimize(net(fluid), no_grad_set={"table"})


@program
def in_two_steps(fluid):
    optimizer = fluid.optimizer.Adagrad(0.1, initial_accumulator_value=0.5)
    pairs = optimizer.backward(net(fluid))
    return optimizer.apply_gradients(pairs[::-1]), pairs


# ---------------------------------------------------------------- training


def trainer(name, make, sparse=False):
    TRAINERS[name] = (make, sparse)


for _kind, _sparse in (("dense", False), ("sparse", True)):
    for _name, _class, _kw in (
        ("sgd", "SGD", {}),
        ("momentum", "Momentum", {"momentum": 0.9}),
        ("nesterov", "Momentum", {"momentum": 0.9, "use_nesterov": True}),
        ("adagrad", "Adagrad", {}),
        ("adam", "Adam", {"beta1": 0.8, "beta2": 0.9}),
        ("lazy-adam", "Adam", {"lazy_mode": True}),
        ("rmsprop", "RMSProp", {"momentum": 0.5}),
        ("rmsprop-centered", "RMSProp", {"centered": True}),
        ("lamb", "LambOptimizer", {}),
        ("lars", "LarsMomentum", {"momentum": 0.9}),
        ("decayed-adagrad", "DecayedAdagrad", {}),
        ("adadelta", "Adadelta", {}),
        ("adamax", "Adamax", {}),
        ("ftrl", "Ftrl", {"l1": 0.01}),
    ):
        if _sparse and _name in (
            "lars",
            "decayed-adagrad",
            "adadelta",
            "adamax",
            "ftrl",
        ):
            continue
        trainer(
            f"{_name}-{_kind}",
            lambda fluid, c=_class, kw=_kw: getattr(fluid.optimizer, c)(
                learning_rate=0.1, **kw
            ),
            _sparse,
        )
    trainer(
        "l2-" + _kind,
        lambda fluid: fluid.optimizer.SGD(
            0.1, regularization=fluid.regularizer.L2Decay(0.1)
        ),
        _sparse,
    )
    trainer(
        "l1-" + _kind,
        lambda fluid: fluid.optimizer.Momentum(
            0.1, 0.5, regularization=fluid.regularizer.L1Decay(0.1)
        ),
        _sparse,
    )
    trainer(
        "clip-norm-" + _kind,
        lambda fluid: fluid.optimizer.SGD(
            0.1, grad_clip=fluid.clip.GradientClipByNorm(0.2)
        ),
        _sparse,
    )
    trainer(
        "clip-value-" + _kind,
        lambda fluid: fluid.optimizer.SGD(
            0.1, grad_clip=fluid.clip.GradientClipByValue(0.1)
        ),
        _sparse,
    )
    trainer(
        "clip-global-" + _kind,
        lambda fluid: fluid.optimizer.SGD(
            0.1, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.2)
        ),
        _sparse,
    )


trainer(
    "lookahead",
    lambda fluid: fluid.optimizer.LookaheadOptimizer(
        fluid.optimizer.SGD(0.1), alpha=0.25, k=2
    ),
)


def _average(fluid):
    return fluid.optimizer.ModelAverage(0.5, min_average_window=2, max_average_window=3)


def _moving(fluid):
    made = fluid.optimizer.ExponentialMovingAverage(0.8)
    made.update()
    return made


AVERAGES = {"model-average": _average, "moving-average": _moving}


def start():
    rng = np.random.RandomState(3)
    return {
        "table": np.round(rng.randn(6, 4), 2).astype("float32"),
        "w": np.round(rng.randn(4, 1), 2).astype("float32"),
    }


def batch(step):
    rng = np.random.RandomState(10 + step)
    return {
        "ids": rng.randint(0, 4, (5, 1)).astype("int64"),
        "y": np.round(rng.randn(5, 1), 2).astype("float32"),
    }


def train(fluid, name):
    """Parameters after each step: [{name: flat list}]."""
    make, sparse = TRAINERS[name]
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = net(fluid, sparse)
        make(fluid).minimize(loss)
    exe, scope, steps = fluid.Executor(fluid.CPUPlace()), fluid.Scope(), []
    with fluid.scope_guard(scope):
        exe.run(startup)
        _set(fluid, scope)
        for step in range(STEPS):
            exe.run(main, feed=batch(step), fetch_list=[loss])
            steps.append(_read(scope))
    return steps


def _set(fluid, scope):
    for key, value in start().items():
        for name in (key, key + "@SLOW"):
            if scope.find_var(name) is not None:
                scope.find_var(name).get_tensor().set(value, fluid.CPUPlace())


def _read(scope):
    return {
        key: [
            float(f"{v:.8g}")
            for v in np.array(scope.find_var(key).get_tensor()).reshape(-1)
        ]
        for key in start()
    }


def averages(fluid, name):
    """After 1, 2, ... steps: parameters with the averages in place, and put back."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = net(fluid, False)
        fluid.optimizer.SGD(0.1).minimize(loss)
        average = AVERAGES[name](fluid)
    exe, steps = fluid.Executor(fluid.CPUPlace()), []
    # anew each time: in the reference, applying a moving average spoils it
    for number in range(1, STEPS + 1):
        scope = fluid.Scope()
        with fluid.scope_guard(scope):
            exe.run(startup)
            _set(fluid, scope)
            for step in range(number):
                exe.run(main, feed=batch(step), fetch_list=[loss])
            with average.apply(exe):
                within = _read(scope)
            steps.append([within, _read(scope)])
    return steps


def ops_of(fluid, name):
    """What `minimize` adds behind the backward ops, and the startup program."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        made = PROGRAMS[name](fluid)
    keep = (
        "scale",
        "max_norm",
        "min",
        "max",
        "value",
        "lazy_mode",
        "weight_decay",
        "mu",
        "clip",
        "sigma",
        "batch_size",
        "beta1",
        "dim",
        "reduce_all",
    )
    found = []
    for part in (main, startup):
        lines = []
        for op in part.global_block().ops:
            role = op.attr("op_role")
            if part is main and role in (0, 1, 256, 257):
                continue
            attrs = {k: op.attr(k) for k in op.attr_names if k in keep}
            attrs = {
                k: float(f"{v:.6g}") if isinstance(v, float) else v
                for k, v in attrs.items()
                if k != "min" or op.type == "clip"
            }
            if op.type == "uniform_random":
                attrs = {}
            has = "op_role_var" in op.attr_names
            lines.append(
                [
                    op.type,
                    {s: op.input(s) for s in op.input_names if op.input(s)},
                    {s: op.output(s) for s in op.output_names if op.output(s)},
                    role,
                    list(op.attr("op_role_var")) if has else [],
                    attrs,
                ]
            )
        found.append(lines)
    pairs = [[p.name, g.name] for p, g in made[1]]
    return {"main": found[0], "startup": found[1], "pairs": pairs}


def main():
    import paddle.fluid as fluid

    fluid.Scope = fluid.core.Scope
    lines = []
    for name in PROGRAMS:
        lines.append(f'"{name}": {json.dumps(ops_of(fluid, name), sort_keys=True)}')
    for name in TRAINERS:
        lines.append(f'"{name}": {json.dumps(train(fluid, name))}')
    for name in AVERAGES:
        lines.append(f'"{name}": {json.dumps(averages(fluid, name))}')
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optimizers.json")
    with open(path, "w") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")
    print(len(lines), os.path.getsize(path), file=sys.stderr)


if __name__ == "__main__":
    main()
