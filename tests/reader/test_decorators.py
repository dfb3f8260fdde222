"""Reader decorators. Expected values are the reference's."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import numpy as np
import psutil
import pytest

from fluidx import reader as readers


def of(*samples):
    return lambda: iter(samples)


def endless():
    while True:
        yield 1


def failing():
    yield 1
    raise ValueError("boom")


def test_map_readers():
    made = readers.map_readers(lambda a, b: a + b, of(1, 2, 3), of(10, 20))
    assert list(made()) == [11, 22]
    assert list(made()) == [11, 22]


def test_shuffle_draws_from_python_s_random():
    random.seed(3)
    assert list(readers.shuffle(of(*range(10)), 4)()) == [3, 0, 2, 1, 4, 5, 7, 6, 9, 8]
    random.seed(3)
    whole = list(readers.shuffle(of(*range(10)), 100)())
    assert whole == [1, 5, 6, 0, 9, 4, 7, 2, 8, 3]


def test_chain_firstn_cache():
    assert list(readers.chain(of(1, 2), of(3), of())()) == [1, 2, 3]
    assert list(readers.firstn(of(1, 2, 3), 2)()) == [1, 2]
    assert list(readers.firstn(of(1), 2)()) == [1]
    assert list(readers.firstn(of(1, 2), 0)()) == []
    assert list(readers.firstn(of(1, 2), -1)()) == [1, 2]
    assert readers.decorator.firstn is readers.firstn
    calls = []

    def counted():
        calls.append(1)
        return iter([1, 2])

    cached = readers.cache(counted)
    assert list(cached()) == list(cached()) == [1, 2]
    assert len(calls) == 1


def test_compose():
    made = readers.compose(of(1, 2), of((3, 4), (5, 6)), of([7], [8]))
    assert list(made()) == [(1, 3, 4, [7]), (2, 5, 6, [8])]
    uneven = of(1, 2), of(3)
    assert list(readers.compose(*uneven, check_alignment=False)()) == [(1, 3)]
    with pytest.raises(readers.ComposeNotAligned):
        list(readers.compose(*uneven)())
    with pytest.raises(ValueError):
        list(readers.compose(of(None, 2), of(3, 4))())


def test_batch():
    assert list(readers.batch(of(1, 2, 3), 2)()) == [[1, 2], [3]]
    assert list(readers.batch(of(1, 2, 3), 2, drop_last=True)()) == [[1, 2]]
    with pytest.raises(ValueError, match="positive"):
        readers.batch(of(1), 0)


@pytest.mark.parametrize("size", [0, 1, 2, 100])
def test_buffered(size):
    assert list(readers.buffered(of(*range(9)), size)()) == list(range(9))


@pytest.mark.parametrize("order", [True, False])
@pytest.mark.parametrize(("threads", "size"), [(1, 1), (3, 2), (2, 50)])
def test_xmap_readers(order, threads, size):
    made = readers.xmap_readers(lambda a: a * 2, of(*range(30)), threads, size, order)
    found = list(made())
    assert (found if order else sorted(found)) == list(range(0, 60, 2))


def test_xmap_readers_hold_a_bounded_number():
    begun = []

    def mapped(sample):
        begun.append(sample)
        return sample

    passing = readers.xmap_readers(mapped, endless, 2, 3)()
    for _ in range(5):
        next(passing)
    assert len(begun) <= 5 + 3
    passing.close()


def test_errors_arrive_where_samples_are_taken():
    buffered = readers.buffered(failing, 4)()
    assert next(buffered) == 1
    with pytest.raises(ValueError, match="boom"):
        next(buffered)
    with pytest.raises(ValueError, match="boom"):
        list(readers.xmap_readers(lambda a: a, failing, 2, 2)())
    with pytest.raises(ZeroDivisionError):
        list(readers.xmap_readers(lambda a: a / 0, endless, 2, 2)())


@pytest.mark.parametrize(
    "made",
    [
        readers.buffered(endless, 3),
        readers.xmap_readers(lambda a: a, endless, 2, 3),
        readers.buffered(readers.buffered(endless, 2), 2),
        readers.multiprocess_reader([endless, endless]),
    ],
)
def test_dropping_a_pass_ends_its_threads_and_processes(made):
    before = threading.active_count(), len(psutil.Process().children())
    for _ in made():
        break
    assert (threading.active_count(), len(psutil.Process().children())) == before


# ------------------------------------------------ processes


def samples_of(number, count):
    def read():
        for i in range(count):
            array = np.full((100, 100), i, "float32")
            yield number, array, np.float32(2.5), {"s": [np.arange(3), "text", None]}

    return read


@pytest.mark.parametrize("use_pipe", [True, False])
def test_multiprocess_reader_hands_over_what_was_given(use_pipe):
    made = readers.multiprocess_reader(
        [samples_of(0, 7), samples_of(1, 5)], use_pipe, queue_size=4
    )
    found = {0: [], 1: []}
    for number, array, scalar, rest in made():
        assert array.dtype == np.float32
        assert array.shape == (100, 100)
        assert (array == array[0, 0]).all()
        assert scalar == 2.5
        assert isinstance(scalar, np.float32)
        assert rest["s"][0].tolist() == [0, 1, 2]
        assert rest["s"][1:] == ["text", None]
        found[number].append(int(array[0, 0]))
    assert found == {0: list(range(7)), 1: list(range(5))}


def test_multiprocess_reader_takes_a_list():
    with pytest.raises(ValueError, match="no readers were given"):
        readers.multiprocess_reader([])
    with pytest.raises(TypeError, match="takes a list of readers, got one"):
        readers.multiprocess_reader(of(1))


def test_arrays_that_were_handed_over_stay_as_they_are():
    arrays = [s[1] for s in readers.multiprocess_reader([samples_of(0, 20)])()]
    assert [int(a[0, 0]) for a in arrays] == list(range(20))


def test_a_failing_reader_is_shown_with_its_traceback():
    with pytest.raises(ValueError, match=r"reader 1(.|\n)*ValueError: boom"):
        list(readers.multiprocess_reader([of(1), failing])())
    with pytest.raises(ValueError, match="a sample is None"):
        list(readers.multiprocess_reader([of(1, None)])())
    with pytest.raises(ValueError, match="object cannot leave a worker process"):
        list(readers.multiprocess_reader([of(object())])())


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (lambda: os._exit(7), "exit code 7"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), r"exit code -9 \(SIGKILL\)"),
    ],
)
def test_a_dying_process_is_named_with_its_exit_code(end, text):
    def dying():
        yield 1
        end()

    with pytest.raises(ValueError, match=rf"reader 0 .*process \d+.* died with {text}"):
        list(readers.multiprocess_reader([dying])())


def test_workers_compute_after_the_parent_used_its_blas():
    rng = np.random.default_rng(0)
    left, right = rng.random((400, 400)), rng.random((400, 400))
    expected = left @ right  # starts the threads of BLAS

    def product():
        yield left @ right

    (found,) = readers.multiprocess_reader([product])()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_workers_end_when_their_consumer_dies(tmp_path):
    """A killed consumer cannot end its workers: they see their pipe closed."""
    pids = tmp_path / "pids"
    child = os.fork()
    if child == 0:

        def told():
            with open(pids, "a") as file:
                file.write(f"{os.getpid()}\n")
            yield from endless()

        passing = readers.multiprocess_reader([told, told])()
        next(passing)
        while pids.read_text().count("\n") < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    workers = [int(p) for p in pids.read_text().split()]
    assert len(workers) == 2
    deadline = time.monotonic() + 5
    while any(map(_runs, workers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(_runs, workers))


def _runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
