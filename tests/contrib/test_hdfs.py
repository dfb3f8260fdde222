"""HDFS clients, over a ``hadoop`` that works on a local folder."""

from __future__ import annotations

import os
import zipfile

import fake_hadoop
import pytest

import fluidx as fluid
from fluidx.contrib.utils import HDFSClient, multi_download, multi_upload
from fluidx.contrib.utils.hadoop import Hadoop
from fluidx.contrib.utils.hdfs_utils import getfilelist
from fluidx.distributed.fs_wrapper import BDFS, LocalFS
from fluidx.incubate.fleet.utils.hdfs import HDFSClient as FleetClient

CONFIGS = {"fs.default.name": "hdfs://host:1", "hadoop.job.ugi": "user,word"}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The folder that is the file system; beside it the tool in ``home``."""
    fake_hadoop.install(tmp_path / "home", tmp_path / "files", monkeypatch)
    monkeypatch.setattr("fluidx.contrib.utils.hadoop.time.sleep", lambda s: None)
    return tmp_path / "files"


@pytest.fixture(params=[HDFSClient, FleetClient])
def client(request, files):
    return request.param(str(files.parent / "home"), CONFIGS)


def commands(files):
    """What the tool was told since the last call."""
    log = files.parent / "home" / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    log.write_text("")
    return [line.partition("word ")[2] for line in lines]


def some(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def test_commands_carry_the_settings(files, client):
    # recorded from the reference
    assert client.pre_commands == [
        str(files.parent / "home/bin/hadoop"),
        "fs",
        "-Dfs.default.name=hdfs://host:1",
        "-Dhadoop.job.ugi=user,word",
    ]
    assert not client.is_exist("/d")
    assert commands(files) == ["-test -e /d"]


def test_looking(files, client):
    some(files, "d/b.txt", "d/in/c.txt", "d/a.txt")
    os.utime(files / "d/b.txt", (0, 86400))
    assert client.is_exist("/d")
    assert client.is_dir("/d")
    assert not client.is_dir("/d/a.txt")
    assert client.ls("/d") == ["/d/a.txt", "/d/b.txt", "/d/in"]
    assert client.ls("/nothing") == []
    # by time
    assert client.lsr("/d") == ["/d/b.txt", "/d/a.txt", "/d/in/c.txt"]


def test_changing(files, client):
    some(files, "d/a.txt", "d/b.txt", "e/c.txt")
    assert client.delete("/d/a.txt")
    assert commands(files)[-1] == "-rm /d/a.txt"
    assert client.delete("/d/a.txt")  # nothing there: done
    assert client.makedirs("/n/m")
    assert client.rename("/d/b.txt", "/n/m/b.txt")
    assert not client.rename("/nothing", "/x")
    assert client.rename("/n/m/b.txt", "/e/c.txt", overwrite=True)
    assert (files / "e/c.txt").read_text() == "d/b.txt"
    assert client.delete("/n")
    assert commands(files)[-1] == "-rmr /n"
    assert sorted(p.name for p in files.iterdir()) == ["d", "e"]


def test_uploading_a_file(files, client, tmp_path):
    some(tmp_path, "local.txt")
    local = str(tmp_path / "local.txt")
    assert client.upload("/d", local)
    assert (files / "d/local.txt").read_text() == "local.txt"
    assert not client.upload("/d", local)
    (tmp_path / "local.txt").write_text("new")
    assert client.upload("/d", local, overwrite=True)
    assert (files / "d/local.txt").read_text() == "new"
    with pytest.raises(FileNotFoundError, match="does not exist"):
        client.upload("/d", str(tmp_path / "none"))


def test_downloading(files, tmp_path):
    home = str(files.parent / "home")
    some(files, "d/a.txt", "d/in/b.txt")
    client = HDFSClient(home, CONFIGS)
    assert client.download("/d/a.txt", str(tmp_path / "to/a.txt"))
    assert not client.download("/d/a.txt", str(tmp_path / "to/a.txt"))
    assert not client.download("/none", str(tmp_path / "to/none"))
    with zipfile.ZipFile(files / "z.zip", "w") as archive:
        archive.writestr("inside.txt", "packed")
    assert client.download("/z.zip", str(tmp_path / "to/z.zip"), unzip=True)
    assert (tmp_path / "to/inside.txt").read_text() == "packed"
    fleet = FleetClient(home, CONFIGS)
    assert fleet.download("/d", str(tmp_path / "all"))
    assert getfilelist(str(tmp_path / "all")) == [str(tmp_path / "all/a.txt")]
    assert fleet.cat("/d/a.txt") == "d/a.txt"
    assert (fleet.cat("/d"), fleet.is_file("/d"), fleet.is_file("/d/a.txt")) == (
        *("", False, True),
    )
    assert fleet.lsr("/d", ["b.txt"]) == ["/d/a.txt"]


def test_a_folder_goes_as_a_whole(files, tmp_path):
    fleet = FleetClient(str(files.parent / "home"), CONFIGS)
    some(tmp_path / "model", "w", "in/b")
    assert fleet.upload_dir("/models", str(tmp_path / "model"))
    assert (files / "models/model/in/b").exists()
    assert not fleet.upload_dir("/models", str(tmp_path / "model"))
    assert fleet.upload_dir("/models", str(tmp_path / "model"), overwrite=True)
    shares = [fleet.split_files(list("abcdefg"), i, 3) for i in range(3)]
    assert shares == [["a", "b", "c"], ["d", "e"], ["f", "g"]]


def test_each_trainer_downloads_its_share(files, tmp_path):
    client = HDFSClient(str(files.parent / "home"), CONFIGS)
    some(tmp_path / "up", "a", "b", "in/c")
    multi_upload(client, "/data", str(tmp_path / "up"))
    with pytest.raises(RuntimeError, match="did not go"):
        multi_upload(client, "/data", str(tmp_path / "up"))
    got = [multi_download(client, "/data", str(tmp_path / "to"), i, 2) for i in (0, 1)]
    names = [[os.path.relpath(p, tmp_path / "to") for p in part] for part in got]
    assert names == [["a", "in/c"], ["b"]]
    assert (tmp_path / "to/in/c").read_text() == "in/c"
    with pytest.raises(ValueError, match="trainer_id 2"):
        multi_download(client, "/data", str(tmp_path / "to"), 2, 2)


def test_failures_say_what_failed(files, tmp_path):
    tool = Hadoop(str(files.parent / "home"), CONFIGS, tries=3)
    with pytest.raises(RuntimeError, match=r"fs -what /x: code 1: unknown command"):
        tool.must("-what", "/x")
    assert commands(files) == ["-what /x"] * 3
    with pytest.raises(RuntimeError, match=r"hadoop cannot be run: .*No such file"):
        Hadoop(str(tmp_path / "nowhere"), {}).run("-ls", "/")


@pytest.mark.parametrize("kind", ["local", "hadoop"])
def test_file_systems_of_checkpoints(kind, files, tmp_path, monkeypatch):
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "home"))
    far = kind == "hadoop"
    fs = BDFS("hdfs://host:1", "user,word", 10, 10) if far else LocalFS()
    assert fs.need_upload_download() == far
    root = "" if far else str(tmp_path / "here")
    fs.mkdir(f"{root}/a/b")
    fs.mkdir(f"{root}/a/b")
    some((files if far else tmp_path / "here"), "a/x")
    # recorded from the reference, as sets
    assert (fs.ls_dir(f"{root}/a"), fs.list_dirs(f"{root}/a")) == (["b", "x"], ["b"])
    assert fs.list_dirs(f"{root}/none") == []
    fs.mv(f"{root}/a/x", f"{root}/a/y")
    assert (fs.stat(f"{root}/a/x"), fs.stat(f"{root}/a/y")) == (False, True)
    fs.rm(f"{root}/a/y")
    fs.delete(f"{root}/a/y")
    fs.delete(f"{root}/a/b")
    assert fs.ls_dir(f"{root}/a") == []
    fs.rmr(f"{root}/a")
    assert not fs.stat(f"{root}/a")


def test_programs_with_tables_on_servers_become_local():
    ids = fluid.data("ids", [None, 1], "int64")
    rows = fluid.layers.embedding(
        ids, [50, 4], is_sparse=True, is_distributed=False, param_attr="table"
    )
    loss = fluid.layers.mean(fluid.layers.fc(rows, 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="127.0.0.1:6174", trainers=1)
    main = transpiler.get_trainer_program(wait_port=False)
    made = fluid.contrib.convert_dist_to_sparse_program(main)
    types = [op.type for op in made.global_block().ops]
    assert "lookup_table" in types
    assert not {"distributed_lookup_table", "send", "recv"}.intersection(types)
    assert "distributed_lookup_table" in [o.type for o in main.global_block().ops]


def test_a_table_from_a_file_of_its_own(tmp_path):
    ids = fluid.data("ids", [None, 1], "int64")
    rows = fluid.layers.embedding(ids, [5, 2], param_attr="table")
    fluid.layers.fc(rows, 1, param_attr="w", bias_attr=False)
    main, exe = fluid.default_main_program(), fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_persistables(exe, str(tmp_path / "model"), main)
    scope = fluid.global_scope()
    before = {n: scope.find_var(n).value.copy() for n in ("table", "w")}
    os.rename(tmp_path / "model/table", tmp_path / "big")
    for name in before:
        scope.find_var(name).value = before[name] * 0
    fluid.contrib.load_persistables_for_increment(
        str(tmp_path / "model"), exe, main, "table", str(tmp_path / "big")
    )
    for name, value in before.items():
        assert (scope.find_var(name).value == value).all()
    with pytest.raises(ValueError, match="no table 'other'"):
        fluid.contrib.load_persistables_for_inference(
            str(tmp_path / "model"), exe, main, "other"
        )
