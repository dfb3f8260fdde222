"""Programs and values of DetectionMAP (fluid.metrics and fluid.evaluator)."""

import json
import os
import warnings

import numpy as np
import paddle.fluid as fluid
from detection_map import images
from paddle.fluid.layers.detection import detection_map

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = {
    "metrics": {"of": "metrics", "difficult": True, "label": "float32"},
    "metrics-easy": {
        "of": "metrics",
        "difficult": True,
        "label": "int64",
        "more": {"evaluate_difficult": False, "overlap_threshold": 0.4},
    },
    "metrics-background": {
        "of": "metrics",
        "difficult": False,
        "label": "int64",
        "more": {"background_label": 2, "ap_version": "11point"},
    },
    "evaluator": {"of": "evaluator", "difficult": False, "label": "float32"},
    "evaluator-difficult": {
        "of": "evaluator",
        "difficult": True,
        "label": "float32",
        "more": {"ap_version": "11point", "evaluate_difficult": False},
    },
}


def ops_of(program):
    return [
        {
            "type": op.type,
            "inputs": {k: op.input(k) for k in op.input_names if op.input(k)},
            "outputs": {k: op.output(k) for k in op.output_names if op.output(k)},
            "attrs": {
                k: op.attr(k)
                for k in sorted(op.attr_names)
                if op.type != "concat" and not k.startswith("op_")
            },
        }
        for op in program.global_block().ops
    ]


def batches():
    rng = np.random.RandomState(11)
    for sizes in ((4, 2), (3, 0, 5), (1,)):
        found, true, ends = images(rng, sizes, 4)
        yield {
            "found": found.round(4).tolist(),
            "true": true.round(4).tolist(),
            "sizes": [np.diff(e).tolist() for e in ends],
        }


def feed(case, batch):
    found, true = (np.array(batch[k], "float32") for k in ("found", "true"))
    given = {
        "found": (found, 0),
        "label": (true[:, :1].astype(case["label"]), 1),
        "box": (true[:, 2:], 1),
    }
    if case["difficult"]:
        given["difficult"] = (true[:, 1:2].astype(case["label"]), 1)
    return {
        name: fluid.create_lod_tensor(
            np.ascontiguousarray(rows), [batch["sizes"][which]], fluid.CPUPlace()
        )
        for name, (rows, which) in given.items()
    }


def build(case):
    found = fluid.data("found", [None, 6], "float32", lod_level=1)
    label = fluid.data("label", [None, 1], case["label"], lod_level=1)
    box = fluid.data("box", [None, 4], "float32", lod_level=1)
    difficult = None
    if case["difficult"]:
        difficult = fluid.data("difficult", [None, 1], case["label"], lod_level=1)
    kind = getattr(fluid, case["of"]).DetectionMAP
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = case.get("more", {})
        return kind(found, label, box, difficult, class_num=4, **more)


def ask(case, data):
    main, startup, reset = fluid.Program(), fluid.Program(), fluid.Program()
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        made = build(case)
    names = [v.name for v in made.get_map_var()]
    with fluid.scope_guard(scope):
        exe.run(startup)
        values = []
        for again in (False, True):
            if again:
                made.reset(exe, reset)
            for batch in data[again:]:
                got = exe.run(main, feed=feed(case, batch), fetch_list=names)
                values.append([float(v[0]) for v in got])
        state = next(n for n in main.global_block().vars if "accum_pos" in n)
        counts = np.array(scope.find_var(state).get_tensor()).reshape(-1).tolist()
    return {
        "case": case,
        "main": ops_of(main),
        "startup": ops_of(startup),
        "reset": ops_of(reset),
        "fetch": names,
        "flag": made.has_state.name,
        "values": values,
        "counts": counts,
    }


def layer():
    """The layer alone, with states of the user's."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        found = fluid.data("found", [None, 6], "float32", lod_level=1)
        true = fluid.data("true", [None, 6], "float32", lod_level=1)
        block = main.global_block()
        kinds = (("counts", "int32"), ("hits", "float32"), ("misses", "float32"))
        states = [
            block.create_var(name=n, dtype=d, shape=[1], persistable=True)
            for n, d in kinds
        ]
        flag = block.create_var(name="flag", dtype="int32", shape=[1])
        detection_map(found, true, 3, 1, 0.4, False, flag, states, None, "11point")
        detection_map(found, true, 3, out_states=states)
    return ops_of(main)


if __name__ == "__main__":
    data = list(batches())
    answers = {name: ask(case, data) for name, case in CASES.items()}
    recorded = {"batches": data, "answers": answers, "layer": layer()}
    with open(os.path.join(HERE, "detection_evaluators.json"), "w") as file:
        json.dump(recorded, file)
        file.write("\n")
