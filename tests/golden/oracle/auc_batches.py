"""The reference's auc over several batches, for several window lengths."""

import json
import os

import numpy as np
import paddle.fluid as fluid

HERE = os.path.dirname(os.path.abspath(__file__))
THRESHOLDS = 9


def batches():
    rng = np.random.RandomState(3)
    for size in (4, 6, 3, 5, 7, 4, 5):
        label = rng.randint(0, 2, size)
        # away from the edges of the bins, where rounding decides
        place = rng.randint(0, THRESHOLDS, size)
        yield ((place + 0.5) / THRESHOLDS).astype("float32"), label


def answers(steps):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        block = main.global_block()
        bins = THRESHOLDS + 1
        shape = [(1 + steps) * bins + 1] if steps else [1, bins]
        made = {}
        for name, kind in (("pos", "int64"), ("neg", "int64")):
            made[name] = fluid.layers.create_global_var(
                shape, 0, kind, persistable=True, name=name
            )
        predict = fluid.data("predict", [None, 2], "float32")
        label = fluid.data("label", [None, 1], "int64")
        value = block.create_var(name="auc", dtype="float64", shape=[1])
        block.append_op(
            type="auc",
            inputs={
                "Predict": predict,
                "Label": label,
                "StatPos": made["pos"],
                "StatNeg": made["neg"],
            },
            outputs={
                "AUC": value,
                "StatPosOut": made["pos"],
                "StatNegOut": made["neg"],
            },
            attrs={"num_thresholds": THRESHOLDS, "slide_steps": steps},
        )
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        for chance, label in batches():
            feed = {
                "predict": np.stack([1 - chance, chance], 1),
                "label": label.reshape(-1, 1).astype("int64"),
            }
            auc, pos, neg = exe.run(main, feed, ["auc", "pos", "neg"])
            yield {
                "auc": float(auc[0]),
                "pos": pos.reshape(-1).tolist(),
                "neg": neg.reshape(-1).tolist(),
            }


if __name__ == "__main__":
    found = {
        "num_thresholds": THRESHOLDS,
        "batches": [{"chance": c.tolist(), "label": y.tolist()} for c, y in batches()],
        "answers": {s: list(answers(s)) for s in (0, 1, 2, 3)},
    }
    with open(os.path.join(HERE, "auc_batches.json"), "w") as file:
        json.dump(found, file)
        file.write("\n")
