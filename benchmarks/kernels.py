"""Kernels of convolution, pooling, normalization and dropout beside PyTorch's.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/kernels.py [PATTERN]

float32, one thread each, calls in turn; prints medians in milliseconds and the
ratio ours / PyTorch (below 1: ours is faster). "backward" is all gradients.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from fluidx import kernels

Call = Callable[[], Any]


class Context:
    """What kernels that draw random numbers ask for."""

    def __init__(self) -> None:
        self._generator = np.random.default_rng(0)

    def generator(self, seed: int = 0) -> np.random.Generator:
        return np.random.default_rng(seed) if seed else self._generator


def bind(
    type: str, inputs: dict[str, Any], wants: Sequence[str] = (), **attrs: Any
) -> Call:
    """A call of an op's kernel without arguments."""
    definition = kernels.find(type)
    every = {
        **definition.defaults,
        "ctx": Context(),
        "out": None,
        "wants": tuple(not wants or s.name in wants for s in definition.outs),
        **attrs,
    }
    values = [inputs.get(s.name) for s in definition.ins]
    keywords = {k: every[k] for k in definition.keywords}
    run = definition.run
    assert run is not None
    return lambda: run(np, *values, **keywords)


def random(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def backward(torch: Any, build: Call, leaves: list[Any]) -> Call:
    """The gradient alone of a graph that `build` makes once."""
    out = build()
    head = torch.ones_like(out)
    return lambda: torch.autograd.grad(out, leaves, head, retain_graph=True)


def conv_cases(torch: Any) -> Iterator[tuple[str, Call, Call]]:
    shapes = [
        ("conv 16x64x28x28, 64 of 3x3", (16, 64, 28, 28), (64, 64, 3, 3), 1, 1, True),
        ("conv 64x1x28x28, 20 of 5x5", (64, 1, 28, 28), (20, 1, 5, 5), 1, 0, False),
        ("conv 64x20x12x12, 50 of 5x5", (64, 20, 12, 12), (50, 20, 5, 5), 1, 0, True),
        (
            "conv 8x64x56x56, 128 of 3x3 / 2",
            (8, 64, 56, 56),
            (128, 64, 3, 3),
            2,
            1,
            True,
        ),
        (
            "conv 8x3x112x112, 32 of 7x7 / 2",
            (8, 3, 112, 112),
            (32, 3, 7, 7),
            2,
            3,
            False,
        ),
        (
            "conv 16x256x14x14, 64 of 1x1",
            (16, 256, 14, 14),
            (64, 256, 1, 1),
            1,
            0,
            True,
        ),
        (
            "conv 8x128x14x14, 128 of 3x3",
            (8, 128, 14, 14),
            (128, 128, 3, 3),
            1,
            1,
            True,
        ),
        ("depthwise 8x64x28x28, 3x3", (8, 64, 28, 28), (64, 1, 3, 3), 1, 1, True),
    ]
    for name, x_shape, w_shape, stride, pad, wants_x in shapes:
        x, w = random(*x_shape), random(*w_shape)
        groups = x_shape[1] // w_shape[1]
        attrs: dict[str, Any] = {
            "strides": [stride] * 2,
            "paddings": [pad] * 2,
            "groups": groups,
        }
        tx = torch.tensor(x, requires_grad=wants_x)
        tw = torch.tensor(w, requires_grad=True)

        def conv(
            tx: Any = tx, tw: Any = tw, s: int = stride, p: int = pad, g: int = groups
        ) -> Any:
            return torch.nn.functional.conv2d(tx, tw, None, s, p, 1, g)

        given = {"Input": x, "Filter": w}
        out = bind("conv2d", given, **attrs)()
        yield f"{name}, forward", bind("conv2d", given, **attrs), conv
        given = {**given, "Output@GRAD": np.ones_like(out)}
        wants = ["Input@GRAD", "Filter@GRAD"] if wants_x else ["Filter@GRAD"]
        leaves = [tx, tw] if wants_x else [tw]
        yield (
            f"{name}, backward",
            bind("conv2d_grad", given, wants, **attrs),
            backward(torch, conv, leaves),
        )


def pool_cases(torch: Any) -> Iterator[tuple[str, Call, Call]]:
    f = torch.nn.functional
    kinds = {"max": f.max_pool2d, "avg": f.avg_pool2d}
    for shape, k, s, p in (
        ((64, 20, 24, 24), 2, 2, 0),
        ((64, 50, 8, 8), 2, 2, 0),
        ((8, 64, 56, 56), 3, 2, 1),
    ):
        x = random(*shape)
        tx = torch.tensor(x, requires_grad=True)
        for kind, function in kinds.items():
            attrs: dict[str, Any] = {
                "pooling_type": kind,
                "ksize": [k] * 2,
                "strides": [s] * 2,
            }
            attrs |= {"paddings": [p] * 2, "exclusive": False}
            name = f"{kind} pool {'x'.join(map(str, shape))}, {k}x{k} / {s}"

            def pool(
                function: Any = function,
                tx: Any = tx,
                k: int = k,
                s: int = s,
                p: int = p,
            ) -> Any:
                return function(tx, k, s, p)

            ours = bind("pool2d", {"X": x}, **attrs)
            out = ours()
            yield f"{name}, forward", ours, pool
            given = {"X": x, "Out": out, "Out@GRAD": np.ones_like(out)}
            yield (
                f"{name}, backward",
                bind("pool2d_grad", given, **attrs),
                backward(torch, pool, [tx]),
            )


def norm_cases(torch: Any) -> Iterator[tuple[str, Call, Call]]:
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

        name = f"batch_norm {'x'.join(map(str, shape))}"
        ours = bind("batch_norm", given)
        yield f"{name}, forward", ours, norm
        y, _, _, mean, inverse, _ = ours()
        saved = {
            "SavedMean": mean,
            "SavedVariance": inverse,
            "Y@GRAD": random(*y.shape),
        }
        yield (
            f"{name}, backward",
            bind("batch_norm_grad", {**given, **saved}),
            backward(torch, norm, leaves),
        )
    for shape in ((512, 256), (2048, 768)):
        given = {
            "X": random(*shape),
            "Scale": random(shape[1]),
            "Bias": random(shape[1]),
        }
        t = {k: torch.tensor(v, requires_grad=True) for k, v in given.items()}

        def layer(t: Any = t, width: int = shape[1]) -> Any:
            return f.layer_norm(t["X"], (width,), t["Scale"], t["Bias"])

        name = f"layer_norm {'x'.join(map(str, shape))}"
        ours = bind("layer_norm", given)
        yield f"{name}, forward", ours, layer
        y, mean, variance = ours()
        saved = {"Mean": mean, "Variance": variance, "Y@GRAD": random(*shape)}
        yield (
            f"{name}, backward",
            bind("layer_norm_grad", {**given, **saved}),
            backward(torch, layer, list(t.values())),
        )


def dropout_cases(torch: Any) -> Iterator[tuple[str, Call, Call]]:
    for shape in ((128, 200), (1024, 1024)):
        x = random(*shape)
        tx = torch.tensor(x, requires_grad=True)
        attrs = {"dropout_implementation": "upscale_in_train"}

        def drop(tx: Any = tx) -> Any:
            return torch.nn.functional.dropout(tx, 0.5)

        name = f"dropout {'x'.join(map(str, shape))}"
        ours = bind("dropout", {"X": x}, **attrs)
        yield f"{name}, forward", ours, drop
        given = {"Mask": ours()[1], "Out@GRAD": x}
        yield (
            f"{name}, backward",
            bind("dropout_grad", given, **attrs),
            backward(torch, drop, [tx]),
        )


def measure(ours: Call, theirs: Call, seconds: float) -> tuple[float, float]:
    """Median milliseconds of both, called in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for call in (ours, theirs):
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[1]) < 5:
        for call, into in zip((ours, theirs), times):
            start = time.perf_counter()
            call()
            into.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pattern", nargs="?", default="", help="regular expression")
    parser.add_argument("--seconds", type=float, default=1.0, help="per line")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    print(f"{'':55} {'ours':>8} {'torch':>8} {'ratio':>6}")
    for family in (conv_cases, pool_cases, norm_cases, dropout_cases):
        for name, ours, theirs in family(torch):
            if re.search(options.pattern, name):
                mine, peer = measure(ours, theirs, options.seconds)
                print(f"{name:55} {mine:8.3f} {peer:8.3f} {mine / peer:6.2f}")


if __name__ == "__main__":
    main()
