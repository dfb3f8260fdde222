"""Reviews of films with their sentiment: 25,000 for training, 25,000 for testing.

A sample is (word numbers, label); 0 stands for a positive review, 1 for a negative.
The file is the Large Movie Review Dataset (aclImdb v1).
"""

from __future__ import annotations

import re
import string
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from . import common

__all__ = [
    "build_dict",
    "fetch",
    "reader_creator",
    "test",
    "tokenize",
    "train",
    "word_dict",
]

URL = "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz"
MD5 = "7c2ac02c03563afcf9b574c7e56c153a"

Reader = Callable[[], Iterator[Any]]
_PUNCTUATION = string.punctuation.encode()


def tokenize(pattern: Any) -> Iterator[list[bytes]]:
    """The words of each file whose name matches: lower case, no punctuation."""
    with tarfile.open(common.download(URL, "imdb", MD5)) as file:
        # in the order of the archive: seeking back in it would unpack it again
        for member in file:
            if member.isfile() and pattern.match(member.name):
                held = file.extractfile(member)
                assert held is not None
                text = held.read().rstrip(b"\n\r")
                yield text.translate(None, _PUNCTUATION).lower().split()


def build_dict(pattern: Any, cutoff: int) -> dict[Any, int]:
    """Word -> number, by falling frequency, of words more frequent than `cutoff`.

    Words are bytes, and the last entry is ``"<unk>"``, as in the reference.
    """
    counts: Counter[bytes] = Counter()
    for words in tokenize(pattern):
        counts.update(words)
    kept = [(word, n) for word, n in counts.items() if n > cutoff]
    kept.sort(key=lambda item: (-item[1], item[0]))
    made: dict[Any, int] = {word: i for i, (word, _) in enumerate(kept)}
    made["<unk>"] = len(made)
    return made


def reader_creator(
    pos_pattern: Any, neg_pattern: Any, word_idx: dict[Any, int]
) -> Reader:
    """A reader of the members whose names match: the positive ones first."""
    unknown = word_idx["<unk>"]

    def numbered(pattern: Any) -> list[list[int]]:
        return [[word_idx.get(w, unknown) for w in ws] for ws in tokenize(pattern)]

    samples = [(words, 0) for words in numbered(pos_pattern)]
    samples += [(words, 1) for words in numbered(neg_pattern)]

    def read() -> Iterator[Any]:
        yield from samples

    return read


def _reader(part: str, word_idx: dict[Any, int]) -> Reader:
    positive, negative = (
        re.compile(rf"aclImdb/{part}/{kind}/.*\.txt$") for kind in ("pos", "neg")
    )
    return reader_creator(positive, negative, word_idx)


def train(word_idx: dict[Any, int]) -> Reader:
    """The reader of the training reviews."""
    return _reader("train", word_idx)


def test(word_idx: dict[Any, int]) -> Reader:
    """The reader of the test reviews."""
    return _reader("test", word_idx)


def word_dict() -> dict[Any, int]:
    """The numbers of the words that occur more than 150 times."""
    name = r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$"
    return build_dict(re.compile(name), 150)


def fetch() -> None:
    """Download the file."""
    common.download(URL, "imdb", MD5)
