"""Lines with ids and log keys, page views, and files that `hadoop` reads.

What the reference's InMemoryDataset makes of the same lines stands in the cases.
"""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

import fluidx as fluid
from fluidx.io import DataLoader
from fluidx.ir import EnforceNotMet

LINES = ["2 7 8 2 .5 .25", "1 9 2 1.5 1.25", "1 3 2 0 0"]
IDS = [[7, 8], [9], [3]]


def _logkey(search: int) -> str:
    return f"{'0' * 11}{222:03x}{1:02x}{search:016x}"


@pytest.fixture
def dataset() -> Any:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        ids = fluid.data("ids", [None, 1], "int64", 1)
        den = fluid.data("den", [None, 2], "float32")
    made = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    made.set_batch_size(1)
    made.set_use_var([ids, den])
    return made


def _write(folder: Path, lines: list[str]) -> list[str]:
    path = folder / "part"
    path.write_text("".join(f"{line}\n" for line in lines))
    return [str(path)]


def _ids(dataset: Any) -> list[list[int]]:
    loader = DataLoader.from_dataset(dataset, [fluid.CPUPlace()], False)
    found = []
    for (feed,) in loader():
        assert sorted(feed) == ["den", "ids"]
        found.append(feed["ids"].value.ravel().tolist())
    return found


@pytest.mark.parametrize("heads", ["ins_id", "content", "logkey", "all"])
def test_what_stands_before_the_slots_is_left_out(
    dataset: Any, tmp_path: Path, heads: str
) -> None:
    names = ["ins_id", "content", "logkey"] if heads == "all" else [heads]
    for name in names:
        getattr(dataset, f"set_parse_{name}")(True)
    words = {"ins_id": "1 ins_1", "content": "1 a,text", "logkey": f"1 {_logkey(1)}"}
    front = " ".join(words[n] for n in names)
    dataset.set_filelist(_write(tmp_path, [f"{front} {line}" for line in LINES]))
    dataset.load_into_memory()
    assert dataset.get_memory_data_size() == 3
    assert _ids(dataset) == IDS
    getattr(dataset, f"set_parse_{names[0]}")(False)
    with pytest.raises(ValueError, match="part:1"):
        dataset.load_into_memory()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("2 a b 1 3 2 0 0", "part:4: ins_id: expected 1 and one word, came '2 a'"),
        ("1", "part:4: ins_id: expected 1 and one word, came '1'"),
    ],
)
def test_a_line_without_its_id(
    dataset: Any, tmp_path: Path, line: str, says: str
) -> None:
    dataset.set_parse_ins_id(True)
    lines = [f"1 x {text}" for text in LINES]
    dataset.set_filelist(_write(tmp_path, [*lines, line]))
    with pytest.raises(ValueError, match=says):
        dataset.load_into_memory()


def test_a_wrong_log_key(dataset: Any, tmp_path: Path) -> None:
    dataset.set_parse_logkey(True)
    for key in ("1234", "z" * 32):
        dataset.set_filelist(_write(tmp_path, [f"1 {key} {LINES[0]}"]))
        with pytest.raises(ValueError, match=f"part:1: logkey: .*{key}"):
            dataset.load_into_memory()


def test_page_views(dataset: Any, tmp_path: Path) -> None:
    """Sizes are those that the reference tells."""
    dataset.set_parse_logkey(True)
    dataset.set_merge_by_sid(True)
    dataset.set_enable_pv_merge(True)
    dataset.set_pv_batch_size(2)
    searches = [1, (1 << 63) + 2, 1, 3]
    lines = [*LINES, "1 4 2 0 1"]
    lines = [f"1 {_logkey(s)} {line}" for s, line in zip(searches, lines)]
    dataset.set_filelist(_write(tmp_path, lines))
    with pytest.raises(RuntimeError, match="load_into_memory"):
        dataset.preprocess_instance()
    dataset.load_into_memory()
    assert (dataset.get_memory_data_size(), dataset.get_pv_data_size()) == (4, 0)
    dataset.set_current_phase(1)
    dataset.preprocess_instance()
    assert (dataset.get_memory_data_size(), dataset.get_pv_data_size()) == (0, 3)
    views = _ids(dataset)
    # the searches as signed numbers: the one above 2 ** 63 comes first
    assert views == [[9, 7, 8, 3], [4]]
    dataset.set_current_phase(0)
    dataset.postprocess_instance()
    assert (dataset.get_memory_data_size(), dataset.get_pv_data_size()) == (4, 3)
    assert sorted(_ids(dataset)) == [[3], [4], [7, 8], [9]]
    dataset.release_memory()
    assert (dataset.get_memory_data_size(), dataset.get_pv_data_size()) == (0, 0)


def test_merging_lines_needs_workers(dataset: Any, tmp_path: Path) -> None:
    """Without workers to exchange samples with, the reference merges nothing."""

    class Fleet:
        def worker_num(self) -> int:
            return 2

    dataset.set_merge_by_lineid(2)
    dataset.set_filelist(_write(tmp_path, [f"1 x {text}" for text in LINES]))
    dataset.load_into_memory()
    dataset.global_shuffle()
    assert sorted(_ids(dataset)) == sorted(IDS)
    with pytest.raises(NotImplementedError, match="set_merge_by_lineid"):
        dataset.global_shuffle(Fleet())


def test_what_needs_pslib_says_so(dataset: Any) -> None:
    dataset.set_generate_unique_feasigns(True, 3)
    with pytest.raises(NotImplementedError, match="tables of pslib"):
        dataset.generate_local_tables_unlock(0, 8, 1, 1, 3)


# ------------------------------------------------ hadoop

FAKE = """#!{python}
import signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
args = sys.argv[1:]
print(args, file=open({log!r}, "a"))
assert args[0] == "fs" and args[-2] == "-cat", args
if args[-1].endswith("missing"):
    sys.exit("cat: `%s': No such file or directory" % args[-1])
for i in range({count}):
    print("1 %d 2 0.5 %d" % (i + 1, i))
"""


def _hadoop(folder: Path, monkeypatch: Any, count: int = 3) -> Path:
    log, tool = folder / "log", folder / "hadoop"
    tool.write_text(FAKE.format(python=sys.executable, log=str(log), count=count))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return log


def test_files_on_hdfs(dataset: Any, tmp_path: Path, monkeypatch: Any) -> None:
    log = _hadoop(tmp_path, monkeypatch)
    dataset.set_hdfs_config("hdfs://name:9000", "me,secret")
    dataset.set_filelist(["hdfs:/data/part-0", "afs:/data/part-1"])
    dataset.load_into_memory()
    assert _ids(dataset) == [[1], [2], [3]] * 2
    said = log.read_text().splitlines()
    where = "'fs', '-Dfs.default.name=hdfs://name:9000', '-Dhadoop.job.ugi=me,secret'"
    assert said == [
        f"[{where}, '-cat', 'hdfs:/data/part-0']",
        f"[{where}, '-cat', 'afs:/data/part-1']",
    ]


def test_pipe_commands_of_files_on_hdfs(
    dataset: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    _hadoop(tmp_path, monkeypatch)
    dataset.set_filelist(["hdfs:/data/part-0"])
    dataset.set_pipe_command("sed s/^1/2\\ 8/")
    dataset.load_into_memory()
    assert _ids(dataset) == [[8, 1], [8, 2], [8, 3]]


def test_a_pipe_command_that_has_had_enough(
    dataset: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    _hadoop(tmp_path, monkeypatch, count=200_000)
    dataset.set_filelist(["hdfs:/data/part-0"])
    dataset.set_pipe_command("head -n 2")
    dataset.load_into_memory()
    assert _ids(dataset) == [[1], [2]]


def test_a_missing_file_on_hdfs(dataset: Any, tmp_path: Path, monkeypatch: Any) -> None:
    _hadoop(tmp_path, monkeypatch)
    dataset.set_filelist(["hdfs:/data/missing"])
    with pytest.raises(RuntimeError, match=r"-cat hdfs:/data/missing failed .*No such"):
        dataset.load_into_memory()


def test_no_hadoop(dataset: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    dataset.set_filelist(["hdfs:/data/part-0"])
    with pytest.raises(RuntimeError, match=r"`hadoop` .* not on the PATH"):
        dataset.load_into_memory()


def test_another_command_for_remote_files(dataset: Any, tmp_path: Path) -> None:
    (path,) = _write(tmp_path, LINES)
    dataset.set_download_cmd("sed -n s/^2/2/p " + path + "; echo 1 5 2 0 0 #")
    dataset.set_filelist(["afs:/anything"])
    dataset.load_into_memory()
    assert _ids(dataset) == [[7, 8], [5]]


def test_training_from_hdfs(dataset: Any, tmp_path: Path, monkeypatch: Any) -> None:
    _hadoop(tmp_path, monkeypatch)
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        ids = fluid.data("ids", [None, 1], "int64", 1)
        den = fluid.data("den", [None, 2], "float32")
        total = fluid.layers.create_global_var([1], 0.0, "float32", True, name="total")
        step = fluid.layers.reduce_sum(den)
        fluid.layers.assign(fluid.layers.elementwise_add(total, step), total)
    queue = fluid.DatasetFactory().create_dataset("QueueDataset")
    queue.set_use_var([ids, den])
    queue.set_batch_size(2)
    queue.set_filelist(["hdfs:/a", "hdfs:/b"])
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        exe.train_from_dataset(main, queue)
        assert scope.find_var("total").value.tolist() == [2 * (1.5 + 0 + 1 + 2)]
    queue.set_filelist(["hdfs:/missing"])
    with fluid.scope_guard(scope), pytest.raises((RuntimeError, EnforceNotMet)):
        exe.train_from_dataset(main, queue)
