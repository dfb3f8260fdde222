"""Handwritten digits: 60,000 for training, 10,000 for testing.

A sample is (784 float32 in [-1, 1], label 0 to 9). The files are those of the MNIST
database (IDX format, gzip).
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import common

__all__ = ["fetch", "reader_creator", "test", "train"]

URL_PREFIX = "https://dataset.bj.bcebos.com/mnist/"
TEST_IMAGE_URL = URL_PREFIX + "t10k-images-idx3-ubyte.gz"
TEST_IMAGE_MD5 = "9fb629c4189551a2d022fa330f9573f3"
TEST_LABEL_URL = URL_PREFIX + "t10k-labels-idx1-ubyte.gz"
TEST_LABEL_MD5 = "ec29112dd5afa0611ce80d1b7f02629c"
TRAIN_IMAGE_URL = URL_PREFIX + "train-images-idx3-ubyte.gz"
TRAIN_IMAGE_MD5 = "f68b3c2dcbeaaa9fbdd348bbdeb94873"
TRAIN_LABEL_URL = URL_PREFIX + "train-labels-idx1-ubyte.gz"
TRAIN_LABEL_MD5 = "d53e105ee54ea40749a09fcbcd1e9432"

Reader = Callable[[], Iterator[Any]]


def _idx(path: str, magic: int) -> Any:
    """The array of an IDX file of unsigned bytes. ValueError: it is none."""
    with gzip.open(path, "rb") as file:
        data = file.read()
    rank = magic & 0xFF
    head = struct.unpack_from(f">{rank + 1}I", data)
    array = np.frombuffer(data, np.uint8, offset=4 * (rank + 1))
    if head[0] != magic or array.size != np.prod(head[1:], dtype=np.int64):
        raise ValueError(f"{path} is no IDX file of kind {magic}")
    return array.reshape(head[1:])


def reader_creator(
    image_filename: str, label_filename: str, buffer_size: int
) -> Reader:
    """A reader of two IDX files; buffer_size images are scaled at a time."""

    def read() -> Iterator[Any]:
        images, labels = _idx(image_filename, 2051), _idx(label_filename, 2049)
        for at in range(0, len(labels), buffer_size):
            part = images[at : at + buffer_size].reshape(-1, images[0].size)
            scaled = part.astype(np.float32) / 255.0 * 2.0 - 1.0
            yield from zip(scaled, labels[at : at + buffer_size].tolist())

    return read


def train() -> Reader:
    """The reader of the training images."""
    return reader_creator(
        common.download(TRAIN_IMAGE_URL, "mnist", TRAIN_IMAGE_MD5),
        common.download(TRAIN_LABEL_URL, "mnist", TRAIN_LABEL_MD5),
        100,
    )


def test() -> Reader:
    """The reader of the test images."""
    return reader_creator(
        common.download(TEST_IMAGE_URL, "mnist", TEST_IMAGE_MD5),
        common.download(TEST_LABEL_URL, "mnist", TEST_LABEL_MD5),
        100,
    )


def fetch() -> None:
    """Download all files."""
    train()
    test()
