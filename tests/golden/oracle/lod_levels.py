"""Which outputs inherit the LoD level of an input at compile time, as JSON."""

import json
import os

import paddle.fluid as fluid

F32, I32 = "float32", "int32"


def level(op, inputs, attrs):
    """lod_level of Out; inputs: slot -> (shape, dtype, lod_level)."""
    main = fluid.Program()
    with fluid.program_guard(main):
        block = main.global_block()
        slots = {
            s: [block.create_var(name=s, shape=v[0], dtype=v[1], lod_level=v[2])]
            for s, v in inputs.items()
        }
        out = block.create_var(name="out")
        block.append_op(
            type=op, inputs=slots, outputs={"Out": [out]}, attrs=dict(attrs)
        )
        return out.lod_level


X, Y = ([-1, 4], F32, 1), ([-1, 4], F32, 0)
unary = [
    ("scale", {}),
    ("relu", {}),
    ("sigmoid", {}),
    ("square", {}),
    ("softmax", {}),
    ("gelu", {}),
    ("pow", {}),
    ("sign", {}),
    ("mean", {}),
    ("cast", {"in_dtype": 5, "out_dtype": 6}),
    ("clip", {"min": 0.0, "max": 1.0}),
    ("clip_by_norm", {"max_norm": 1.0}),
    ("squared_l2_norm", {}),
    ("increment", {}),
    ("isfinite", {}),
    ("assign", {}),
    ("fill_zeros_like", {}),
    ("fill_any_like", {}),
    ("sum", {}),
    ("reduce_sum", {"dim": [1]}),
    ("reduce_sum", {"dim": [-1]}),
    ("reduce_sum", {"dim": [0]}),
    ("reduce_sum", {"dim": [0], "keep_dim": True}),
    ("reduce_sum", {"reduce_all": True}),
    ("reduce_mean", {"dim": [1], "keep_dim": True}),
    ("is_empty", {}),
]
cases = [(op, {"X": X}, attrs) for op, attrs in unary]
for like in (
    "fill_constant_batch_size_like",
    "uniform_random_batch_size_like",
    "gaussian_random_batch_size_like",
):
    cases.append((like, {"Input": X}, {"shape": [-1, 2]}))
cases.append(("shape", {"Input": X}, {}))
binary = [
    ("elementwise_add", {}),
    ("elementwise_mul", {}),
    ("minus", {}),
    ("less_than", {}),
    ("equal", {}),
    ("logical_and", {}),
    ("matmul", {"transpose_Y": True}),
]
for op, attrs in binary:
    for x, y in ((X, Y), (Y, X)):
        pair = {"X": x, "Y": y}
        if op == "logical_and":
            pair = {k: (v[0], "bool", v[2]) for k, v in pair.items()}
        cases.append((op, pair, attrs))
W = ([4, 3], F32, 0)
cases.append(("mul", {"X": X, "Y": W}, {}))
found = []
for op, inputs, attrs in cases:
    try:
        found.append([op, inputs, attrs, level(op, inputs, attrs)])
    except Exception as error:
        print("refused:", op, str(error)[-300:])
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "lod_levels.json"), "w") as out:
    out.write("[\n" + ",\n".join(json.dumps(f) for f in found) + "\n]\n")
