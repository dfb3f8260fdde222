# ruff: noqa: PT028  the reader is called `test`
"""Pictures of 102 kinds of flowers (Oxford 102): 6,149 to train, 1,020 to test.

A sample is (150,528 float32: blue, green and red of 224 x 224, less a mean; label from
0 on), as the mapper makes it of (bytes of a JPEG file, label). Reading them needs
scipy, and OpenCV or Pillow. As in the reference, the larger part is for training: the
authors' list ``tstid``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fluidx.reader import map_readers, xmap_readers

from . import common, samples
from .image import batch_images_from_tar, load_image_bytes, simple_transform

__all__ = ["fetch", "test", "train", "valid"]

_HOME = "http://paddlemodels.bj.bcebos.com/flowers/"
DATA_URL = f"{_HOME}102flowers.tgz"
LABEL_URL = f"{_HOME}imagelabels.mat"
SETID_URL = f"{_HOME}setid.mat"
DATA_MD5 = "52808999861908f626f3c1f4e79d11fa"
LABEL_MD5 = "e0620be6f572b9609742df49c70aed4d"
SETID_MD5 = "a5357ecc9cb78c4bef273ce3793fc85c"
TRAIN_FLAG, TEST_FLAG, VALID_FLAG = "tstid", "trnid", "valid"
_MEAN = [103.94, 116.78, 123.68]

Reader = Callable[[], Iterable[Any]]
Mapper = Callable[[Any], Any]


def default_mapper(is_train: bool, sample: tuple[bytes, int]) -> tuple[Any, int]:
    """(bytes, label) -> (flat float32 picture of 224 x 224, label)."""
    data, label = sample
    im = load_image_bytes(data)
    im = simple_transform(im, 256, 224, is_train, mean=_MEAN)
    return im.flatten().astype("float32"), label


train_mapper = functools.partial(default_mapper, True)
test_mapper = functools.partial(default_mapper, False)


def reader_creator(
    data_file: str,
    label_file: str,
    setid_file: str,
    dataset_name: str,
    mapper: Mapper,
    buffered_size: int = 1024,
    use_xmap: bool = True,
    cycle: bool = False,
) -> Reader:
    """A reader of one of the lists of `setid_file`, in the order of the archive.

    use_xmap: threads apply the mapper, `buffered_size` samples ahead, and order is
    lost. cycle: begin again at the end, for ever.
    """
    labels = _table(label_file, "labels")
    chosen = _table(setid_file, dataset_name)
    wanted = {
        f"jpg/image_{int(number):05d}.jpg": int(labels[int(number) - 1])
        for number in chosen
    }
    listing = batch_images_from_tar(data_file, dataset_name, wanted)

    def read() -> Iterator[Any]:
        while True:
            with open(listing) as lines:
                paths = lines.read().split("\n")
            for path in filter(None, paths):
                with open(path, "rb") as file:
                    batch = samples.load(file)
                for data, label in zip(batch["data"], batch["label"]):
                    yield data, int(label) - 1
            if not cycle:
                return

    if use_xmap:
        threads = min(4, os.cpu_count() or 1)
        return xmap_readers(mapper, read, threads, buffered_size)
    return map_readers(mapper, read)


def _table(path: str, name: str) -> Any:
    """A table of a MAT-file, flat. ImportError: scipy is not there."""
    try:
        from scipy.io import loadmat
    except ImportError:
        raise ImportError(
            "the labels of flowers are in MAT-files: pip install scipy",
            name="scipy",
        ) from None
    return loadmat(path)[name].reshape(-1)


def _part(name: str, mapper: Mapper, size: int, use_xmap: bool, cycle: bool) -> Reader:
    return reader_creator(*_paths(), name, mapper, size, use_xmap, cycle)


def train(
    mapper: Mapper = train_mapper,
    buffered_size: int = 1024,
    use_xmap: bool = True,
    cycle: bool = False,
) -> Reader:
    """The reader of the training pictures; see `reader_creator`."""
    return _part(TRAIN_FLAG, mapper, buffered_size, use_xmap, cycle)


def test(
    mapper: Mapper = test_mapper,
    buffered_size: int = 1024,
    use_xmap: bool = True,
    cycle: bool = False,
) -> Reader:
    """The reader of the test pictures."""
    return _part(TEST_FLAG, mapper, buffered_size, use_xmap, cycle)


def valid(
    mapper: Mapper = test_mapper, buffered_size: int = 1024, use_xmap: bool = True
) -> Reader:
    """The reader of the pictures for validation."""
    return _part(VALID_FLAG, mapper, buffered_size, use_xmap, False)


def _paths() -> tuple[str, str, str]:
    return (
        common.download(DATA_URL, "flowers", DATA_MD5),
        common.download(LABEL_URL, "flowers", LABEL_MD5),
        common.download(SETID_URL, "flowers", SETID_MD5),
    )


def fetch() -> None:
    """Download all files."""
    _paths()
