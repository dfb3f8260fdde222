"""Kernels share rows out to a few threads of the process."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from fluidx.kernels import threads


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(threads, "_width", 2)
    monkeypatch.setattr(threads, "_crew", None)
    monkeypatch.setattr(threads, "_LEAST", 8)


def test_stretches_make_up_the_range():
    assert threads.share(10, 100, lambda a, b: (a, b)) == [(0, 5), (5, 10)]
    assert threads.share(1, 100, lambda a, b: (a, b)) == [(0, 1)]
    assert threads.share(10, 7, lambda a, b: (a, b)) == [(0, 10)]


def test_work_runs_in_two_threads_at_once():
    met = threading.Barrier(2, timeout=20)

    def work(begin, end):
        met.wait()
        return threading.current_thread().name

    here, there = threads.share(2, 100, work)
    assert here == threading.current_thread().name
    assert there.startswith(threads.NAME)


def test_what_work_raises_is_raised_and_the_next_call_works():
    def work(begin, end):
        if begin:
            raise ValueError("second stretch")

    with pytest.raises(ValueError, match="second stretch"):
        threads.share(2, 100, work)
    assert threads.share(2, 100, lambda a, b: a) == [0, 1]


def test_error_handling_of_numpy_comes_along():
    zero = np.zeros(4, "float32")
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = threads.share(4, 100, lambda a, b: (1 / zero[a:b]).sum())
    assert parts == [np.inf, np.inf]


def test_stretches_are_the_same_while_the_crew_is_taken():
    names = []

    def outer(begin, end):
        if begin:
            return None
        return threads.share(
            4, 100, lambda a, b: names.append(threading.current_thread().name) or (a, b)
        )

    inner, _ = threads.share(2, 100, outer)
    assert inner == [(0, 2), (2, 4)]
    assert set(names) == {threading.current_thread().name}


@pytest.mark.parametrize(
    ("value", "wanted"), [("3", 3), ("2,4", 2), ("", len(os.sched_getaffinity(0)))]
)
def test_width_is_what_openmp_is_told(monkeypatch, value, wanted):
    monkeypatch.setattr(threads, "_width", None)
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert threads.width() == wanted
