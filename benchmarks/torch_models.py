"""The six training steps of `models.py` on PyTorch eager.

    python benchmarks/torch_models.py [--threads N] [NAME ...]

Prints one JSON object: name -> median milliseconds per step.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

Step = Callable[[], Any]


def step(model: Any, optimizer: Any, x: Any, y: Any, cost: Any) -> Step:
    def run() -> Any:
        optimizer.zero_grad()
        loss = cost(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return run


def tiny() -> Step:
    m = nn.Linear(13, 1)
    sgd = torch.optim.SGD(m.parameters(), 0.01)
    return step(m, sgd, torch.rand(20, 13), torch.rand(20, 1), F.mse_loss)


def classifier(m: Any, x: Any, classes: int) -> Step:
    labels = torch.randint(0, classes, (len(x),))
    return step(m, torch.optim.Adam(m.parameters()), x, labels, F.cross_entropy)


def mlp() -> Step:
    parts = [nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU()]
    m = nn.Sequential(*parts, nn.Linear(200, 10))
    return classifier(m, torch.rand(128, 784), 10)


def lenet() -> Step:
    first = [nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2, 2), nn.BatchNorm2d(20)]
    second = [nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()]
    m = nn.Sequential(*first, *second, nn.Linear(800, 10))
    return classifier(m, torch.rand(64, 1, 28, 28), 10)


class Ctr(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(100001, 10, sparse=True)
        sizes = [273, 400, 400, 400]
        parts: list[nn.Module] = []
        for a, b in zip(sizes, sizes[1:]):
            parts += [nn.Linear(a, b), nn.ReLU()]
        self.top = nn.Sequential(*parts, nn.Linear(400, 2))

    def forward(self, inputs: Any) -> Any:
        dense, ids = inputs
        return self.top(torch.cat([self.table(ids).flatten(1), dense], 1))


def ctr() -> Step:
    m = Ctr()
    x = (torch.rand(1000, 13), torch.randint(0, 100001, (1000, 26)))
    labels = torch.randint(0, 2, (1000,))
    return step(m, torch.optim.SGD(m.parameters(), 0.01), x, labels, F.cross_entropy)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv2d(64, 64, 3, padding=1, bias=False) for _ in range(8)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(64) for _ in range(8))
        self.top = nn.Linear(64, 10)

    def forward(self, h: Any) -> Any:
        for i in range(0, 8, 2):
            kept = h
            h = F.relu(self.norms[i](self.convs[i](h)))
            h = F.relu(self.norms[i + 1](self.convs[i + 1](h)) + kept)
        return self.top(h.mean((2, 3)))


def resnet() -> Step:
    return classifier(Residual(), torch.rand(16, 64, 28, 28), 10)


class Transformer(nn.Module):
    """An encoder and a decoder block, norms first."""

    def __init__(self, words: int = 1000, width: int = 512, heads: int = 8) -> None:
        super().__init__()
        sizes: Any = (width, heads, 4 * width)
        how: Any = {"dropout": 0.1, "batch_first": True, "norm_first": True}
        self.source, self.target = (nn.Embedding(words, width) for _ in range(2))
        self.encoder = nn.TransformerEncoderLayer(*sizes, **how)
        self.decoder = nn.TransformerDecoderLayer(*sizes, **how)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.drop, self.factor = nn.Dropout(0.1), width**0.5
        self.top = nn.Linear(width, words)

    def forward(self, inputs: Any) -> Any:
        source, target, source_bias, target_bias = inputs
        x = self.drop(self.source(source) * self.factor)
        memory = self.norms[0](self.encoder(x, source_bias))
        x = self.drop(self.target(target) * self.factor)
        x = self.decoder(x, memory, target_bias, source_bias)
        return self.top(self.norms[1](x)).flatten(0, 1)


def transformer() -> Step:
    m = Transformer()
    source, target = torch.randint(0, 1000, (2, 16, 64))
    later = torch.triu(torch.full((64, 64), -1e9), 1).expand(128, 64, 64)
    x = (source, target, torch.zeros(128, 64, 64), later.contiguous())
    labels = torch.randint(0, 1000, (1024,))
    adam = torch.optim.Adam(m.parameters(), 0.0001)
    cost = nn.CrossEntropyLoss(label_smoothing=0.1)
    return step(m, adam, x, labels, cost)


MODELS = {
    "tiny": (tiny, 1000, 20),
    "mlp": (mlp, 200, 10),
    "lenet": (lenet, 60, 5),
    "ctr": (ctr, 40, 5),
    "resnet": (resnet, 8, 2),
    "transformer": (transformer, 6, 2),
}


def measure(name: str) -> float:
    build, steps, before = MODELS[name]
    torch.manual_seed(0)
    run = build()
    times = []
    for _ in range(before + steps):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return float(np.median(times[before:])) * 1e3


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(json.dumps({n: measure(n) for n in options.names or MODELS}))
