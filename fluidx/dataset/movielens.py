"""A million ratings of films (MovieLens 1M).

A sample is [user id, gender, age, job, film id, categories, words of the title,
[rating]]; ratings of 1 to 5 are moved to -3 to 5, as in the reference.
"""

from __future__ import annotations

import functools
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import common

__all__ = [
    "MovieInfo",
    "UserInfo",
    "age_table",
    "fetch",
    "get_movie_title_dict",
    "max_job_id",
    "max_movie_id",
    "max_user_id",
    "movie_categories",
    "movie_info",
    "test",
    "train",
    "user_info",
]

URL = "https://dataset.bj.bcebos.com/movielens%2Fml-1m.zip"
MD5 = "c4d9eecfca2ab87c1945afe126590906"
age_table = [1, 18, 25, 35, 45, 50, 56]
_TITLE = re.compile(r"^(.*)\((\d+)\)$")

Reader = Callable[[], Iterator[Any]]


class MovieInfo:
    """A film: id, categories, title without the year."""

    def __init__(self, index: int | str, categories: list[str], title: str) -> None:
        self.index = int(index)
        self.categories = categories
        self.title = title

    def value(self) -> list[Any]:
        """[id, numbers of the categories, numbers of the title's words]."""
        categories, words = movie_categories(), get_movie_title_dict()
        return [
            self.index,
            [categories[c] for c in self.categories],
            [words[w.lower()] for w in self.title.split()],
        ]

    def __str__(self) -> str:
        return (
            f"<MovieInfo id({self.index}), title({self.title}), "
            f"categories({self.categories})>"
        )

    __repr__ = __str__


class UserInfo:
    """Who rates: id, gender, place in `age_table`, number of the job."""

    def __init__(self, index: int | str, gender: str, age: str, job_id: str) -> None:
        self.index = int(index)
        self.is_male = gender == "M"
        self.age = age_table.index(int(age))
        self.job_id = int(job_id)

    def value(self) -> list[int]:
        """[id, 0 for male and 1 for female, place in `age_table`, job]."""
        return [self.index, 0 if self.is_male else 1, self.age, self.job_id]

    def __str__(self) -> str:
        gender = "M" if self.is_male else "F"
        return (
            f"<UserInfo id({self.index}), gender({gender}), "
            f"age({age_table[self.age]}), job({self.job_id})>"
        )

    __repr__ = __str__


def _lines(name: str, path: str) -> Iterator[list[str]]:
    with zipfile.ZipFile(path) as file, file.open(f"ml-1m/{name}.dat") as member:
        for line in member:
            yield line.decode("latin-1").strip().split("::")


def _path() -> str:
    return common.download(URL, "movielens", MD5)


def movie_info() -> dict[int, MovieInfo]:
    """Film id -> `MovieInfo`."""
    return _movies(_path())


@functools.lru_cache(maxsize=2)
def _movies(path: str) -> dict[int, MovieInfo]:
    found = {}
    for index, title, categories in _lines("movies", path):
        parts = _TITLE.match(title)
        name = parts[1] if parts else title
        found[int(index)] = MovieInfo(index, categories.split("|"), name)
    return found


def user_info() -> dict[int, UserInfo]:
    """User id -> `UserInfo`."""
    return _users(_path())


@functools.lru_cache(maxsize=2)
def _users(path: str) -> dict[int, UserInfo]:
    rows = _lines("users", path)
    return {int(row[0]): UserInfo(*row[:4]) for row in rows}


def _numbered(path: str, of: Callable[[MovieInfo], list[str]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for movie in _movies(path).values():
        for word in of(movie):
            found.setdefault(word, len(found))
    return found


def movie_categories() -> dict[str, int]:
    """Category -> number, in the order of the file."""
    return _categories(_path())


@functools.lru_cache(maxsize=2)
def _categories(path: str) -> dict[str, int]:
    return _numbered(path, lambda movie: movie.categories)


def get_movie_title_dict() -> dict[str, int]:
    """Word of a title, in lower case -> number, in the order of the file."""
    return _titles(_path())


@functools.lru_cache(maxsize=2)
def _titles(path: str) -> dict[str, int]:
    return _numbered(path, lambda movie: movie.title.lower().split())


def max_movie_id() -> int:
    """The largest film id."""
    return max(movie_info())


def max_user_id() -> int:
    """The largest user id."""
    return max(user_info())


def max_job_id() -> int:
    """The largest number of a job."""
    return max(user.job_id for user in user_info().values())


def _reader(
    rand_seed: int = 0, test_ratio: float = 0.1, is_test: bool = False
) -> Reader:
    path = _path()

    def read() -> Iterator[Any]:
        # a generator of its own: numpy's global one is the user's
        draw = np.random.RandomState(rand_seed)
        movies, users = _movies(path), _users(path)
        for user, movie, rating, *_ in _lines("ratings", path):
            if (draw.random_sample() < test_ratio) == is_test:
                score = [float(rating) * 2 - 5.0]
                yield [*users[int(user)].value(), *movies[int(movie)].value(), score]

    return read


def train(**kwargs: Any) -> Reader:
    """The reader of the training ratings; rand_seed (0), test_ratio (0.1): which."""
    return _reader(**kwargs)


def test(**kwargs: Any) -> Reader:
    """The reader of the test ratings."""
    return _reader(is_test=True, **kwargs)


def fetch() -> None:
    """Download the file."""
    _path()
