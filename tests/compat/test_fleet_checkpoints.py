"""Checkpoints of a collective fleet; the layout is recorded from the reference."""

from __future__ import annotations

import json

import fake_hadoop
import numpy as np
import pytest

import fluidx as fluid
from fluidx.distributed.fs_wrapper import BDFS, LocalFS
from fluidx.incubate.fleet import collective
from fluidx.incubate.fleet.base import role_maker
from fluidx.incubate.fleet.collective import TrainStatus

PREFIX = "__paddle_fleet_checkpoint__"


@pytest.fixture
def fleet():
    made = collective.Collective()
    made.init(role_maker.UserDefinedCollectiveRoleMaker(0, ["127.0.0.1:6170"]))
    loss = fluid.layers.mean(
        fluid.layers.fc(fluid.data("x", [None, 4]), 1, param_attr="w")
    )
    made.distributed_optimizer(fluid.optimizer.Momentum(0.1, 0.9)).minimize(loss)
    made.exe = fluid.Executor()
    made.exe.run(made.startup_program)
    return made


def numbers(folder):
    return sorted(p.name for p in folder.iterdir())


def weight():
    return fluid.global_scope().find_var("w").value


def test_a_checkpoint_holds_variables_and_the_epoch(fleet, tmp_path):
    for epoch in range(3):
        weight()[...] = epoch
        fleet.save_check_point(fleet.exe, str(tmp_path / "ck"), TrainStatus(epoch))
    assert numbers(tmp_path / "ck") == [f"{PREFIX}.{i}" for i in range(3)]
    files = tmp_path / "ck" / f"{PREFIX}.1"
    assert numbers(files) == ["_paddle_fleet_param__", "fleet_train_status"]
    assert json.loads((files / "fleet_train_status").read_text()) == {"epoch_no": 1}
    weight()[...] = 7
    status = fleet.load_check_point(fleet.exe, str(tmp_path / "ck"), 0)
    assert status == TrainStatus(2)
    assert (status.next(), TrainStatus().next()) == (3, 0)
    np.testing.assert_array_equal(weight(), np.full((4, 1), 2, "f4"))


def test_old_ones_go(fleet, tmp_path):
    root = str(tmp_path / "ck")
    for epoch in range(4):
        fleet.save_check_point(fleet.exe, root, TrainStatus(epoch))
    fleet.clean_redundant_check_points(root, checkpoint_num=2)
    assert numbers(tmp_path / "ck") == [f"{PREFIX}.2", f"{PREFIX}.3"]
    fleet.save_check_point(fleet.exe, root, TrainStatus(9), remain_all_checkpoint=False)
    assert numbers(tmp_path / "ck") == [f"{PREFIX}.4"]
    fleet.clean_redundant_check_points(root, checkpoint_num=0)
    assert numbers(tmp_path / "ck") == [f"{PREFIX}.4"]


def test_half_a_checkpoint_does_not_count(fleet, tmp_path):
    root = tmp_path / "ck"
    fleet.save_check_point(fleet.exe, str(root), TrainStatus(0))
    (root / f"{PREFIX}.1.tmp").mkdir()
    (root / "other").mkdir()
    assert fleet.load_check_point(fleet.exe, str(root), 0) == TrainStatus(0)
    fleet.save_check_point(fleet.exe, str(root), TrainStatus(1))
    assert numbers(root) == [f"{PREFIX}.0", f"{PREFIX}.1", "other"]
    (root / f"{PREFIX}.1" / "fleet_train_status").write_text('{"epoch": 1}')
    with pytest.raises(ValueError, match="holds no train status"):
        fleet.load_check_point(fleet.exe, str(root), 0)


def test_without_a_checkpoint(fleet, tmp_path):
    assert fleet.load_check_point(fleet.exe, str(tmp_path / "none"), 0) is None
    with pytest.raises(FileNotFoundError, match="no checkpoint in"):
        fleet.load_check_point(fleet.exe, str(tmp_path / "none"), 0, ignore_empty=False)


def test_checkpoints_behind_hadoop(fleet, tmp_path, monkeypatch):
    fake_hadoop.install(tmp_path / "home", tmp_path / "files", monkeypatch)
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "home"))
    fs, cache = BDFS("hdfs://host:1", "user,word", 10, 10), str(tmp_path / "cache")
    for epoch in range(2):
        weight()[...] = epoch + 5
        fleet.save_check_point(
            fleet.exe, "/ck", TrainStatus(epoch), fs=fs, local_cache_path=cache
        )
    assert numbers(tmp_path / "files/ck") == [f"{PREFIX}.0", f"{PREFIX}.1"]
    weight()[...] = 0
    status = fleet.load_check_point(fleet.exe, "/ck", 0, fs=fs, local_cache_path=cache)
    assert status == TrainStatus(1)
    np.testing.assert_array_equal(weight(), np.full((4, 1), 6, "f4"))
    assert numbers(tmp_path / "cache") == []
    fleet.clean_redundant_check_points("/ck", fs)
    assert numbers(tmp_path / "files/ck") == [f"{PREFIX}.1"]
    assert not LocalFS().need_upload_download()


def test_options_that_make_no_sense(fleet):
    strategy = collective.DistributedStrategy()
    assert (strategy.dist_fc_config, strategy.amp_loss_scaling) == (None, 32768)
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("z", [None, 4]), 1))

    def minimize(**options):
        made = collective.DistributedStrategy()
        for name, value in options.items():
            setattr(made, name, value)
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), made).minimize(loss)

    with pytest.raises(ValueError, match="needs recompute_checkpoints"):
        minimize(forward_recompute=True)
    with pytest.raises(ValueError, match=r"needs strategy.dist_fc_config"):
        minimize(use_dist_fc=True)
    with pytest.raises(NotImplementedError, match="use_dist_fc"):
        minimize(use_dist_fc=True, dist_fc_config=collective.DistFCConfig())
    with pytest.raises(TypeError, match="must be a DistributedStrategy"):
        collective.CollectiveOpBasedOptimizer(fluid.optimizer.SGD(0.1))


def test_an_optimizer_with_a_strategy_beside_it():
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
    made = collective.CollectiveOpBasedOptimizer(
        fluid.optimizer.SGD(0.1), collective.DistributedStrategy()
    )
    pairs = made.backward(loss)
    made.apply_gradients(pairs)
    assert len(pairs) == 2
    types = [op.type for op in loss.block.program.global_block().ops]
    assert types[-2:] == ["sgd", "sgd"]
    with pytest.raises(NotImplementedError, match="has no minimize"):
        made.minimize(loss)
