"""Worker processes: what they hand over, and how they end."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import psutil
import pytest

import fluidx as fluid
from fluidx.ir.errors import RunError
from fluidx.reader import shared
from fluidx.reader.workers import Worker, WorkerError, take_any

CPU = fluid.CPUPlace()


def item(number, rng):
    """Of any size: none, in the message, in a slot; and with a large header."""
    size = [0, 3, 700, 3000, 20_000][number % 5] + int(rng.integers(50))
    words = ["w" * ((i + number) % 9) for i in range([0, 3, 9000][number % 3])]
    tensor = fluid.LoDTensor(rng.integers(0, 99, (6, 1)))
    tensor.set_recursive_sequence_lengths([[1, 5], [1] * 5 + [number % 2]][:1])
    return {
        "number": number,
        "array": rng.random((size, 2)).astype("float32"),
        "nested": [(words, np.float64(number)), [tensor, None]],
    }


@functools.cache
def items(count, seed):
    rng = np.random.default_rng(seed)
    return [item(number, rng) for number in range(count)]


def equal(found, expected):
    assert found["number"] == expected["number"]
    assert found["array"].dtype == expected["array"].dtype
    np.testing.assert_array_equal(found["array"], expected["array"])
    (words, scalar), (tensor, none) = found["nested"]
    assert (words, scalar) == expected["nested"][0]
    assert isinstance(scalar, np.float64)
    assert tensor.lod() == expected["nested"][1][0].lod()
    np.testing.assert_array_equal(tensor.value, expected["nested"][1][0].value)
    assert none is None


@pytest.mark.parametrize("slots", [1, 2, 3, 16])
def test_nothing_is_lost_or_changed(slots):
    worker = Worker(lambda: items(40, 0), "w", slots)
    for number, expected in enumerate(items(40, 0)):
        if number % 7 == 0:
            time.sleep(0.002)  # let messages gather
        equal(worker.receive(), expected)
    for _ in range(2):
        with pytest.raises(EOFError):
            worker.receive()
    worker.close()


def test_items_of_several_workers_arrive_in_their_order():
    workers = [Worker(lambda s=s: items(20, s), f"w{s}", 3) for s in range(3)]
    expected = [items(20, s) for s in range(3)]
    taken = [0, 0, 0]
    for found in take_any(workers):
        number = found["number"]
        owner = next(
            s
            for s in range(3)
            if taken[s] == number
            and np.array_equal(expected[s][number]["array"], found["array"])
            and expected[s][number]["nested"][0] == found["nested"][0]
        )
        equal(found, expected[owner][number])
        taken[owner] += 1
    assert taken == [20, 20, 20]


def test_large_items_use_few_slots(monkeypatch):
    slots = shared.open_slots(16)
    assert len(shared.in_use(slots, 20_000)) == 16
    assert len(shared.in_use(slots, shared.BUDGET // 9)) == 9
    assert len(shared.in_use(slots, shared.BUDGET)) == shared.FEW
    for slot in slots:
        slot.close()
    monkeypatch.setattr(shared, "BUDGET", 100_000)
    made = np.arange(5000)  # 40,000 bytes: two would fit, so it is four
    worker = Worker(lambda: (made + i for i in range(40)), "w", 16)
    time.sleep(0.05)
    held = [slot._map for slot in worker._slots]
    for i in range(40):
        assert worker.receive()[7] == 7 + i
    assert [slot._map is not None for slot in worker._slots] == [True] * 4 + [
        False
    ] * 12
    assert held == [None] * 16
    worker.close()


@pytest.mark.parametrize(("each", "ready"), [(20_000, 7), (300_000, 3), (2_000_000, 0)])
def test_small_items_are_made_ready_together(each, ready):
    made = np.arange(each // 8)
    worker = Worker(lambda: (made + i for i in range(8)), "w", 8)
    worker._process.join(20)  # all eight lie in slots
    assert worker.receive()[5] == 5
    assert len(worker._items) == ready
    assert worker.waiting
    assert [worker.receive()[5] for _ in range(7)] == list(range(6, 13))
    with pytest.raises(EOFError):
        worker.receive()
    worker.close()


def test_lods_that_are_the_same_are_sent_once():
    def sequences(levels):
        tensor = fluid.LoDTensor(np.zeros((300, 1)))
        tensor.set_recursive_sequence_lengths(levels)
        return tensor

    ones, twos = [[1] * 300], [[2] * 150]
    batch = [sequences(level) for level in (ones, ones, ones, twos, ones)]
    encoded = shared.encode(batch)
    alone = len(shared.encode(batch[:1]).header)
    assert len(encoded.header) < 3.1 * alone
    data = bytearray(encoded.size)
    shared.write(encoded, data)
    found = shared.Decoder()(encoded.header, data)
    assert [t.lod() for t in found] == [t.lod() for t in batch]
    found[0].set_lod([[0, 300]])
    assert found[1].recursive_sequence_lengths() == ones


@pytest.mark.skipif(
    not hasattr(os, "SCHED_BATCH"), reason="this system has no such scheduling policy"
)
def test_a_worker_never_preempts_its_consumer():
    def policy():
        yield os.sched_getscheduler(0)

    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        pytest.skip("the tests themselves run under another policy")
    worker = Worker(policy, "w")
    assert worker.receive() == os.SCHED_BATCH
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    worker.close()


# ------------------------------------------------ how they end


def variables():
    return [fluid.data("x", [None, 3000])]


def endless():
    while True:
        yield (np.zeros((2, 3000), "float32"),)


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_a_worker_that_is_killed_is_named_with_its_signal():
    loader = fluid.io.DataLoader.from_generator(
        variables(), 4, use_multiprocess=True
    ).set_batch_generator(endless, CPU)
    passing = iter(loader)
    next(passing)
    (child,) = psutil.Process().children()
    child.send_signal(signal.SIGKILL)
    text = rf"fluidx reader of x \(process {child.pid}\) died with exit code -9 .SIGKI"
    with pytest.raises(RunError, match=text):
        for _ in passing:
            pass
    assert list(passing) == []
    assert psutil.Process().children() == []

    class Data(fluid.io.Dataset):
        def __getitem__(self, index):
            if index == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return (np.zeros(3000, "float32"),)

        def __len__(self):
            return 40

    made = fluid.io.DataLoader(Data(), variables(), CPU, num_workers=2)
    with pytest.raises(
        RunError, match=r"worker 1 .*process \d+\) died with exit code -9"
    ):
        list(made)
    assert psutil.Process().children() == []


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts files in /proc")
def test_passes_leave_no_files_open():
    def failing():
        yield from (next(endless()) for _ in range(3))
        raise ValueError("boom")

    loader = fluid.io.DataLoader.from_generator(variables(), 16, use_multiprocess=True)
    before = open_files()
    for _ in range(3):
        for _ in loader.set_batch_generator(endless, CPU):
            break
        with pytest.raises(RunError, match="boom"):
            list(loader.set_batch_generator(failing, CPU))
        passing = iter(loader)
        next(passing)
        del passing
    assert open_files() == before
    assert psutil.Process().children() == []


def test_closing_in_another_process_leaves_the_worker_alone():
    worker = Worker(endless, "w")
    worker.receive()
    child = os.fork()
    if child == 0:
        worker.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert psutil.pid_exists(worker.pid)
    assert worker.receive()[0].shape == (2, 3000)
    worker.close()


def test_workers_of_workers_end_with_them():
    def inner():
        for i in range(3):
            yield os.getpid(), i
        time.sleep(1000)

    outer = Worker(lambda: take_any([Worker(inner, "inner")]), "outer")
    found = [outer.receive() for _ in range(3)]
    assert [i for _, i in found] == [0, 1, 2]
    os.kill(outer.pid, signal.SIGKILL)
    with pytest.raises(WorkerError, match=r"outer .* died with exit code -9"):
        outer.receive()
    gone(found[0][0])
    outer.close()


SCRIPT = """
import multiprocessing, os, signal, sys, time
import numpy as np
import fluidx as fluid

def batches():
    with open({pids!r}, "a") as file:
        file.write(str(os.getpid()) + "\\n")
    for i in range(5):
        yield (np.full((2, 3000), i, "float32"),)
    {then}

def train():
    x = fluid.data("x", [None, 3000])
    mean = fluid.layers.reduce_mean(x)
    loader = fluid.io.DataLoader.from_generator([x], 3, use_multiprocess=True)
    loader.set_batch_generator(batches, fluid.CPUPlace())
    exe = fluid.Executor(fluid.CPUPlace())
    for step, feed in enumerate(loader):
        print(float(exe.run(feed=feed[0], fetch_list=[mean])[0]), flush=True)
        {step}

if __name__ == "__main__":
    {start}
"""


def run_script(tmp_path, command=(), **parts):
    parts = {"then": "", "step": "", "start": "train()", **parts}
    pids = tmp_path / "pids"
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT).format(pids=str(pids), **parts))
    done = subprocess.run(
        [sys.executable, *command, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    left = pids.read_text().split()
    assert left
    gone(*map(int, left))
    return done


def gone(*pids):
    """These processes end, and soon."""
    deadline = time.monotonic() + 5
    while any(map(runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(runs, pids))


def runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


ALL = "0.0\n1.0\n2.0\n3.0\n4.0\n"
SLEEP = "time.sleep(1000)"


@pytest.mark.parametrize(
    ("command", "start"),
    [
        ((), "train()"),
        ((), "multiprocessing.set_start_method('spawn'); train()"),
        (
            (),
            "c = multiprocessing.get_context('spawn').Process(target=train); "
            "c.start(); c.join()",
        ),
        (("-m", "fluidx", "run"), "train()"),
    ],
)
def test_however_the_training_was_started(tmp_path, command, start):
    done = run_script(tmp_path, command, start=start)
    assert (done.returncode, done.stdout, done.stderr) == (0, ALL, "")


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("break", 0),
        ("sys.exit(7)", 7),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("os._exit(8)", 8),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    ],
)
def test_workers_end_with_the_training(tmp_path, step, code):
    """Also where the reader is asleep and tries to hand over nothing more."""
    done = run_script(tmp_path, then=SLEEP, step=step)
    assert (done.returncode, done.stdout) == (code, "0.0\n")


@pytest.mark.parametrize("then", ["", "raise SystemExit('no more')"])
def test_what_a_reader_prints_is_seen(tmp_path, then):
    done = run_script(tmp_path, then=f"print('read all'); {then}")
    assert done.stdout.count("read all") == 1
    assert (done.returncode != 0, "no more" in done.stderr) == (bool(then),) * 2


def test_a_kept_pass_does_not_hold_up_the_end(tmp_path):
    start = "kept = []; train()"
    done = run_script(
        tmp_path, then=SLEEP, step="kept.append(loader); return", start=start
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.0\n", "")
