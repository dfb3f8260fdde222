"""Functions of ``paddle.distributed.launch`` and its helpers; recorded values."""

from __future__ import annotations

import argparse
import time

import pytest

from fluidx.distributed import cloud_utils, launch, utils
from fluidx.distributed.errors import ClusterError
from fluidx.distributed.launch import MEET, roles_on

ENDPOINTS = [["10.0.0.1:6170", "10.0.0.1:6171"], ["10.0.0.2:6170", "10.0.0.2:6171"]]
FLAT = [e for node in ENDPOINTS for e in node]
CLOUD = ("PADDLE_TRAINERS", "POD_IP", "PADDLE_PORT", "PADDLE_TRAINERS_NUM")
CLOUD += ("DISTRIBUTED_TRAINER_ENDPOINTS", "PADDLE_TRAINERS_IP_PORT_LIST")


@pytest.fixture
def clean(monkeypatch):
    for name in CLOUD:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_a_cluster_and_this_node():
    cluster, pod = launch.get_cluster(
        ["10.0.0.1", "10.0.0.2"], "10.0.0.2", ENDPOINTS, ["0", "1"]
    )
    assert cluster.trainers_endpoints() == FLAT
    assert (cluster.trainers_nranks(), cluster.pods_nranks()) == (4, 2)
    assert (pod.rank, pod.addr) == (1, "10.0.0.2")
    assert [(t.rank, t.gpus) for t in pod.trainers] == [(2, ["0"]), (3, ["1"])]
    assert cluster.get_pod_by_id(1) is pod
    assert cluster.get_pod_by_id(9) is None
    with pytest.raises(ClusterError, match=r"10.0.0.1:None not a valid endpoint"):
        cluster.pods_endpoints()
    with pytest.raises(ClusterError, match=r"node_ip 10.0.0.3 is not in"):
        launch.get_cluster(["10.0.0.1"], "10.0.0.3", ENDPOINTS, ["0"])
    assert not utils.Hdfs().is_valid()


def test_a_cluster_of_the_flags():
    args = argparse.Namespace(
        node_ip="127.0.0.1",
        cluster_node_ips="127.0.0.1",
        use_paddlecloud=False,
        started_port=6170,
    )
    cluster, pod = launch.get_cluster_from_args(args, ["0", "1"])
    assert cluster.trainers_endpoints() == ["127.0.0.1:6170", "127.0.0.1:6171"]
    assert pod is cluster.pods[0]
    args.started_port = None
    free = launch.get_cluster_from_args(args, ["0", "1"])[0].trainers_endpoints()
    assert len(set(free)) == 2


def test_a_cluster_of_a_cloud(clean):
    assert cloud_utils.get_trainers_num() == 1
    for name, value in (
        ("PADDLE_TRAINERS", "10.0.0.1,10.0.0.2"),
        ("POD_IP", "10.0.0.2"),
        ("PADDLE_TRAINERS_NUM", "2"),
        ("PADDLE_PORT", "7000"),
    ):
        clean.setenv(name, value)
    cluster, pod = cloud_utils.get_cloud_cluster("127.0.0.1", "127.0.0.1", 6170, [0, 1])
    assert cluster.trainers_endpoints()[1:3] == ["10.0.0.1:7001", "10.0.0.2:7000"]
    assert (pod.rank, cloud_utils.get_trainers_num()) == (1, 2)
    for name in CLOUD[-2:]:
        clean.setenv(name, ",".join(FLAT))
        cluster, _ = cloud_utils.get_cloud_cluster("", "", 1, [0, 1])
        assert cluster.trainers_endpoints() == FLAT
        clean.delenv(name)
    clean.setenv(CLOUD[-1], "10.0.0.1:1")
    with pytest.raises(ClusterError, match="1 endpoints for 2 nodes of 2 ranks"):
        cloud_utils.get_cloud_cluster("", "", 1, [0, 1])


def test_small_helpers():
    parser = argparse.ArgumentParser()
    utils.add_arguments("fast", bool, True, "Be fast.", parser)
    utils.add_arguments("size", int, 3, "How large.", parser)
    assert parser.parse_args(["--fast", "no"]) == argparse.Namespace(fast=False, size=3)
    assert len(utils.find_free_ports(3)) == 3
    assert launch.get_logger("INFO", "fluidx-test").level == 20
    assert launch.get_gpus("0,1") == ["0", "1"]
    with pytest.raises(AttributeError, match="no 'other'"):
        _ = launch.other


@pytest.mark.cluster
@pytest.mark.parametrize("code", [0, 3])
def test_local_ranks_are_started_and_watched(code, tmp_path):
    script = tmp_path / "rank.py"
    script.write_text(
        "import os, sys\n"
        "print(os.environ['PADDLE_TRAINER_ID'], os.environ['PADDLE_TRAINERS_NUM'])\n"
        f"sys.exit({code} * (os.environ['PADDLE_TRAINER_ID'] == '1'))\n"
    )
    ends = [["127.0.0.1:6170", "127.0.0.1:6171"]]
    cluster, pod = utils.get_cluster(["127.0.0.1"], "127.0.0.1", ends, ["0", "1"])
    log = str(tmp_path / "log")
    procs = utils.start_local_trainers(cluster, pod, str(script), [], log)

    def watch():
        until = time.monotonic() + 30
        while utils.watch_local_trainers(procs, 2):
            assert time.monotonic() < until
            time.sleep(0.05)

    if code:
        with pytest.raises(ClusterError, match="rank 1 of 2 failed: exit code 3"):
            watch()
    else:
        watch()
        said = [(tmp_path / "log" / f"workerlog.{i}").read_text() for i in (0, 1)]
        assert said == ["0 2\n", "1 2\n"]


def test_workers_are_told_where_to_meet():
    from fluidx.distributed.launch import _close

    roles = roles_on(["x.py"], 2, ["127.0.0.1:1", "127.0.0.1:2"])
    assert len({role.env[MEET] for role in roles}) == 1
    assert [len(role.fds) for role in roles] == [0, 0, 1, 0]
    host = roles[2]
    assert host.env["FLUIDX_LISTEN_FDS"] == f"{host.env[MEET]}={host.fds[0]}"
    _close(host.fds)
