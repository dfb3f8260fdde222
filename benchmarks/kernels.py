"""Kernels of convolution and pooling beside PyTorch's (others: `dense_kernels`).

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/kernels.py [PATTERN]

float32, as many threads on both sides as OMP_NUM_THREADS says, calls in turn; prints
lower quartiles in milliseconds (other work on the machine only adds) and the ratio
ours / PyTorch (below 1: ours is faster). "backward" is all gradients. With
FLUIDX_COMPILED=0 ours is NumPy alone.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from fluidx import kernels
from fluidx.kernels.compiled import compiled_kernel

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
    run = compiled_kernel(type) or definition.run
    assert run is not None
    return lambda: run(np, *values, **keywords)


def random(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def backward(torch: Any, build: Call, leaves: list[Any]) -> Call:
    """The gradient alone of a graph that `build` makes once."""
    out = build()
    head = torch.ones_like(out)
    return lambda: torch.autograd.grad(out, leaves, head, retain_graph=True)


#: (name, images, filters, stride, padding, dilation, is the images' gradient wanted)
CONVS = (
    ("16x64x28x28, 64 of 3x3", (16, 64, 28, 28), (64, 64, 3, 3), 1, 1, 1, True),
    ("64x1x28x28, 20 of 5x5", (64, 1, 28, 28), (20, 1, 5, 5), 1, 0, 1, False),
    ("64x20x12x12, 50 of 5x5", (64, 20, 12, 12), (50, 20, 5, 5), 1, 0, 1, True),
    ("8x64x56x56, 128 of 3x3 / 2", (8, 64, 56, 56), (128, 64, 3, 3), 2, 1, 1, True),
    ("8x3x112x112, 32 of 7x7 / 2", (8, 3, 112, 112), (32, 3, 7, 7), 2, 3, 1, False),
    ("8x3x56x56, 64 of 3x3", (8, 3, 56, 56), (64, 3, 3, 3), 1, 1, 1, False),
    ("16x256x14x14, 64 of 1x1", (16, 256, 14, 14), (64, 256, 1, 1), 1, 0, 1, True),
    ("8x64x56x56, 128 of 1x1 / 2", (8, 64, 56, 56), (128, 64, 1, 1), 2, 0, 1, True),
    ("8x128x14x14, 128 of 3x3", (8, 128, 14, 14), (128, 128, 3, 3), 1, 1, 1, True),
    ("8x64x28x28, 64 of 3x3, dilated", (8, 64, 28, 28), (64, 64, 3, 3), 1, 2, 2, True),
    ("8x128x28x28, 32 groups, 3x3", (8, 128, 28, 28), (128, 4, 3, 3), 1, 1, 1, True),
    ("8x64x28x28, depthwise 3x3", (8, 64, 28, 28), (64, 1, 3, 3), 1, 1, 1, True),
    ("8x64x56x56, depthwise 3x3 / 2", (8, 64, 56, 56), (64, 1, 3, 3), 2, 1, 1, True),
    ("8x64x28x28, depthwise 5x5", (8, 64, 28, 28), (64, 1, 5, 5), 1, 2, 1, True),
    ("8x256x14x14, depthwise 3x3", (8, 256, 14, 14), (256, 1, 3, 3), 1, 1, 1, True),
)


def conv_pair(
    torch: Any,
    type: str,
    name: str,
    peer: Callable[..., Any],
    inputs: tuple[Any, Any],
    attrs: dict[str, Any],
    wants_x: bool = True,
) -> Iterator[tuple[str, Call, Call]]:
    """Forward and backward of one convolution; peer(x, w) is PyTorch's."""
    tx = torch.tensor(inputs[0], requires_grad=wants_x)
    tw = torch.tensor(inputs[1], requires_grad=True)
    given = {"Input": inputs[0], "Filter": inputs[1]}
    ours = bind(type, given, **attrs)
    yield f"{name}, forward", ours, lambda: peer(tx, tw)
    given = {**given, "Output@GRAD": np.ones_like(ours())}
    wants = ["Input@GRAD", "Filter@GRAD"] if wants_x else ["Filter@GRAD"]
    leaves = [tx, tw] if wants_x else [tw]
    yield (
        f"{name}, backward",
        bind(f"{type}_grad", given, wants, **attrs),
        backward(torch, lambda: peer(tx, tw), leaves),
    )


def conv_cases(torch: Any) -> Iterator[tuple[str, Call, Call]]:
    f = torch.nn.functional
    for name, x_shape, w_shape, stride, pad, dilation, wants_x in CONVS:
        groups = x_shape[1] // w_shape[1]
        attrs: dict[str, Any] = {
            "strides": [stride] * 2,
            "paddings": [pad] * 2,
            "dilations": [dilation] * 2,
            "groups": groups,
        }
        peer = partial(
            f.conv2d, stride=stride, padding=pad, dilation=dilation, groups=groups
        )
        inputs = random(*x_shape), random(*w_shape)
        yield from conv_pair(
            torch, "conv2d", f"conv {name}", peer, inputs, attrs, wants_x
        )
    yield from conv_pair(
        torch,
        "conv2d_transpose",
        "conv transposed 16x64x14x14, 32 of 4x4 / 2",
        partial(f.conv_transpose2d, stride=2, padding=1),
        (random(16, 64, 14, 14), random(64, 32, 4, 4)),
        {"strides": [2, 2], "paddings": [1, 1]},
    )
    yield from conv_pair(
        torch,
        "conv3d",
        "conv 2x16x8x28x28, 32 of 3x3x3",
        partial(f.conv3d, padding=1),
        (random(2, 16, 8, 28, 28), random(32, 16, 3, 3, 3)),
        {"paddings": [1, 1, 1]},
    )


#: images, window, stride, padding; no window: global
POOLS = (
    ((64, 20, 24, 24), 2, 2, 0),
    ((64, 50, 8, 8), 2, 2, 0),
    ((8, 64, 56, 56), 3, 2, 1),
    ((8, 64, 28, 28), 3, 1, 1),
    ((2, 16, 8, 28, 28), 2, 2, 0),
    ((16, 256, 7, 7), 0, 1, 0),
)


def pool_cases(torch: Any) -> Iterator[tuple[str, Call, Call]]:
    for shape, k, s, p in POOLS:
        for kind in ("max", "avg"):
            yield from pool_pair(torch, kind, shape, k, s, p)
    x = random(16, 128, 14, 14)
    peer = partial(torch.nn.functional.adaptive_avg_pool2d, output_size=4)
    attrs: dict[str, Any] = {"pooling_type": "avg", "ksize": [4, 4], "adaptive": True}
    name = "avg pool 16x128x14x14, adaptive to 4x4"
    yield from pool_calls(torch, "pool2d", name, peer, x, attrs)


def pool_pair(
    torch: Any, kind: str, shape: tuple[int, ...], k: int, s: int, p: int
) -> Iterator[tuple[str, Call, Call]]:
    f = torch.nn.functional
    dims = len(shape) - 2
    attrs: dict[str, Any] = {
        "pooling_type": kind,
        "ksize": [k or 1] * dims,
        "strides": [s] * dims,
        "paddings": [p] * dims,
        "exclusive": False,
        "global_pooling": k == 0,
    }
    name = f"{kind} pool {'x'.join(map(str, shape))}, "
    if k:
        name += f"{'x'.join([str(k)] * dims)} / {s}"
        peer = partial(
            getattr(f, f"{kind}_pool{dims}d"), kernel_size=k, stride=s, padding=p
        )
    else:
        name += "global"
        peer = partial(getattr(f, f"adaptive_{kind}_pool{dims}d"), output_size=1)
    yield from pool_calls(torch, f"pool{dims}d", name, peer, random(*shape), attrs)


def pool_calls(
    torch: Any,
    type: str,
    name: str,
    peer: Callable[..., Any],
    x: Any,
    attrs: dict[str, Any],
) -> Iterator[tuple[str, Call, Call]]:
    tx = torch.tensor(x, requires_grad=True)
    ours = bind(type, {"X": x}, **attrs)
    out = ours()
    yield f"{name}, forward", ours, lambda: peer(tx)
    given = {"X": x, "Out": out, "Out@GRAD": np.ones_like(out)}
    yield (
        f"{name}, backward",
        bind(f"{type}_grad", given, **attrs),
        backward(torch, lambda: peer(tx), [tx]),
    )


def measure(ours: Call, theirs: Call, seconds: float) -> tuple[float, float]:
    """Lower quartiles of both in milliseconds, called in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for call in (ours, theirs):
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[1]) < 5:
        for call, into in zip((ours, theirs), times):
            start = time.perf_counter()
            call()
            into.append((time.perf_counter() - start) * 1e3)
    mine, peer = (sorted(t)[len(t) // 4] for t in times)
    return mine, peer


def report(families: Sequence[Callable[[Any], Iterator[Any]]], title: str) -> None:
    """Measure the cases of these families whose name the command line asks for."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("pattern", nargs="?", default="", help="regular expression")
    parser.add_argument("--seconds", type=float, default=1.0, help="per line")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    print(f"{'':55} {'ours':>8} {'torch':>8} {'ratio':>6}")
    for family in families:
        for name, ours, theirs in family(torch):
            if re.search(options.pattern, name):
                mine, peer = measure(ours, theirs, options.seconds)
                print(f"{name:55} {mine:8.3f} {peer:8.3f} {mine / peer:6.2f}")


if __name__ == "__main__":
    report((conv_cases, pool_cases), __doc__.split("\n")[0])
