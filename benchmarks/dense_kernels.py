"""Kernels of everything but convolution and pooling beside PyTorch's.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.dense_kernels

Takes a pattern and prints as `kernels` does: normalization, softmax and its loss,
activations, elementwise ops, products of attention, dropout, sums, optimizer updates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from fluidx import kernels
from fluidx.kernels.compiled import compiled_batch

from .kernels import Call, backward, bind, random, report

Case = tuple[str, Call, Call]


def _named(what: str, shape: tuple[int, ...]) -> str:
    return f"{what} {'x'.join(map(str, shape))}"


def norm_cases(torch: Any) -> Iterator[Case]:
    f = torch.nn.functional
    for shape in ((16, 64, 28, 28), (64, 20, 12, 12), (256, 128)):
        c = shape[1]
        given = {"X": random(*shape), "Scale": random(c), "Bias": random(c)}
        given |= {"Mean": np.zeros(c, "f4"), "Variance": np.ones(c, "f4")}
        t = {k: torch.tensor(v) for k, v in given.items()}
        leaves = [t[k].requires_grad_() for k in ("X", "Scale", "Bias")]

        def norm(t: Any = t) -> Any:
            return f.batch_norm(
                t["X"], t["Mean"], t["Variance"], t["Scale"], t["Bias"], True
            )

        name = _named("batch_norm", shape)
        ours = bind("batch_norm", given)
        yield f"{name}, forward", ours, norm
        y, _, _, mean, inverse, _ = ours()
        saved = {"SavedMean": mean, "SavedVariance": inverse}
        saved |= {"Y@GRAD": random(*y.shape)}
        yield (
            f"{name}, backward",
            bind("batch_norm_grad", {**given, **saved}),
            backward(torch, norm, leaves),
        )
    for shape in ((512, 256), (1024, 512), (2048, 768)):
        width = shape[1]
        given = {"X": random(*shape), "Scale": random(width), "Bias": random(width)}
        t = {k: torch.tensor(v, requires_grad=True) for k, v in given.items()}

        def layer(t: Any = t, width: int = width) -> Any:
            return f.layer_norm(t["X"], (width,), t["Scale"], t["Bias"])

        name = _named("layer_norm", shape)
        ours = bind("layer_norm", given)
        yield f"{name}, forward", ours, layer
        y, mean, variance = ours()
        saved = {"Mean": mean, "Variance": variance, "Y@GRAD": random(*shape)}
        yield (
            f"{name}, backward",
            bind("layer_norm_grad", {**given, **saved}),
            backward(torch, layer, list(t.values())),
        )


def _of_one(
    torch: Any, type: str, x: Any, needs: str, peer: Callable[[Any], Any], **attrs: Any
) -> Iterator[Case]:
    """Forward and backward of an op of X whose gradient needs X or Out."""
    tx = torch.tensor(x, requires_grad=True)
    ours = bind(type, {"X": x}, **attrs)
    yield f"{_named(type, x.shape)}, forward", ours, lambda: peer(tx)
    given = {"X": x, "Out": ours(), "Out@GRAD": random(*x.shape)}
    grad = bind(f"{type}_grad", {k: given[k] for k in (needs, "Out@GRAD")}, **attrs)
    yield (
        f"{_named(type, x.shape)}, backward",
        grad,
        backward(torch, lambda: peer(tx), [tx]),
    )


def softmax_cases(torch: Any) -> Iterator[Case]:
    f = torch.nn.functional
    for shape in ((16, 8, 64, 64), (1024, 1000), (128, 10)):
        x = random(*shape)
        yield from _of_one(torch, "softmax", x, "Out", lambda t: t.softmax(-1))
    for rows, classes in ((1024, 1000), (128, 10)):
        x, label = random(rows, classes), np.arange(rows)[:, None] % classes
        tx = torch.tensor(x, requires_grad=True)
        soft = random(rows, classes) ** 2
        for kind, y in (("hard", label), ("soft", soft)):
            ty = torch.tensor(y if kind == "soft" else y[:, 0])
            attrs = {"soft_label": kind == "soft"}

            def loss(tx: Any = tx, ty: Any = ty) -> Any:
                return f.cross_entropy(tx, ty, reduction="none")

            name = _named(f"softmax loss, {kind} labels,", x.shape)
            op = "softmax_with_cross_entropy"
            ours = bind(op, {"Logits": x, "Label": y}, **attrs)
            yield f"{name}, forward", ours, loss
            given = {"Softmax": ours()[0], "Label": y}
            given["Loss@GRAD"] = np.ones((rows, 1), "f4")
            yield (
                f"{name}, backward",
                bind(f"{op}_grad", given, **attrs),
                backward(torch, loss, [tx]),
            )


def activation_cases(torch: Any) -> Iterator[Case]:
    f = torch.nn.functional
    for shape in ((1024, 2048), (128, 200)):
        x = random(*shape)
        for name, needs, peer in (
            ("relu", "Out", f.relu),
            ("gelu", "X", f.gelu),
            ("tanh", "Out", torch.tanh),
            ("sigmoid", "Out", torch.sigmoid),
            ("swish", "X", f.silu),
            ("leaky_relu", "Out", f.leaky_relu),
            ("exp", "Out", torch.exp),
            ("square", "X", torch.square),
        ):
            yield from _of_one(torch, name, x, needs, peer)
    x = random(1024, 2048)
    yield from _of_one(
        torch, "gelu", x, "X", lambda t: f.gelu(t, approximate="tanh"), approximate=True
    )


def elementwise_cases(torch: Any) -> Iterator[Case]:
    peers = {"add": torch.add, "mul": torch.mul}
    for shape, other in (
        ((1024, 2048), (2048,)),
        ((1024, 512), (1024, 512)),
        ((128, 200), (200,)),
        ((16, 8, 64, 64), (16, 1, 1, 64)),
    ):
        x, y = random(*shape), random(*other)
        t = [torch.tensor(v, requires_grad=True) for v in (x, y)]
        for kind, peer in peers.items():
            given = {"X": x, "Y": y}
            name = _named(f"{kind} {'x'.join(map(str, other))} to", shape)
            op = f"elementwise_{kind}"
            yield f"{name}, forward", bind(op, given), partial(peer, *t)
            given = {**given, "Out@GRAD": random(*shape)}
            yield (
                f"{name}, backward",
                bind(f"{op}_grad", given),
                backward(torch, partial(peer, *t), t),
            )
    for dim in (0, 1):
        x = random(1024, 2048)
        tx = torch.tensor(x)
        for kind, peer in (
            ("sum", torch.sum),
            ("mean", torch.mean),
            ("max", torch.amax),
        ):
            name = _named(f"reduce_{kind} of axis {dim} of", x.shape)
            ours = bind(f"reduce_{kind}", {"X": x}, dim=[dim])
            yield name, ours, partial(peer, tx, dim)
    parts = [random(1024, 512) for _ in range(3)]
    tensors = [torch.tensor(p) for p in parts]
    yield (
        "sum of three 1024x512",
        bind("sum", {"X": parts}),
        lambda: tensors[0] + tensors[1] + tensors[2],
    )


def attention_cases(torch: Any) -> Iterator[Case]:
    shape = (16, 64, 8, 64)
    q, k = (random(*shape).transpose(0, 2, 1, 3) for _ in range(2))
    w = random(16, 8, 64, 64)
    t = {
        n: torch.tensor(v, requires_grad=True)
        for n, v in (("q", q), ("k", k), ("w", w))
    }
    for name, given, attrs, peer, leaves in (
        (
            "attention, queries by keys",
            {"X": q, "Y": k},
            {"transpose_Y": True, "alpha": 0.125},
            lambda: torch.matmul(t["q"], t["k"].transpose(-1, -2)) * 0.125,
            ["q", "k"],
        ),
        (
            "attention, weights by values",
            {"X": w, "Y": k},
            {},
            lambda: torch.matmul(t["w"], t["k"]),
            ["w", "k"],
        ),
    ):
        ours = bind("matmul", given, **attrs)
        yield f"{name}, forward", ours, peer
        given = {**given, "Out@GRAD": random(*ours().shape)}
        yield (
            f"{name}, backward",
            bind("matmul_grad", given, **attrs),
            backward(torch, peer, [t[n] for n in leaves]),
        )
    x, y = random(1024, 512), random(512, 2048)
    tx, ty = (torch.tensor(v, requires_grad=True) for v in (x, y))
    yield (
        "mul 1024x512 by 512x2048, forward",
        bind("mul", {"X": x, "Y": y}),
        lambda: tx @ ty,
    )
    yield (
        "mul 1024x512 by 512x2048, backward",
        bind("mul_grad", {"X": x, "Y": y, "Out@GRAD": random(1024, 2048)}),
        backward(torch, lambda: tx @ ty, [tx, ty]),
    )


def dropout_cases(torch: Any) -> Iterator[Case]:
    for shape in ((128, 200), (1024, 512), (1024, 2048)):
        x = random(*shape)
        tx = torch.tensor(x, requires_grad=True)
        attrs = {"dropout_implementation": "upscale_in_train", "dropout_prob": 0.1}

        def drop(tx: Any = tx) -> Any:
            return torch.nn.functional.dropout(tx, 0.1)

        name = _named("dropout", shape)
        ours = bind("dropout", {"X": x}, **attrs)
        yield f"{name}, forward", ours, drop
        given = {"Mask": ours()[1], "Out@GRAD": x}
        yield (
            f"{name}, backward",
            bind("dropout_grad", given, **attrs),
            backward(torch, drop, [tx]),
        )


def update_cases(torch: Any) -> Iterator[Case]:
    """The updates of a small and of a large network, gradients given."""
    mlp = [(784, 200), (200,), (200, 200), (200,), (200, 10), (10,)]
    block = [(512, 512), (512,)] * 4 + [(512, 2048), (2048,), (2048, 512), (512,)]
    for name, shapes in (("MLP", mlp), ("Transformer block", block)):
        tensors = [torch.tensor(random(*s), requires_grad=True) for s in shapes]
        for t in tensors:
            t.grad = torch.ones_like(t)
        for op, peer in (
            ("adam", torch.optim.Adam(tensors)),
            ("momentum", torch.optim.SGD(tensors, 0.001, 0.9)),
            ("sgd", torch.optim.SGD(tensors, 0.001)),
        ):
            yield f"{op} of a {name}", _updates(op, shapes), peer.step


def _updates(type: str, shapes: list[tuple[int, ...]]) -> Call:
    definition = kernels.find(type)
    rate, one = np.full(1, 0.001, "f4"), np.full(1, 0.9, "f4")
    fixed = {"LearningRate": rate, "Beta1Pow": one, "Beta2Pow": one}
    calls = []
    for shape in shapes:
        inputs = [
            None
            if s.name.endswith("Tensor")
            else fixed.get(s.name, np.full(shape, 0.5, "f4")).copy()
            for s in definition.ins
        ]
        attrs = {**definition.defaults, "mu": 0.9}
        calls.append(kernels.Call(definition, inputs, attrs, {}))
    many = compiled_batch(type) or kernels.batch_of(type)
    assert many is not None
    return lambda: many(np, None, calls)


FAMILIES = (
    norm_cases,
    softmax_cases,
    activation_cases,
    elementwise_cases,
    attention_cases,
    dropout_cases,
    update_cases,
)


if __name__ == "__main__":
    report(FAMILIES, __doc__.split("\n")[0])
