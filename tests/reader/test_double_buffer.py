"""Batches that are copied to a GPU ahead: order and waits, with a stand-in for CuPy."""

from __future__ import annotations

import threading
import types

import numpy as np
import pytest

import fluidx as fluid
from fluidx.dataloader.queue import open_source
from fluidx.executor import cuda, staging
from fluidx.ir.errors import RunError
from fluidx.reader.threads import Closed
from fluidx.tensor import LoDTensor

GPU = fluid.CUDAPlace(0)


class DeviceArray:
    """What CuPy's arrays have and numpy's have not; filled when its copy is run."""

    def __init__(self, log, shape, dtype):
        self._log = log
        self.memory = np.full(shape, 77, dtype)
        self.shape, self.dtype, self.ndim = shape, np.dtype(dtype), len(shape)

    def set(self, host, stream):
        assert host.base is not None, "not pinned"
        self._log.append(("copy", int(host.flat[0]), stream.name))
        stream.work.append(lambda: np.copyto(self.memory, host))

    def get(self):
        return self.memory.copy()


class Stream:
    """Work that is done when something waits for it."""

    def __init__(self, log, name):
        self._log, self.name, self.work = log, name, []

    def wait_event(self, event):
        self._log.append(("wait", self.name, event.stream.name))
        self.work.append(event.finish)

    def run(self):
        work, self.work = self.work, []
        for step in work:
            step()


class Event:
    def __init__(self, disable_timing):
        assert disable_timing
        self.stream, self.done = None, False

    def record(self, stream):
        self.stream = stream
        stream.work.append(lambda: setattr(self, "done", True))

    def finish(self):
        if not self.done:
            self.stream.run()


def stand_in(monkeypatch):
    """(log, the stream that computes)."""
    log = []
    main = Stream(log, "compute")
    made = types.SimpleNamespace(
        empty=lambda shape, dtype: DeviceArray(log, shape, dtype),
        cuda=types.SimpleNamespace(
            Stream=lambda non_blocking: Stream(log, "side"),
            Event=Event,
            Device=lambda number: types.SimpleNamespace(use=lambda: None),
            get_current_stream=lambda: main,
            alloc_pinned_memory=bytearray,
            runtime=types.SimpleNamespace(getDeviceCount=lambda: 1),
        ),
    )
    monkeypatch.setattr(cuda, "_cupy", lambda: made)
    return log, main


def batches(count, level=None):
    def read():
        for i in range(count):
            tensor = LoDTensor(np.full((2, 3), i, "float32"))
            if level:
                tensor.set_recursive_sequence_lengths(level)
            yield [tensor, LoDTensor(np.full((2, 1), 10 + i, "int64"))]

    return read


class Ready:
    """A source of which a given number of batches wait."""

    def __init__(self, items, ready):
        self.items, self.ready, self.closed = iter(items), ready, 0

    def take(self):
        self.ready -= 1
        for item in self.items:
            if isinstance(item, Exception):
                raise item
            return item
        raise Closed

    def waiting(self):
        return max(0, self.ready)

    def close(self):
        self.closed += 1


def test_the_next_copy_begins_before_a_batch_is_used(monkeypatch):
    log, compute = stand_in(monkeypatch)
    source = staging.staged(Ready(batches(3)(), 9), GPU)
    values = []
    for _ in range(3):
        log.append("asked")
        tensors = source.take()
        compute.run()
        values.append([int(t.value.memory.flat[0]) for t in tensors])
    assert values == [[0, 10], [1, 11], [2, 12]]

    def sent(i):
        copies = [("copy", i, "side"), ("copy", 10 + i, "side")]
        return [("wait", "side", "compute"), *copies]

    met = ("wait", "compute", "side")
    expected = ["asked", *sent(0), *sent(1), met, "asked", *sent(2), met, "asked", met]
    assert log == expected
    with pytest.raises(Closed):
        source.take()


def test_no_batch_waits_for_the_one_after_it(monkeypatch):
    log, _ = stand_in(monkeypatch)
    source = staging.staged(Ready(batches(2)(), 1), GPU)
    source.take()
    assert [entry[1] for entry in log if entry[0] == "copy"] == [0, 10]


def test_memory_is_not_written_before_the_device_is_done_with_it(monkeypatch):
    _, compute = stand_in(monkeypatch)
    source = staging.staged(Ready(batches(2)(), 9), GPU)
    steps = []
    compute.work.append(lambda: steps.append("earlier step"))
    first = source.take()
    assert first[0].value.memory[0, 0] == 77
    assert steps == []
    compute.run()
    assert steps == ["earlier step"]
    assert first[0].value.memory[0, 0] == 0


def test_errors_and_the_end_come_where_the_batch_would(monkeypatch):
    stand_in(monkeypatch)
    ready = Ready([next(batches(1)()), ValueError("boom"), next(batches(1)())], 9)
    source = staging.staged(ready, GPU)
    source.take()
    with pytest.raises(ValueError, match="boom"):
        source.take()
    source.take()
    with pytest.raises(Closed):
        source.take()
    source.close()
    assert ready.closed == 1


def test_what_a_device_cannot_hold_stays(monkeypatch):
    stand_in(monkeypatch)
    values = [np.array(["a", "b"]), np.zeros((0, 3)), np.float32(5.0), np.array([True])]
    (tensors,) = [staging.staged(Ready([list(map(LoDTensor, values))], 9), GPU).take()]
    kinds = [type(t.value).__name__ for t in tensors]
    assert kinds == ["ndarray", "ndarray", "DeviceArray", "DeviceArray"]
    assert tensors[2].shape() == []


def test_loaders_give_tensors_on_the_device(monkeypatch):
    log, compute = stand_in(monkeypatch)
    x = fluid.data("x", [None, 3], lod_level=1)
    y = fluid.data("y", [None, 1], "int64")
    for options in ({}, {"use_multiprocess": True}):
        loader = fluid.io.DataLoader.from_generator([x, y], 4, **options)
        loader.set_batch_generator(batches(3, [[1, 1]]), GPU)
        got = []
        for (feed,) in loader:
            compute.run()
            assert feed["x"].lod() == [[0, 1, 2]]
            assert isinstance(feed["x"].value, DeviceArray)
            got.append((np.asarray(feed["x"])[0, 0], np.asarray(feed["y"])[0, 0]))
        assert got == [(0, 10), (1, 11), (2, 12)]
    copies = len(log)
    loader = fluid.io.DataLoader.from_generator([x, y], 4, use_double_buffer=False)
    loader.set_batch_generator(batches(1), GPU)
    ((feed,),) = loader
    assert isinstance(feed["x"].value, np.ndarray)
    assert len(log) == copies


def test_map_style_loaders_too(monkeypatch):
    _, compute = stand_in(monkeypatch)

    class Data(fluid.io.Dataset):
        def __getitem__(self, index):
            return np.full(3, index, "float32"), [index]

        def __len__(self):
            return 4

    feeds = [fluid.data("x", [None, 3]), fluid.data("y", [None, 1], "int64")]
    for workers in (0, 2):
        got = []
        for (feed,) in fluid.io.DataLoader(Data(), feeds, GPU, num_workers=workers):
            compute.run()
            assert isinstance(feed["x"].value, DeviceArray)
            got.append(np.asarray(feed["x"])[0, 0])
        assert got == [0, 1, 2, 3]


def test_readers_of_a_program_buffer_for_the_executor_s_place(monkeypatch):
    log, compute = stand_in(monkeypatch)
    x = fluid.data("x", [None, 3])
    for buffer, expected in ((True, DeviceArray), (False, np.ndarray)):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            loader = fluid.io.DataLoader.from_generator(
                [x], 4, use_double_buffer=buffer, iterable=False
            )
        loader.set_batch_generator(lambda: ([t[0]] for t in batches(2)()))
        loader.start()
        (tensor,) = loader.queue.take(GPU)
        assert isinstance(tensor.value, expected)
        loader.reset()
    # an executor on the CPU takes batches to be where it computes
    mean = fluid.layers.reduce_mean(x)
    source = staging.staged(Ready(batches(2)(), 2), GPU)
    feed = {"x": source.take()[0]}
    compute.run()
    exe = fluid.Executor(fluid.CPUPlace())
    assert float(exe.run(feed=feed, fetch_list=[mean])[0]) == 0.0


def test_without_a_gpu_nothing_changes():
    before = threading.active_count()
    source = open_source(batches(1), 2, "r", False)
    assert staging.staged(source, fluid.CPUPlace()) is source
    if not cuda.device_count():
        assert staging.staged(source, GPU) is source
    source.close()
    assert threading.active_count() == before


def test_a_reader_that_fails_on_the_device_s_side(monkeypatch):
    stand_in(monkeypatch)

    def failing():
        yield from ([t[0]] for t in batches(1)())
        raise ValueError("boom")

    loader = fluid.io.DataLoader.from_generator([fluid.data("x", [None, 3])], 4)
    passing = iter(loader.set_batch_generator(failing, GPU))
    next(passing)
    with pytest.raises(RunError, match="ValueError: boom"):
        next(passing)
    assert list(passing) == []
