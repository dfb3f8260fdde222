"""What the reference makes of partial_concat, partial_sum, elementwise ops that are
fused with an activation, and embeddings that are pooled.

Runs under the reference; writes partial_ops.json beside itself (see op_probe.py).
"""

import json
import os

import numpy as np
import op_probe

HERE = os.path.dirname(os.path.abspath(__file__))


def rnd(*shape, seed=0):
    made = np.random.RandomState(seed).standard_normal(shape)
    return np.round(made, 2).astype("float32")


def ask(op, inputs, outs, out=None, **attrs):
    made = {"op": op, "inputs": inputs, "attrs": attrs, "outs": outs}
    if out:
        made["grads"] = {outs[0]: rnd(*out, seed=5)}
    return made


def partial_cases():
    xs = [rnd(3, 5), rnd(3, 5, seed=1), rnd(3, 5, seed=2)]
    for op, many in (("partial_concat", 3), ("partial_sum", 1)):
        for start, length in ((0, -1), (1, 2), (3, -1), (-2, 2), (0, 5)):
            if op == "partial_sum" and start < 0:
                continue  # it reads outside of its inputs
            wide = 5 - start if length < 0 else length
            out = (3, wide * many)
            yield ask(op, {"X": xs}, ["Out"], out, start_index=start, length=length)
        yield ask(op, {"X": xs[:1]}, ["Out"], (3, 2), start_index=2, length=2)
        made = ask(op, {"X": xs}, ["Out"], start_index=1, length=2)
        yield dict(made, shapes={"X": [-1, 5]}, run=False)
        whole = [(10 * x).astype("int64") for x in xs]
        yield ask(op, {"X": whole}, ["Out"], start_index=1, length=2)
        yield ask(op, {"X": [rnd(3, 5, 2)]}, ["Out"])
        yield ask(op, {"X": [rnd(3, 5), rnd(3, 6)]}, ["Out"], start_index=1, length=2)
        yield ask(op, {"X": xs}, ["Out"], start_index=5, length=1)
    yield ask("partial_concat", {"X": xs}, ["Out"], (3, 6), start_index=-2, length=-1)


def fused_cases():
    x, y = rnd(2, 2, 3), rnd(2, 2, 3, seed=1)
    binaries, unaries = (
        ("elementwise_add", "elementwise_mul"),
        ("scale", "relu", "tanh", "sigmoid"),
    )
    for binary in binaries:
        for unary in unaries:
            for pair in ([binary, unary], [unary, binary]):
                for kept in (True, False):
                    made = ask(
                        "fused_elemwise_activation",
                        {"X": x, "Y": y},
                        ["Out", "IntermediateOut"],
                        (2, 2, 3),
                        functor_list=pair,
                        scale=1.5,
                        save_intermediate_out=kept,
                    )
                    yield made
    for low, axis in ((rnd(3), -1), (rnd(2), 1), (rnd(2, 2), 0), (rnd(2, 3), 1)):
        for pair in (["relu", "elementwise_add"], ["elementwise_mul", "relu"]):
            yield ask(
                "fused_elemwise_activation",
                {"X": x, "Y": low},
                ["Out", "IntermediateOut"],
                (2, 2, 3),
                functor_list=pair,
                axis=axis,
                save_intermediate_out=True,
            )
    for pair in (["elementwise_add", "elementwise_add"], ["exp", "elementwise_add"]):
        yield ask(
            "fused_elemwise_activation",
            {"X": x, "Y": y},
            ["Out", "IntermediateOut"],
            functor_list=pair,
        )


def pooled_cases():
    table = rnd(7, 3)
    for lod, many in (([0, 2, 5], 2), ([0, 2, 2, 5], 3)):
        ids = {"data": np.array([[1], [2], [3], [0], [2]]), "lod": [lod]}
        for sparse in (False, True):
            for padding in (-1, 2):
                yield ask(
                    "fused_embedding_seq_pool",
                    {"W": table, "Ids": ids},
                    ["Out"],
                    (many, 3),
                    is_sparse=sparse,
                    padding_idx=padding,
                )
    made = {"W": table, "Ids": ids}
    yield ask("fused_embedding_seq_pool", made, ["Out"], combiner="mean")
    odd = np.array([[1e8, 1e-8, -3.0], [np.inf, np.nan, 0.0]], "float32")
    made = {"W": odd, "Ids": {"data": np.array([[1], [0], [0]]), "lod": [[0, 1, 3]]}}
    yield ask("fused_embedding_seq_pool", made, ["Out"])


def edge_cases():
    odd = np.array([[1e8, 1e-8, np.nan, np.inf, -3.0]], "float32")
    for op in ("partial_concat", "partial_sum"):
        yield ask(op, {"X": [odd, odd]}, ["Out"], start_index=1)
    y = np.array([[2.0, -1e-8, 0.0, np.inf, -1e9]], "float32")
    for pair in (
        ["elementwise_add", "relu"],
        ["relu", "elementwise_add"],
        ["elementwise_mul", "sigmoid"],  # tanh stops at 0.999995 in the reference
        ["elementwise_add", "scale"],
    ):
        made = dict(functor_list=pair, scale=0.5, save_intermediate_out=True)
        outs = ["Out", "IntermediateOut"]
        op = "fused_elemwise_activation"
        yield ask(op, {"X": odd, "Y": y}, outs, **made)
        yield ask(op, {"X": y, "Y": odd}, outs, **made)
    whole = np.array([[1, -2, 3]])
    yield ask(op, {"X": whole, "Y": whole}, outs, **made)
    none = np.zeros((0, 3), "float32")
    yield ask(op, {"X": none, "Y": none}, outs, **made)


def without_empty(path):
    """Leaves out what the reference left without memory, and so without a dtype."""
    with open(path) as file:
        found = json.load(file)
    for record in found:
        outs = record["answer"].get("outs", {})
        for slot in [s for s, made in outs.items() if made[0]["shape"] == [0]]:
            del outs[slot]
    with open(path, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(f) for f in found) + "\n]\n")


if __name__ == "__main__":
    cases = [*partial_cases(), *fused_cases(), *edge_cases(), *pooled_cases()]
    op_probe.record(cases, os.path.join(HERE, "partial_ops.json"))
    without_empty(os.path.join(HERE, "partial_ops.json"))
