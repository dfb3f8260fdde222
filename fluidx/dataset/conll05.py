"""Sentences with the roles of their words (the test part of CoNLL-2005).

A sample is one verb of a sentence: (words, the verb's neighbours at -2, -1, 0, 1, 2,
the verb, marks of the neighbourhood, labels); nine lists of the sentence's length.
Labels are B-x for the first word of an argument, I-x for the others, O outside.
"""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable, Iterator
from typing import Any

from . import common

__all__ = [
    "corpus_reader",
    "fetch",
    "get_dict",
    "get_embedding",
    "load_dict",
    "load_label_dict",
    "reader_creator",
    "test",
]

_HOME = "http://paddlemodels.bj.bcebos.com/conll05st"
DATA_URL = f"{_HOME}/conll05st-tests.tar.gz"
DATA_MD5 = "387719152ae52d60422c016e92a742fc"
WORDDICT_URL = f"{_HOME}%2FwordDict.txt"
WORDDICT_MD5 = "ea7fb7d4c75cc6254716f0177a506baa"
VERBDICT_URL = f"{_HOME}%2FverbDict.txt"
VERBDICT_MD5 = "0d2977293bbb6cbefab5b0f97db1e77c"
TRGDICT_URL = f"{_HOME}%2FtargetDict.txt"
TRGDICT_MD5 = "d8c7f03ceb5fc2e5a0fa7503a4353751"
EMB_URL = f"{_HOME}%2Femb"
EMB_MD5 = "bf436eb0faa1f6f9103017f8be57cdb7"
UNK_IDX = 0
_WORDS = "conll05st-release/test.wsj/words/test.wsj.words.gz"
_PROPS = "conll05st-release/test.wsj/props/test.wsj.props.gz"

Corpus = Callable[[], Iterator[tuple[list[str], str, list[str]]]]


def load_dict(filename: str) -> dict[str, int]:
    """Line -> its number."""
    with open(filename) as file:
        return {line.strip(): i for i, line in enumerate(file)}


def load_label_dict(filename: str) -> dict[str, int]:
    """B- and I- labels of each role -> number, in the order of the file; then O."""
    roles: dict[str, None] = {}
    with open(filename) as file:
        for line in file:
            label = line.strip()
            if label.startswith(("B-", "I-")):
                roles.setdefault(label[2:])
    labels = [f"{kind}-{role}" for role in roles for kind in "BI"]
    return {label: i for i, label in enumerate([*labels, "O"])}


def _labels(column: list[str]) -> list[str]:
    """BIO labels from brackets: ``(A0*``, ``*``, ``*)``. ValueError: other text."""
    found, role = [], ""
    for text in column:
        begin, star, end = text.partition("*")
        if not star or (begin and not begin.startswith("(")) or end not in ("", ")"):
            raise ValueError(f"conll05: unknown bracket {text!r}")
        if begin:
            role = begin[1:]
            found.append(f"B-{role}")
        else:
            found.append(f"I-{role}" if role else "O")
        if end:
            role = ""
    return found


def _sentences(path: str, name: str) -> Iterator[list[list[str]]]:
    """The columns' texts of each line, by sentence."""
    with tarfile.open(path) as file:
        held = file.extractfile(name)
        assert held is not None
        with gzip.open(held, "rt") as lines:
            rows: list[list[str]] = []
            for line in lines:
                if line.split():
                    rows.append(line.split())
                elif rows:
                    yield rows
                    rows = []
            if rows:
                yield rows


def corpus_reader(data_path: str, words_name: str, props_name: str) -> Corpus:
    """A reader of (words, verb, labels), one for each verb of a sentence."""

    def read() -> Iterator[tuple[list[str], str, list[str]]]:
        pairs = zip(
            _sentences(data_path, words_name), _sentences(data_path, props_name)
        )
        for words, props in pairs:
            texts = [row[0] for row in words]
            verbs = [row[0] for row in props if row[0] != "-"]
            for number, verb in enumerate(verbs, 1):
                yield texts, verb, _labels([row[number] for row in props])

    return read


def reader_creator(
    corpus_reader: Corpus,
    word_dict: dict[str, int],
    predicate_dict: dict[str, int],
    label_dict: dict[str, int],
) -> Callable[[], Iterator[Any]]:
    """A reader of samples, as at the top of this module."""

    def read() -> Iterator[Any]:
        for words, verb, labels in corpus_reader():
            length, at = len(words), labels.index("B-V")
            near, marks = [], [0] * length
            for place in range(at - 2, at + 3):
                if 0 <= place < length:
                    near.append(words[place])
                    marks[place] = 1
                else:
                    near.append("bos" if place < 0 else "eos")
            yield (
                [word_dict.get(w, UNK_IDX) for w in words],
                *([word_dict.get(w, UNK_IDX)] * length for w in near),
                [predicate_dict[verb]] * length,
                marks,
                [label_dict[label] for label in labels],
            )

    return read


def get_dict() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """The dictionaries of words, verbs and labels."""
    return (
        load_dict(common.download(WORDDICT_URL, "conll05st", WORDDICT_MD5)),
        load_dict(common.download(VERBDICT_URL, "conll05st", VERBDICT_MD5)),
        load_label_dict(common.download(TRGDICT_URL, "conll05st", TRGDICT_MD5)),
    )


def get_embedding() -> str:
    """The path of a file with word vectors."""
    return common.download(EMB_URL, "conll05st", EMB_MD5)


def test() -> Callable[[], Iterator[Any]]:
    """The reader of the test sentences; the training part is not free."""
    path = common.download(DATA_URL, "conll05st", DATA_MD5)
    return reader_creator(corpus_reader(path, _WORDS, _PROPS), *get_dict())


def fetch() -> None:
    """Download all files."""
    get_dict()
    get_embedding()
    common.download(DATA_URL, "conll05st", DATA_MD5)
