"""Pictures with the kind of thing at each pixel (PASCAL VOC 2012, segmentation).

A sample is (uint8 [height, width, 3]: red, green, blue; uint8 [height, width]: class of
each pixel, 255 at borders). Needs Pillow. As in the reference, `train` reads the list
"trainval", `test` the list "train".
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import common
from .image import opened

__all__ = ["fetch", "test", "train", "val"]

VOC_URL = "http://host.robots.ox.ac.uk/pascal/VOC/voc2012/VOCtrainval_11-May-2012.tar"
VOC_MD5 = "6cd6e144f989b92b3379bac3b3de84fd"
_HOME = "VOCdevkit/VOC2012/"
SET_FILE = _HOME + "ImageSets/Segmentation/{}.txt"
DATA_FILE = _HOME + "JPEGImages/{}.jpg"
LABEL_FILE = _HOME + "SegmentationClass/{}.png"
CACHE_DIR = "voc2012"

Reader = Callable[[], Iterator[Any]]


def reader_creator(filename: str, sub_name: str) -> Reader:
    """A reader of the pictures that one of the archive's lists names."""

    def read() -> Iterator[Any]:
        with tarfile.open(filename) as file:

            def member(name: str) -> bytes:
                held = file.extractfile(name)
                assert held is not None
                return held.read()

            for name in member(SET_FILE.format(sub_name)).decode().split():
                pair = (DATA_FILE.format(name), LABEL_FILE.format(name))
                yield tuple(np.array(opened(member(path), path)) for path in pair)

    return read


def _reader(sub_name: str) -> Reader:
    return reader_creator(common.download(VOC_URL, CACHE_DIR, VOC_MD5), sub_name)


def train() -> Reader:
    """The reader of all pictures that have classes: 2,913."""
    return _reader("trainval")


def test() -> Reader:
    """The reader of the first half of them: 1,464."""
    return _reader("train")


def val() -> Reader:
    """The reader of the other half: 1,449."""
    return _reader("val")


def fetch() -> None:
    """Download the file."""
    common.download(VOC_URL, CACHE_DIR, VOC_MD5)
