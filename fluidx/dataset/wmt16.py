# ruff: noqa: PT028  the reader is called `test`
"""Pairs of English and German sentences (Multi30K, as in WMT-16).

A sample is (source, target, the target's words that follow), word numbers, as in
`wmt14`. Dictionaries are made of the training sentences: ``<s>``, ``<e>``, ``<unk>``,
then the words by falling frequency.
"""

from __future__ import annotations

import functools
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from . import common

__all__ = ["fetch", "get_dict", "reader_creator", "test", "train", "validation"]

DATA_URL = "http://paddlemodels.bj.bcebos.com/wmt/wmt16.tar.gz"
DATA_MD5 = "0c38be43600334966403524a40dcd81e"
TOTAL_EN_WORDS = 11250
TOTAL_DE_WORDS = 19220
START_MARK, END_MARK, UNK_MARK = "<s>", "<e>", "<unk>"

Reader = Callable[[], Iterator[Any]]


def _path() -> str:
    return common.download(DATA_URL, "wmt16", DATA_MD5, "wmt16.tar.gz")


def _pairs(path: str, part: str) -> Iterator[tuple[list[str], list[str]]]:
    """(English words, German words)."""
    with tarfile.open(path) as file:
        held = file.extractfile(part)
        assert held is not None
        for line in held:
            sides = line.decode().strip().split("\t")
            if len(sides) == 2:
                yield sides[0].split(), sides[1].split()


@functools.lru_cache(maxsize=4)
def _words(path: str, lang: str) -> list[str]:
    """All words of the training sentences, by falling frequency."""
    side = 0 if lang == "en" else 1
    counts: Counter[str] = Counter()
    for pair in _pairs(path, "wmt16/train"):
        counts.update(pair[side])
    ordered = sorted(counts, key=lambda w: -counts[w])
    return [START_MARK, END_MARK, UNK_MARK, *ordered]


def _checked(lang: str) -> str:
    if lang not in ("en", "de"):
        raise ValueError(f"wmt16: the languages are 'en' and 'de', got {lang!r}")
    return lang


def get_dict(lang: str, dict_size: int, reverse: bool = False) -> dict[Any, Any]:
    """Word -> number of the first `dict_size` words; reverse: number -> word."""
    made = _dict(_path(), lang, dict_size)
    return {i: w for w, i in made.items()} if reverse else made


def _dict(path: str, lang: str, dict_size: int) -> dict[str, int]:
    most = TOTAL_EN_WORDS if _checked(lang) == "en" else TOTAL_DE_WORDS
    words = _words(path, lang)[: min(dict_size, most)]
    return {w: i for i, w in enumerate(words)}


def reader_creator(
    tar_file: str,
    file_name: str,
    src_dict_size: int,
    trg_dict_size: int,
    src_lang: str,
) -> Reader:
    """A reader of a member of an archive, ``wmt16/train`` or its like."""
    other = "de" if _checked(src_lang) == "en" else "en"
    source = _dict(tar_file, src_lang, src_dict_size)
    target = _dict(tar_file, other, trg_dict_size)
    start, end, unknown = 0, 1, 2

    def read() -> Iterator[Any]:
        for pair in _pairs(tar_file, file_name):
            given, wanted = pair if src_lang == "en" else pair[::-1]
            numbers = [source.get(w, unknown) for w in given]
            ids = [target.get(w, unknown) for w in wanted]
            yield [start, *numbers, end], [start, *ids], [*ids, end]

    return read


def _reader(part: str, src_size: int, trg_size: int, src_lang: str) -> Reader:
    return reader_creator(_path(), f"wmt16/{part}", src_size, trg_size, src_lang)


def train(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """The reader of the training pairs."""
    return _reader("train", src_dict_size, trg_dict_size, src_lang)


def test(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """The reader of the test pairs."""
    return _reader("test", src_dict_size, trg_dict_size, src_lang)


def validation(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Reader:
    """The reader of the validation pairs."""
    return _reader("val", src_dict_size, trg_dict_size, src_lang)


def fetch() -> None:
    """Download the file."""
    _path()
