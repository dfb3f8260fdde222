"""Values and programs of ``fluid.evaluator`` over two batches, from the reference."""

import json
import os
import warnings

import numpy as np
import paddle.fluid as fluid

HERE = os.path.dirname(os.path.abspath(__file__))
BATCHES = [
    {"found": [0, 1, 4, 2, 5, 6], "true": [0, 1, 4, 4, 6, 6], "sizes": [2, 4]},
    {"found": [4, 5, 5, 6, 0], "true": [4, 5, 5, 6, 0], "sizes": [1, 4]},
]
KINDS = {
    "chunks": lambda x, y: fluid.evaluator.ChunkEvaluator(x, y, "IOB", 3, [1]),
    "distance": lambda x, y: fluid.evaluator.EditDistance(x, y, [5]),
}


def ops_of(program):
    return [
        {
            "type": op.type,
            "inputs": {k: op.input(k) for k in op.input_names if op.input(k)},
            "outputs": {k: op.output(k) for k in op.output_names if op.output(k)},
        }
        for op in program.global_block().ops
    ]


def plain(values):
    return [np.array(v).reshape(-1).tolist() for v in values]


def ask(make):
    main, startup = fluid.Program(), fluid.Program()
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 1], "int64", lod_level=1)
        y = fluid.data("y", [None, 1], "int64", lod_level=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = make(x, y)
        answer = {"main": ops_of(main), "states": [s.name for s in made.states]}
    exe.run(startup)
    made.reset(exe)
    answer["metrics"], answer["values"] = [], []
    for batch in BATCHES:
        feed = {
            name: fluid.create_lod_tensor(
                np.array(batch[key], "int64").reshape(-1, 1),
                [batch["sizes"]],
                fluid.CPUPlace(),
            )
            for name, key in (("x", "found"), ("y", "true"))
        }
        got = exe.run(main, feed=feed, fetch_list=made.metrics)
        answer["metrics"].append(plain(got))
        answer["values"].append(plain(made.eval(exe)))
    made.reset(exe)
    if hasattr(made, "num_infer_chunks"):
        answer["fresh"] = plain(made.eval(exe))
    return answer


if __name__ == "__main__":
    found = {"batches": BATCHES, "answers": {k: ask(m) for k, m in KINDS.items()}}
    with open(os.path.join(HERE, "evaluators.json"), "w") as file:
        json.dump(found, file)
        file.write("\n")
