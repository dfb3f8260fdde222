"""Film reviews with their sentiment: 1,600 for training, 400 for testing.

A sample is (word numbers, label): 0 negative, 1 positive, in turn. The file is NLTK's
corpus movie_reviews; words are runs of letters and digits, or of other signs.
"""

from __future__ import annotations

import functools
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from . import common

__all__ = ["fetch", "get_word_dict", "test", "train"]

URL = "https://corpora.bj.bcebos.com/movie_reviews%2Fmovie_reviews.zip"
MD5 = "155de2b77c6834dd8eea7cbe88e93acb"
NUM_TRAINING_INSTANCES = 1600
NUM_TOTAL_INSTANCES = 2000
_WORD = re.compile(r"\w+|[^\w\s]+")

Reader = Callable[[], Iterator[Any]]


def _path() -> str:
    return common.download(URL, "corpora", MD5, "movie_reviews.zip")


@functools.lru_cache(maxsize=2)
def _reviews(path: str) -> list[tuple[list[str], int]]:
    """(words, label); a negative and a positive one in turn."""
    with zipfile.ZipFile(path) as file:

        def words(kind: str) -> list[list[str]]:
            names = sorted(n for n in file.namelist() if f"/{kind}/" in n)
            texts = (file.read(n).decode() for n in names if n.endswith(".txt"))
            return [_WORD.findall(text.lower()) for text in texts]

        pairs = zip(words("neg"), words("pos"))
        return list(chain.from_iterable([(n, 0), (p, 1)] for n, p in pairs))


@functools.lru_cache(maxsize=2)
def _numbers(path: str) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    for words, _ in _reviews(path):
        counts.update(words)
    ordered = sorted(counts, key=lambda w: (-counts[w], w))
    return [(word, i) for i, word in enumerate(ordered)]


def get_word_dict() -> list[tuple[str, int]]:
    """(word, number) by falling frequency."""
    return list(_numbers(_path()))


def _reader(first: int, last: int) -> Reader:
    path = _path()

    def read() -> Iterator[Any]:
        numbers = dict(_numbers(path))
        for words, label in _reviews(path)[first:last]:
            yield [numbers[w] for w in words], label

    return read


def train() -> Reader:
    """The reader of the training reviews."""
    return _reader(0, NUM_TRAINING_INSTANCES)


def test() -> Reader:
    """The reader of the test reviews."""
    return _reader(NUM_TRAINING_INSTANCES, NUM_TOTAL_INSTANCES)


def fetch() -> None:
    """Download the file."""
    _path()
