"""Datasets of files, and passes over them. Expected values are the reference's."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import psutil
import pytest

import fluidx as fluid
from fluidx.dataset_factory import exchange as exchanging
from fluidx.executor import FetchHandler
from fluidx.io import DataLoader

CPU = fluid.CPUPlace()


@pytest.fixture
def files(tmp_path):
    first = [f"2 {i} {i + 10} 2 {i * 0.5} {i * 0.25} 1 {i % 2}" for i in range(5)]
    second = [f"1 {i} 2 {i * 0.5} {i * 0.25} 1 {i % 2}" for i in range(100, 104)]
    return [write(tmp_path / "a", first), write(tmp_path / "b", second)]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def variables():
    return [
        fluid.layers.data("ids", [1], dtype="int64", lod_level=1),
        fluid.layers.data("den", [2], dtype="float32"),
        fluid.layers.data("lab", [1], dtype="int64"),
    ]


def made(kind, files, size=2, threads=1, load=True):
    dataset = fluid.DatasetFactory().create_dataset(kind)
    dataset.set_batch_size(size)
    dataset.set_thread(threads)
    dataset.set_filelist(files)
    dataset.set_use_var(variables())
    if load and kind == "InMemoryDataset":
        dataset.load_into_memory()
    return dataset


def batches(dataset, drop_last=False):
    """(ids, their LoD, den, lab) of each batch."""
    found = []
    for (feed,) in DataLoader.from_dataset(dataset, [CPU], drop_last)():
        assert feed["den"].value.dtype == np.float32
        assert feed["ids"].value.shape[1:] == feed["lab"].value.shape[1:] == (1,)
        ids, den, lab = (feed[n].value for n in ("ids", "den", "lab"))
        lod = feed["ids"].lod()
        found.append((ids.ravel().tolist(), lod, den.tolist(), lab.ravel().tolist()))
    return found


QUEUE = [
    ([0, 10, 1, 11], [[0, 2, 4]], [[0.0, 0.0], [0.5, 0.25]], [0, 1]),
    ([2, 12, 3, 13], [[0, 2, 4]], [[1.0, 0.5], [1.5, 0.75]], [0, 1]),
    ([4, 14, 100], [[0, 2, 3]], [[2.0, 1.0], [50.0, 25.0]], [0, 0]),
    ([101, 102], [[0, 1, 2]], [[50.5, 25.25], [51.0, 25.5]], [1, 0]),
    ([103], [[0, 1]], [[51.5, 25.75]], [1]),
]
# zeros are left out of what is not dense
MEMORY = [([10, 1, 11], [[0, 1, 3]], [[0.0, 0.0], [0.5, 0.25]], [0, 1]), *QUEUE[1:]]


@pytest.mark.parametrize(
    ("kind", "expected"), [("QueueDataset", QUEUE), ("InMemoryDataset", MEMORY)]
)
def test_batches(kind, expected, files):
    dataset = made(kind, files)
    assert batches(dataset) == batches(dataset) == expected
    assert batches(dataset, drop_last=True) == expected[:4]


def test_files_parsed_by_processes(files):
    assert batches(made("InMemoryDataset", files, threads=2)) == MEMORY
    found = batches(made("QueueDataset", files, size=1, threads=2))
    alone = batches(made("QueueDataset", files, size=1))
    assert sorted(found) == sorted(alone)


@pytest.mark.parametrize("size", [2, 3, 4, 100])
def test_what_processes_leave_over_makes_batches_too(size, files):
    dataset = made("QueueDataset", files, size=size, threads=2)
    found = batches(dataset)
    assert [len(row[3]) for row in found] == [size] * (9 // size) + [9 % size] * (
        9 % size > 0
    )
    # samples in any order, each with its own values
    samples = [
        (ids[a:b], den, lab)
        for ids, (offsets,), dens, labs in found
        for a, b, den, lab in zip(offsets, offsets[1:], dens, labs)
    ]
    alone = batches(made("QueueDataset", files, size=1))
    expected = [(ids, dens[0], labs[0]) for ids, _, dens, labs in alone]
    assert sorted(samples) == sorted(expected)
    full = [row for row in found if len(row[3]) == size]
    assert len(batches(dataset, drop_last=True)) == len(full)


def test_two_places(files):
    dataset = made("InMemoryDataset", files)
    loader = DataLoader.from_dataset(dataset, [CPU, CPU], drop_last=True)
    assert [len(group) for group in loader()] == [2, 2]
    odd = made("InMemoryDataset", files, size=3)
    for drop_last, groups in ((True, [2]), (False, [2, 1])):
        loader = DataLoader.from_dataset(odd, [CPU, CPU], drop_last)
        assert [len(group) for group in loader()] == groups


def test_zeros(tmp_path):
    lines = ["1 0 2 0 0 1 0", "2 0 5 2 1 1 1 0", "3 7 0 0 2 1 1 1 1"]
    file = [write(tmp_path / "zeros", lines)]
    in_memory = [row[:2] for row in batches(made("InMemoryDataset", file))]
    assert in_memory == [([0, 5], [[0, 1, 2]]), ([7], [[0, 1]])]
    streamed = [row[:2] for row in batches(made("QueueDataset", file))]
    assert streamed == [([0, 0, 5], [[0, 1, 3]]), ([7, 0, 0], [[0, 3]])]


def test_feature_signs_keep_their_64_bits(tmp_path):
    line = f"2 {2**64 - 1} {2**63 + 5} 2 1e3 -1 1 -1"
    ((ids, _, den, lab),) = batches(
        made("QueueDataset", [write(tmp_path / "x", [line])])
    )
    assert (ids, den, lab) == ([-1, -(2**63) + 5], [[1000.0, -1.0]], [-1])


def test_lines_of_equal_and_of_different_lengths_are_read_alike(tmp_path):
    even = ["2 1 2 2 3 4 1 5", "2 6 7 2 8 9 1 0"]
    file = write(tmp_path / "even", even)
    mixed = ["1 1 2 0 0 1 0", "", *even, "1 9 2 1 1 1 1 7 7"]
    uneven = write(tmp_path / "uneven", mixed)
    assert batches(made("QueueDataset", [file], size=2)) == [
        ([1, 2, 6, 7], [[0, 2, 4]], [[3.0, 4.0], [8.0, 9.0]], [5, 0])
    ]
    rows = batches(made("QueueDataset", [uneven], size=1))
    assert rows[1:3] == [
        ([1, 2], [[0, 2]], [[3.0, 4.0]], [5]),
        ([6, 7], [[0, 2]], [[8.0, 9.0]], [0]),
    ]
    assert rows[3] == ([9], [[0, 1]], [[1.0, 1.0]], [1])


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("0 2 1 1 1 1", r"x:2: slot ids: expected the number .* came '0'"),
        ("1 2 2 1 1", r"x:2: slot lab: .* came nothing and 0 values"),
        ("3 2 2", r"x:2: slot ids: .* came '3' and 2 values"),
        ("1 a 2 1 1 1 1", r"x:2: slot ids: invalid literal .*'a'"),
        ("1 2 2 1 x 1 1", r"x:2: slot den: could not convert .*'x'"),
        ("1 2 3 1 1 1 1 1", r"x:2: slot den takes 2 values, came 3"),
        (f"1 {2**64} 2 1 1 1 1", r"x:2: slot ids: a value needs more than 64 bits"),
    ],
)
@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_wrong_lines(kind, line, text, tmp_path):
    file = write(tmp_path / "x", ["1 2 2 1 1 1 1", line])
    dataset = made(kind, [file], load=False)
    with pytest.raises(ValueError, match=text):
        list(dataset._batches()) if kind[0] == "Q" else dataset.load_into_memory()


def test_pipe_command(files, tmp_path):
    script = tmp_path / "double.py"
    script.write_text(
        "import sys\n"
        "for line in sys.stdin:\n"
        "    t = line.split()\n"
        "    t[-1] = str(int(t[-1]) + 5)\n"
        "    print(*t)\n"
    )
    dataset = made("QueueDataset", files)
    dataset.set_pipe_command(f"{sys.executable} {script}")
    assert [row[3] for row in batches(dataset)][:2] == [[5, 6], [5, 6]]
    dataset.set_pipe_command("echo broken >&2; exit 3")
    with pytest.raises(RuntimeError, match=r"exit code 3 on .*a: broken"):
        batches(dataset)


def test_a_pipe_command_ends_with_its_consumer(files):
    dataset = made("QueueDataset", files)
    dataset.set_pipe_command("yes '1 5 2 1 1 1 1'")
    before = len(psutil.Process().children()), threading.active_count()
    passing = iter(DataLoader.from_dataset(dataset, [CPU]))
    assert next(passing)[0]["ids"].value.tolist() == [[5], [5]]
    del passing
    assert (len(psutil.Process().children()), threading.active_count()) == before


def test_memory_and_shuffling(files):
    dataset = made("InMemoryDataset", files, size=1)
    assert dataset.get_memory_data_size() == 9
    assert dataset.get_shuffle_data_size() == dataset.get_pv_data_size() == 0
    before = batches(dataset)
    dataset._generator = np.random.default_rng(1)
    dataset.local_shuffle()
    after = batches(dataset)
    assert after != before
    assert sorted(after) == sorted(before)
    dataset.global_shuffle()
    assert sorted(batches(dataset)) == sorted(before)
    dataset.slots_shuffle(["lab"])
    mixed = batches(dataset)
    assert sorted(row[:3] for row in mixed) == sorted(row[:3] for row in before)
    assert sorted(row[3] for row in mixed) == sorted(row[3] for row in before)
    with pytest.raises(ValueError, match="no slots"):
        dataset.slots_shuffle(["nope"])
    loader = DataLoader.from_dataset(dataset, [CPU])
    dataset.release_memory()
    assert (dataset.get_memory_data_size(), list(loader())) == (0, [])


def test_preloading(files):
    dataset = made("InMemoryDataset", files, load=False)
    dataset.preload_into_memory(2)
    dataset.wait_preload_done()
    assert batches(dataset) == MEMORY
    dataset.set_pipe_command("exit 4")
    dataset.preload_into_memory()
    with pytest.raises(RuntimeError, match="exit code 4"):
        dataset.wait_preload_done()


class Fleet:
    """One of several workers that meet in threads."""

    def __init__(self, index, count, barrier, shared):
        self.index, self.count = index, count
        self.barrier, self.shared = barrier, shared

    def worker_num(self):
        return self.count

    def worker_index(self):
        return self.index

    def exchange(self, array):
        self.shared[self.index] = array
        self.barrier.wait()
        found = [self.shared[i] for i in range(self.count)]
        self.barrier.wait()
        return found


def test_global_shuffle_deals_all_samples_to_the_workers(files, monkeypatch):
    monkeypatch.setattr(
        "fluidx.dataset_factory.in_memory.exchange", lambda f, a: f.exchange(a)
    )
    barrier, shared = threading.Barrier(2, timeout=20), {}
    whole = sorted(batches(made("InMemoryDataset", files, size=1)))
    parts = [made("InMemoryDataset", [f], size=1) for f in files]
    sizes = {}

    def shuffle(index):
        fleet = Fleet(index, 2, barrier, shared)
        parts[index]._generator = np.random.default_rng(index)
        parts[index].global_shuffle(fleet)
        total = parts[index].get_shuffle_data_size(fleet)
        sizes[index] = (parts[index].get_memory_data_size(), total)

    threads = [threading.Thread(target=shuffle, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(batches(parts[0]) + batches(parts[1])) == whole
    assert sizes[0][0] + sizes[1][0] == sizes[0][1] == sizes[1][1] == 9
    mine = {row[0][0] for row in batches(parts[0])}
    assert mine & set(range(100, 104))
    assert mine - set(range(100, 104))


def test_global_shuffle_needs_a_collective_group(files, monkeypatch):
    monkeypatch.setattr(exchanging.hooks, "world", None)
    fleet = Fleet(0, 2, None, None)
    with pytest.raises(RuntimeError, match="2 workers of the fleet have no collective"):
        made("InMemoryDataset", files).global_shuffle(fleet)


def test_descriptions():
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    assert dataset.desc() == 'name: "MultiSlotInMemoryDataFeed"\npipe_command: "cat"\n'
    dataset = fluid.DatasetFactory().create_dataset()
    dataset.set_batch_size(2)
    dataset.set_use_var(variables()[:2])
    dataset.set_rank_offset("r")
    dataset.set_pv_batch_size(3)
    assert dataset.desc() == (
        'name: "MultiSlotDataFeed"\nbatch_size: 2\nmulti_slot_desc {\n  slots {\n'
        '    name: "ids"\n    type: "uint64"\n    is_used: true\n  }\n  slots {\n'
        '    name: "den"\n    type: "float"\n    is_dense: true\n    is_used: true\n'
        '    shape: -1\n    shape: 2\n  }\n}\npipe_command: "cat"\n'
        'rank_offset: "r"\npv_batch_size: 3\n'
    )


def test_data_feed_desc(tmp_path):
    file = tmp_path / "feed.prototxt"
    file.write_text(
        'name: "MultiSlotDataFeed" # a comment\nbatch_size: 2\nmulti_slot_desc {\n'
        '  slots { name: "words" type: "uint64" is_dense: false is_used: false }\n'
        '  slots { name: "label" type: "uint64" is_dense: false is_used: false }\n}\n'
    )
    desc = fluid.DataFeedDesc(os.fspath(file))
    desc.set_batch_size(128)
    desc.set_dense_slots(["words"])
    desc.set_use_slots(["label"])
    assert desc.desc() == (
        'name: "MultiSlotDataFeed"\nbatch_size: 128\nmulti_slot_desc {\n  slots {\n'
        '    name: "words"\n    type: "uint64"\n    is_dense: true\n'
        '    is_used: false\n  }\n  slots {\n    name: "label"\n    type: "uint64"\n'
        '    is_dense: false\n    is_used: true\n  }\n}\npipe_command: "cat"\n'
    )
    with pytest.raises(KeyError):
        desc.set_use_slots(["nope"])
    with pytest.raises(FileNotFoundError):
        fluid.DataFeedDesc("nofile")
    for wrong in ("slots {", "a }", "nope: 1", "name"):
        file.write_text(wrong)
        with pytest.raises(ValueError):
            fluid.DataFeedDesc(os.fspath(file))


def test_wrong_settings(files):
    factory = fluid.DatasetFactory()
    with pytest.raises(ValueError, match="'Foo' does not exist"):
        factory.create_dataset("Foo")
    dataset = factory.create_dataset()
    with pytest.raises(ValueError, match="float32 and int64"):
        dataset.set_use_var([fluid.data("z", [None, 2], "int32")])
    with pytest.raises(RuntimeError, match="set_use_var"):
        list(dataset._batches())
    dataset.set_use_var(variables())
    with pytest.raises(RuntimeError, match="set_filelist"):
        list(dataset._batches())
    for call in (dataset.local_shuffle, dataset.global_shuffle):
        with pytest.raises(NotImplementedError, match="InMemoryDataset"):
            call()


# ------------------------------------------------ passes


def counting_program():
    block = fluid.default_main_program().global_block()
    ids = fluid.layers.cast(block.var("ids"), "float32")
    total = fluid.layers.reduce_sum(fluid.layers.sequence_pool(ids, "sum"))
    mean = fluid.layers.reduce_mean(block.var("den"))
    count = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True)
    fluid.layers.increment(count, 1.0)
    exe = fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    return exe, mean, total, count


def value(var):
    return float(fluid.global_scope().find_var(var.name).value[0])


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
@pytest.mark.parametrize("threads", [0, 2])
def test_train_from_dataset(kind, threads, files, capsys):
    dataset = made(kind, files)
    exe, mean, total, count = counting_program()
    got = exe.train_from_dataset(
        fluid.default_main_program(),
        dataset,
        thread=threads,
        fetch_list=[mean, total],
        fetch_info=["mean", "sum"],
        print_period=2,
    )
    assert (got, value(count)) == (None, 5.0)
    lines = capsys.readouterr().out.splitlines()
    if (kind, threads) != ("QueueDataset", 2):  # there the order is not fixed
        assert lines == [
            "step 2  mean: [0.9375]  sum: [30.]",
            "step 4  mean: [38.0625]  sum: [203.]",
        ]
    exe.infer_from_dataset(fluid.default_main_program(), dataset)
    assert value(count) == 10.0


def test_a_dataset_without_samples_runs_nothing(files):
    dataset = made("InMemoryDataset", files, load=False)
    exe, *_, count = counting_program()
    exe.train_from_dataset(fluid.default_main_program(), dataset)
    assert value(count) == 0.0
    with pytest.raises(RuntimeError, match="a dataset is needed"):
        exe.train_from_dataset(fluid.default_main_program())
    with pytest.raises(ValueError, match="fetch_info has 1 entries, fetch_list 0"):
        exe.train_from_dataset(None, dataset, fetch_info=["a"])


def test_fetch_handler(files):
    class Watch(FetchHandler):
        def handler(self, res_dict):
            seen.append({k: v if v is None else [*v] for k, v in res_dict.items()})

    seen = []
    dataset = made("InMemoryDataset", files)
    exe, *_, count = counting_program()
    watch = Watch({"count": count, "other": "nope"}, period_secs=3600)
    exe.train_from_dataset(None, dataset, fetch_handler=watch)
    assert seen == [{"count": [5.0], "other": None}]
    seen.clear()
    watch.period_secs = 0
    exe.train_from_dataset(None, dataset, fetch_handler=watch)
    counts = [s["count"][0] for s in seen]
    assert counts == [6.0, 7.0, 8.0, 9.0, 10.0, 10.0]
    with pytest.raises(ValueError, match="var_dict"):
        FetchHandler()


def test_debug_tells_the_times(files, capsys):
    dataset = made("InMemoryDataset", files)
    exe, *_ = counting_program()
    exe.train_from_dataset(None, dataset, debug=True)
    assert "5 batches in" in capsys.readouterr().out


def test_a_failing_step_ends_the_reading(files):
    dataset = made("QueueDataset", files, threads=2)
    exe, *_ = counting_program()
    before = len(psutil.Process().children()), threading.active_count()
    nothing_started = fluid.scope_guard(fluid.Scope())
    with nothing_started, pytest.raises(RuntimeError, match="op increment: input X"):
        exe.train_from_dataset(None, dataset)
    assert (len(psutil.Process().children()), threading.active_count()) == before
