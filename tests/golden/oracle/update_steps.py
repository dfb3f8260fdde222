"""Trajectories of sgd, momentum, adam and adagrad under the reference.

`single`: the update op alone, on dense gradients and on selected rows with
duplicates. `trained`: a small program, embedding(is_sparse) with duplicate and
padding ids under each optimizer.
"""

import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPE = (5, 3)
STEPS = 4


def numbers(seed, *shape):
    return np.round(np.random.RandomState(seed).randn(*shape), 3).astype("float32")


def one(value):
    return np.array([value], "float32")


def moment(seed):
    return np.abs(numbers(seed, *SHAPE))


def adam_case(**attrs):
    state = {"Moment1": numbers(4, *SHAPE), "Moment2": moment(5)}
    state.update(Beta1Pow=one(0.8), Beta2Pow=one(0.95))
    return "adam", state, dict({"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-8}, **attrs)


SINGLE = {
    "sgd": ("sgd", {}, {}),
    "momentum": ("momentum", {"Velocity": numbers(3, *SHAPE)}, {"mu": 0.9}),
    "nesterov": (
        "momentum",
        {"Velocity": numbers(3, *SHAPE)},
        {"mu": 0.9, "use_nesterov": True},
    ),
    "adam": adam_case(),
    "adam-epsilon": adam_case(epsilon=0.1),
    "adam-lazy": adam_case(lazy_mode=True),
    "adagrad": ("adagrad", {"Moment": moment(6)}, {"epsilon": 0.05}),
}


def gradients(sparse):
    rng = np.random.RandomState(7)
    for _ in range(STEPS):
        if sparse:
            rows = rng.randint(0, SHAPE[0], 4).tolist()
            if len(set(rows)) == len(rows):
                # the reference's momentum loses rows that are distinct but unsorted
                rows.sort()
            yield {
                "rows": rows,
                "value": np.round(rng.randn(4, SHAPE[1]), 3).astype("float32"),
            }
        else:
            yield np.round(rng.randn(*SHAPE), 3).astype("float32")


def run_single(name, sparse):
    import paddle.fluid as fluid

    op, state, attrs = SINGLE[name]
    kinds = fluid.core.VarDesc.VarType
    place, scope, main = fluid.CPUPlace(), fluid.Scope(), fluid.Program()
    values = dict(state, Param=numbers(1, *SHAPE), LearningRate=one(0.1))
    block = main.global_block()
    made = {}
    for slot, value in values.items():
        made[slot] = block.create_var(
            name=slot, shape=value.shape, dtype="float32", persistable=True
        )
        scope.var(slot).get_tensor().set(value, place)
    made["Grad"] = block.create_var(
        name="Grad",
        shape=SHAPE,
        dtype="float32",
        persistable=True,
        type=kinds.SELECTED_ROWS if sparse else kinds.LOD_TENSOR,
    )
    changed = ["Param"] + sorted(state)
    block.append_op(
        type=op,
        inputs=made,
        outputs={s + "Out": made[s] for s in changed},
        attrs=dict(attrs),
    )
    exe, steps = fluid.Executor(place), []
    with fluid.scope_guard(scope):
        for grad in gradients(sparse):
            if sparse:
                rows = scope.var("Grad").get_selected_rows()
                rows.set_rows(grad["rows"])
                rows.set_height(SHAPE[0])
                rows.get_tensor().set(grad["value"], place)
            else:
                scope.var("Grad").get_tensor().set(grad, place)
            exe.run(main)
            steps.append(
                {s: np.array(scope.find_var(s).get_tensor()).tolist() for s in changed}
            )
    return steps


def optimizers(fluid):
    rate = 0.1
    return {
        "sgd": fluid.optimizer.SGD(rate),
        "momentum": fluid.optimizer.Momentum(rate, 0.9),
        "adam": fluid.optimizer.Adam(rate),
        "adam-lazy": fluid.optimizer.Adam(rate, lazy_mode=True),
        "adagrad": fluid.optimizer.Adagrad(rate, epsilon=0.05),
    }


IDS = [[1, 2, 1, 4], [0, 0, 0, 2], [3, 1, 2, 3], [4, 4, 1, 0]]


def run_trained(name):
    import paddle.fluid as fluid

    start = numbers(1, *SHAPE)
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        ids = fluid.data("ids", [None, 1], "int64")
        weights = fluid.data("weights", [None, SHAPE[1]], "float32")
        rows = fluid.layers.embedding(
            ids,
            SHAPE,
            is_sparse=True,
            padding_idx=2,
            param_attr=fluid.ParamAttr(
                "table", initializer=fluid.initializer.NumpyArrayInitializer(start)
            ),
        )
        loss = fluid.layers.reduce_sum(rows * weights)
        optimizers(fluid)[name].minimize(loss)
        exe, steps = fluid.Executor(fluid.CPUPlace()), []
        exe.run(startup)
        for step, chosen in enumerate(IDS):
            feed = {
                "ids": np.array(chosen, "int64").reshape(-1, 1),
                "weights": numbers(10 + step, len(chosen), SHAPE[1]),
            }
            loss_now, table = exe.run(main, feed, [loss, "table"])
            steps.append({"loss": loss_now.tolist(), "table": table.tolist()})
    return steps


def plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def main():
    found = {"single": {}, "trained": {}, "gradients": {}}
    found["param"] = numbers(1, *SHAPE).tolist()
    found["ids"] = IDS
    found["weights"] = [
        numbers(10 + i, len(c), SHAPE[1]).tolist() for i, c in enumerate(IDS)
    ]
    for kind, sparse in (("dense", False), ("sparse", True)):
        found["gradients"][kind] = [plain(g) for g in gradients(sparse)]
        for name, (op, state, attrs) in SINGLE.items():
            found["single"][f"{name}-{kind}"] = {
                "op": op,
                "state": plain(state),
                "attrs": attrs,
                "steps": run_single(name, sparse),
            }
    import paddle.fluid as fluid

    for name in optimizers(fluid):
        found["trained"][name] = run_trained(name)
    with open(os.path.join(HERE, "update_steps.json"), "w") as file:
        json.dump(found, file)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
