# ruff: noqa: PT028  the reader is called `test`
"""Small colour images of 10 or 100 classes: 50,000 for training, 10,000 for testing.

A sample is (3072 float32 in [0, 1]: 32 x 32 red, green, blue; label). The files are the
"python version" of CIFAR-10 and CIFAR-100; their pickles are read by `fluidx.io`'s
restricted unpickler.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fluidx.io.unpickle import loads

from . import common

__all__ = ["fetch", "reader_creator", "test10", "test100", "train10", "train100"]

URL_PREFIX = "https://dataset.bj.bcebos.com/cifar/"
CIFAR10_URL = URL_PREFIX + "cifar-10-python.tar.gz"
CIFAR10_MD5 = "c58f30108f718f92721af3b95e74349a"
CIFAR100_URL = URL_PREFIX + "cifar-100-python.tar.gz"
CIFAR100_MD5 = "eb9058c3a382ffc7106e4002c42a8d85"

Reader = Callable[[], Iterator[Any]]


def _batches(filename: str, sub_name: str) -> Iterator[tuple[Any, list[int]]]:
    """(images, labels) of the members whose name has `sub_name` in it."""
    with tarfile.open(filename) as file:
        for member in file.getmembers():
            if sub_name not in member.name or not member.isfile():
                continue
            held = file.extractfile(member)
            assert held is not None
            found = loads(held.read(), f"{filename}: {member.name}")
            named = {k.decode() if isinstance(k, bytes) else k: found[k] for k in found}
            labels = named.get("labels", named.get("fine_labels"))
            if labels is None or "data" not in named:
                raise ValueError(f"{filename}: {member.name} has no images and labels")
            yield named["data"], labels


def reader_creator(filename: str, sub_name: str, cycle: bool = False) -> Reader:
    """A reader of some members of a file; cycle: begin again at the end, for ever."""

    def read() -> Iterator[Any]:
        while True:
            for images, labels in _batches(filename, sub_name):
                for image, label in zip(images, labels):
                    yield (image / np.float32(255.0)).astype(np.float32), int(label)
            if not cycle:
                return

    return read


def _ten() -> str:
    return common.download(CIFAR10_URL, "cifar", CIFAR10_MD5)


def _hundred() -> str:
    return common.download(CIFAR100_URL, "cifar", CIFAR100_MD5)


def train10(cycle: bool = False) -> Reader:
    """The reader of CIFAR-10's training images."""
    return reader_creator(_ten(), "data_batch", cycle)


def test10(cycle: bool = False) -> Reader:
    """The reader of CIFAR-10's test images."""
    return reader_creator(_ten(), "test_batch", cycle)


def train100() -> Reader:
    """The reader of CIFAR-100's training images."""
    return reader_creator(_hundred(), "train")


def test100() -> Reader:
    """The reader of CIFAR-100's test images."""
    return reader_creator(_hundred(), "test")


def fetch() -> None:
    """Download all files."""
    _ten()
    _hundred()
