# ruff: noqa: PT028  the reader is called `test`
"""Sentences of the Penn Treebank, as language models use them.

NGRAM: a sample is a tuple of n word numbers. SEQ: a sample is (words, the words that
follow). The file is Mikolov's "simple examples".
"""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import common

__all__ = [
    "DataType",
    "build_dict",
    "fetch",
    "reader_creator",
    "test",
    "train",
    "word_count",
]

URL = "https://dataset.bj.bcebos.com/imikolov%2Fsimple-examples.tgz"
MD5 = "30177ea32e27c525793142b6bf2c8e2d"
_TRAIN = "simple-examples/data/ptb.train.txt"
_VALID = "simple-examples/data/ptb.valid.txt"

Reader = Callable[[], Iterator[Any]]


class DataType:
    """The kinds of samples."""

    NGRAM = 1
    SEQ = 2


def _lines(name: str) -> list[list[bytes]]:
    """The words of each line of a member."""
    path = common.download(URL, "imikolov", MD5)
    with tarfile.open(path) as file:
        for member in file:
            if member.name.removeprefix("./") == name.removeprefix("./"):
                held = file.extractfile(member)
                assert held is not None
                return [line.split() for line in held]
    raise ValueError(f"{path} has no {name}")


def word_count(f: Iterable[Any], word_freq: Any = None) -> dict[Any, int]:
    """Word -> how often it occurs in these lines; added to `word_freq`, if given.

    Lines are bytes, or lists of words.
    """
    counts: dict[Any, int] = Counter() if word_freq is None else word_freq
    for line in f:
        words = line if isinstance(line, list) else line.split()
        for word in (*words, "<s>", "<e>"):
            counts[word] = counts.get(word, 0) + 1
    return counts


def build_dict(min_word_freq: int = 50) -> dict[Any, int]:
    """Word -> number, by falling frequency, of words more frequent than that.

    Words are bytes; ``"<s>"`` and ``"<e>"`` count once per sentence, and the last entry
    is ``"<unk>"``, as in the reference.
    """
    counts: Counter[Any] = Counter()
    for name in (_TRAIN, _VALID):
        word_count(_lines(name), counts)
    kept = [(word, n) for word, n in counts.items() if n > min_word_freq]
    kept.sort(key=lambda item: (-item[1], _text(item[0])))
    made = {word: i for i, (word, _) in enumerate(kept)}
    made["<unk>"] = len(made)
    return made


def _text(word: Any) -> bytes:
    return word if isinstance(word, bytes) else word.encode()


def reader_creator(
    filename: str, word_idx: dict[Any, int], n: int, data_type: int
) -> Reader:
    """A reader of a member of the archive; see `train`."""
    if data_type not in (DataType.NGRAM, DataType.SEQ):
        raise ValueError(f"imikolov: there is no data type {data_type!r}")
    if data_type == DataType.NGRAM and n < 1:
        raise ValueError(f"imikolov: n-grams need a positive n, got {n}")
    unknown = word_idx["<unk>"]
    start, end = word_idx["<s>"], word_idx["<e>"]

    def read() -> Iterator[Any]:
        for line in _lines(filename):
            words = [word_idx.get(w, unknown) for w in line]
            if data_type == DataType.SEQ:
                source, target = [start, *words], [*words, end]
                if n <= 0 or len(source) <= n:
                    yield source, target
                continue
            whole = [start, *words, end]
            for at in range(n, len(whole) + 1):
                yield tuple(whole[at - n : at])

    return read


def train(word_idx: dict[Any, int], n: int, data_type: int = DataType.NGRAM) -> Reader:
    """The reader of the training sentences; SEQ: of those up to n long (0: all)."""
    return reader_creator(_TRAIN, word_idx, n, data_type)


def test(word_idx: dict[Any, int], n: int, data_type: int = DataType.NGRAM) -> Reader:
    """The reader of the validation sentences."""
    return reader_creator(_VALID, word_idx, n, data_type)


def fetch() -> None:
    """Download the file."""
    common.download(URL, "imikolov", MD5)
