"""Learning to rank: queries with documents, 46 numbers and a relevance each (LETOR 4).

The file is an archive of RAR; it is unpacked by ``unrar``, ``bsdtar`` or ``7z`` where
one of them is installed. Without, unpack it yourself into the data set's folder, so
that ``DATA_HOME/MQ2007/MQ2007/Fold1/train.txt`` is there.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from . import common
from .common import download

__all__ = [
    "Query",
    "QueryList",
    "fetch",
    "gen_list",
    "gen_pair",
    "gen_plain_txt",
    "gen_point",
    "load_from_text",
    "query_filter",
    "test",
    "train",
]

URL = (
    "http://www.bigdatalab.ac.cn/benchmark/upload/download_source/"
    "7b6dbbe2-842c-11e4-a536-bcaec51b9163_MQ2007.rar"
)
MD5 = "7be1640ae95c6408dab0ae7207bdc706"
_FEATURES = 46
_UNPACKERS = {
    "unrar": ("x", "-y", "-inul"),
    "bsdtar": ("-xf",),
    "7z": ("x", "-y", "-bd"),
}


class Query:
    """A document that was found for a query."""

    def __init__(
        self,
        query_id: int = -1,
        relevance_score: int = -1,
        feature_vector: Sequence[float] | None = None,
        description: str = "",
    ) -> None:
        self.query_id = query_id
        self.relevance_score = relevance_score
        self.feature_vector = list(feature_vector or ())
        self.description = description

    def __str__(self) -> str:
        numbers = " ".join(str(value) for value in self.feature_vector)
        return f"{self.relevance_score} {self.query_id} {numbers}"

    @classmethod
    def _of(cls, line: str) -> Query | None:
        """From ``2 qid:10 1:0.5 ... 46:0.1 #docid = x``; None if it is not like it."""
        numbers, _, description = line.partition("#")
        parts = numbers.split()
        if len(parts) != _FEATURES + 2:
            print(
                f"mq2007: expected {_FEATURES + 2} parts, came {len(parts)}",
                file=sys.stderr,
            )
            return None
        values = [float(part.partition(":")[2]) for part in parts[1:]]
        return cls(int(values[0]), int(parts[0]), values[1:], description.strip())


class QueryList:
    """The documents of one query."""

    def __init__(self, querylist: Sequence[Query] | None = None) -> None:
        self.query_id = -1
        self.querylist: list[Query] = []
        for query in querylist or ():
            self._add_query(query)

    def __iter__(self) -> Iterator[Query]:
        return iter(self.querylist)

    def __len__(self) -> int:
        return len(self.querylist)

    def __getitem__(self, index: int) -> Query:
        return self.querylist[index]

    def _correct_ranking_(self) -> None:
        """The most relevant first; the order of equals stays."""
        self.querylist.sort(key=lambda query: -query.relevance_score)

    def _add_query(self, query: Query) -> None:
        if self.query_id == -1:
            self.query_id = query.query_id
        elif self.query_id != query.query_id:
            raise ValueError(
                f"QueryList of query {self.query_id}: got a document of query "
                f"{query.query_id}"
            )
        self.querylist.append(query)


def _ranked(querylist: QueryList | Sequence[Query]) -> QueryList:
    made = querylist if isinstance(querylist, QueryList) else QueryList(querylist)
    made._correct_ranking_()
    return made


def gen_plain_txt(querylist: Any) -> Iterator[tuple[int, int, Any]]:
    """(query's number, relevance, features) of each document, best first."""
    for query in _ranked(querylist):
        yield query.query_id, query.relevance_score, np.array(query.feature_vector)


def gen_point(querylist: Any) -> Iterator[tuple[int, Any]]:
    """(relevance, features) of each document, best first."""
    for query in _ranked(querylist):
        yield query.relevance_score, np.array(query.feature_vector)


def gen_pair(
    querylist: Any, partial_order: str = "full"
) -> Iterator[tuple[Any, Any, Any]]:
    """([1], features of a better, features of a worse document), for all such pairs.

    partial_order: has no meaning, as in the reference.
    """
    ranked = _ranked(querylist)
    for place, better in enumerate(ranked):
        for worse in ranked.querylist[place + 1 :]:
            if better.relevance_score > worse.relevance_score:
                one = np.array([1])
                features = (better.feature_vector, worse.feature_vector)
                yield one, np.array(features[0]), np.array(features[1])


def gen_list(querylist: Any) -> Iterator[tuple[Any, Any]]:
    """One (relevances [n, 1], features [n, 46]) for the query, best first."""
    ranked = _ranked(querylist)
    yield (
        np.array([[query.relevance_score] for query in ranked]),
        np.array([query.feature_vector for query in ranked]),
    )


def query_filter(querylists: Sequence[QueryList]) -> list[QueryList]:
    """The queries that have a document of relevance above 0."""
    return [
        queries
        for queries in querylists
        if sum(query.relevance_score for query in queries) != 0
    ]


def load_from_text(
    filepath: str, shuffle: bool = False, fill_missing: float = -1
) -> list[QueryList]:
    """The queries of a file below the data set's folder, or of a file anywhere.

    Lines with another number of parts than 48 are left out, and said. As in the
    reference, shuffle and fill_missing have no meaning: the files have no gaps.
    """
    found: list[QueryList] = []
    with open(_path(filepath)) as lines:
        for line in lines:
            query = Query._of(line)
            if query is None:
                continue
            if not found or found[-1].query_id != query.query_id:
                found.append(QueryList())
            found[-1]._add_query(query)
    return found


#: what makes samples of a query, and how many of them are read: all, or the first
_FORMATS: dict[str, tuple[Callable[[Any], Iterator[Any]], int | None]] = {
    "plain_txt": (gen_plain_txt, 1),
    "pointwise": (gen_point, 1),
    "pairwise": (gen_pair, None),
    "listwise": (gen_list, 1),
}


def __reader__(
    filepath: str,
    format: str = "pairwise",
    shuffle: bool = False,
    fill_missing: float = -1,
) -> Iterator[Any]:
    """Samples of the queries that have something relevant; an iterator by itself.

    format: "pairwise", "pointwise", "listwise" or "plain_txt" (see ``gen_...``); as in
    the reference, "pointwise" and "plain_txt" give the best document of each query only
    (use `query_filter`, `load_from_text` and `gen_point` for all).
    """
    if format not in _FORMATS:
        raise ValueError(f"mq2007: format is one of {list(_FORMATS)}, not {format!r}")
    queries = query_filter(load_from_text(filepath, shuffle, fill_missing))
    make, count = _FORMATS[format]
    return (sample for each in queries for sample in islice(make(each), count))


train = functools.partial(__reader__, filepath="MQ2007/MQ2007/Fold1/train.txt")
test = functools.partial(__reader__, filepath="MQ2007/MQ2007/Fold1/test.txt")


def fetch() -> str:
    """Download the file; its path."""
    return download(URL, "MQ2007", MD5)


def _path(filepath: str) -> str:
    """A file as it is named, or below DATA_HOME; the archive is unpacked for it."""
    path = os.path.join(common.DATA_HOME, filepath)
    if os.path.exists(path):
        return path
    if os.path.exists(filepath):
        return filepath
    archive = fetch()
    folder = os.path.dirname(archive)
    for tool, words in _UNPACKERS.items():
        if shutil.which(tool):
            subprocess.run([tool, *words, archive], cwd=folder, check=True)
            break
    else:
        raise RuntimeError(
            f"mq2007: unpack {archive!r} into {folder!r}, or install one of "
            f"{', '.join(_UNPACKERS)}, which do that"
        )
    return path
