"""Film reviews with their sentiment: 1,600 for training, 400 for testing.

A sample is (word numbers, label): 0 negative, 1 positive, in turn. The file is NLTK's
corpus movie_reviews; words are runs of letters and digits, or of other signs.
"""

from __future__ import annotations

import functools
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

from . import common

__all__ = ["fetch", "get_word_dict", "test", "train"]

URL = "https://corpora.bj.bcebos.com/movie_reviews%2Fmovie_reviews.zip"
MD5 = "155de2b77c6834dd8eea7cbe88e93acb"
NUM_TRAINING_INSTANCES = 1600
NUM_TOTAL_INSTANCES = 2000
_WORD = re.compile(r"\w+|[^\w\s]+")


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
    # words of equal frequency: those of negative reviews first, as they come
    for words, _ in sorted(_reviews(path), key=lambda review: review[1]):
        counts.update(words)
    return [(word, i) for i, (word, _) in enumerate(counts.most_common())]


def get_word_dict() -> list[tuple[str, int]]:
    """(word, number) by falling frequency."""
    return list(_numbers(_path()))


def _samples(first: int, last: int) -> Iterator[Any]:
    path = _path()
    numbers = dict(_numbers(path))
    for words, label in _reviews(path)[first:last]:
        yield [numbers[w] for w in words], label


def train() -> Iterator[Any]:
    """The training reviews. As in the reference, this is a reader by itself."""
    return _samples(0, NUM_TRAINING_INSTANCES)


def test() -> Iterator[Any]:
    """The test reviews; a reader by itself."""
    return _samples(NUM_TRAINING_INSTANCES, NUM_TOTAL_INSTANCES)


def fetch() -> None:
    """Download the file."""
    _path()
