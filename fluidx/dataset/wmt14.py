"""Pairs of English and French sentences (a part of WMT-14).

A sample is (source, target, the target's words that follow), word numbers; the source
stands between ``<s>`` and ``<e>``, the target begins with ``<s>``, the last ends with
``<e>``. Pairs with more than 80 words on a side are left out.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from . import common

__all__ = ["fetch", "get_dict", "reader_creator", "test", "train"]

URL_TRAIN = "http://paddlemodels.bj.bcebos.com/wmt/wmt14.tgz"
MD5_TRAIN = "0791583d57d5beb693b9414c5b36798c"
#: files that scripts download by themselves
URL_DEV_TEST = (
    "http://www-lium.univ-lemans.fr/~schwenk/cslm_joint_paper/data/dev+test.tgz"
)
MD5_DEV_TEST = "7d7897317ddd8ba0ae5c5fa7248d3ff5"
URL_MODEL = "http://paddlemodels.bj.bcebos.com/wmt%2Fwmt14.tgz"
MD5_MODEL = "0cb4a5366189b6acba876491c8724fa3"
START, END, UNK = "<s>", "<e>", "<unk>"
UNK_IDX = 2
LONGEST = 80

Reader = Callable[[], Iterator[Any]]


def _path() -> str:
    return common.download(URL_TRAIN, "wmt14", MD5_TRAIN)


def _member(file: tarfile.TarFile, path: str, ending: str) -> Iterator[str]:
    """The lines of the only member with this ending. ValueError: not one."""
    names = [n for n in file.getnames() if n.endswith(ending)]
    if len(names) != 1:
        raise ValueError(f"{path} has {len(names)} members that end in {ending}")
    held = file.extractfile(names[0])
    assert held is not None
    for line in held:
        yield line.decode().strip()


def _dicts(path: str, dict_size: int) -> list[dict[str, int]]:
    """Of the source and of the target language."""
    with tarfile.open(path) as file:
        return [
            {w: i for i, w in enumerate(islice(_member(file, path, end), dict_size))}
            for end in ("src.dict", "trg.dict")
        ]


def reader_creator(tar_file: str, file_name: str, dict_size: int) -> Reader:
    """A reader of the member of an archive whose name ends in `file_name`."""

    def read() -> Iterator[Any]:
        source, target = _dicts(tar_file, dict_size)
        with tarfile.open(tar_file) as file:
            for line in _member(file, tar_file, file_name):
                parts = line.split("\t")
                if len(parts) != 2:
                    continue
                words = [START, *parts[0].split(), END]
                given = [source.get(w, UNK_IDX) for w in words]
                wanted = [target.get(w, UNK_IDX) for w in parts[1].split()]
                if len(given) > LONGEST or len(wanted) > LONGEST:
                    continue
                yield given, [target[START], *wanted], [*wanted, target[END]]

    return read


def train(dict_size: int) -> Reader:
    """The reader of the training pairs, with the first `dict_size` words."""
    return reader_creator(_path(), "train/train", dict_size)


def test(dict_size: int) -> Reader:
    """The reader of the test pairs."""
    return reader_creator(_path(), "test/test", dict_size)


def get_dict(dict_size: int, reverse: bool = True) -> tuple[Any, Any]:
    """(source, target) dictionaries: number -> word; reverse False: word -> number."""
    source, target = _dicts(_path(), dict_size)
    if not reverse:
        return source, target
    return {i: w for w, i in source.items()}, {i: w for w, i in target.items()}


def fetch() -> None:
    """Download the file."""
    _path()
