"""Role makers, strategies, and fleets that train."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fluidx as fluid
from fluidx.executor import CompiledProgram, hooks
from fluidx.incubate.fleet import collective
from fluidx.incubate.fleet.base import role_maker
from fluidx.incubate.fleet.parameter_server import distribute_transpiler as servers
from fluidx.incubate.fleet.parameter_server.distribute_transpiler import (
    distributed_strategy as strategies,
)

SCRIPT = Path(__file__).with_name("fleet_script.py")
Role = role_maker.Role
CLUSTER = {
    "TRAINING_ROLE": "TRAINER",
    "PADDLE_TRAINER_ID": "1",
    "PADDLE_TRAINERS_NUM": "2",
    "PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.1:6174,127.0.0.1:6175",
    "POD_IP": "127.0.0.1",
    "PADDLE_PORT": "6175",
}


@pytest.fixture
def cluster(monkeypatch):
    for name, value in CLUSTER.items():
        monkeypatch.setenv(name, value)
    # fleets remember the clients that they make
    monkeypatch.setattr(hooks, "rpc_factory", hooks.rpc_factory)
    return monkeypatch


def a_loss():
    return fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))


def types(program):
    return [op.type for op in program.global_block().ops]


# ---------------------------------------------------------------- roles


def test_a_worker_of_the_environment(cluster):
    maker = role_maker.PaddleCloudRoleMaker()
    assert maker.is_worker()
    assert not maker.is_server()
    assert not maker.is_first_worker()
    assert (maker.worker_index(), maker.worker_num()) == (1, 2)
    # recorded from the reference
    assert maker.to_string() == (
        "role: 1, current_id: 1, worker_endpoints: [], server_endpoints: "
        "['127.0.0.1:6174', '127.0.0.1:6175']"
    )


def test_a_server_of_the_environment(cluster):
    cluster.setenv("TRAINING_ROLE", "PSERVER")
    maker = role_maker.PaddleCloudRoleMaker()
    assert (maker.is_server(), maker.server_index(), maker.server_num()) == (True, 1, 2)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PADDLE_TRAINERS_NUM", None, "needs PADDLE_TRAINERS_NUM"),
        ("TRAINING_ROLE", "BOSS", "must be TRAINER or PSERVER, got 'BOSS'"),
    ],
)
def test_an_environment_that_does_not_tell(cluster, name, value, message):
    if value is None:
        cluster.delenv(name)
    else:
        cluster.setenv(name, value)
    with pytest.raises(ValueError, match=message):
        role_maker.PaddleCloudRoleMaker().is_worker()


def test_a_rank_of_the_environment(cluster):
    cluster.setenv("PADDLE_TRAINER_ENDPOINTS", "a:1,b:1,c:1")
    maker = role_maker.PaddleCloudRoleMaker(is_collective=True)
    assert (maker.worker_num(), maker.worker_index()) == (3, 1)
    assert maker.get_trainer_endpoints() == ["a:1", "b:1", "c:1"]


def test_roles_that_the_script_tells():
    maker = role_maker.UserDefinedRoleMaker(0, Role.WORKER, 2, ["a:1"])
    assert maker.is_first_worker()
    maker = role_maker.UserDefinedRoleMaker(1, Role.SERVER, 2, ["a:1", "b:1"])
    assert (maker.is_server(), maker.worker_num()) == (True, 2)
    for wrong, error in (
        ((0, 7, 2, ["a:1"]), TypeError),
        ((2, Role.WORKER, 2, ["a:1"]), ValueError),
        ((0, Role.WORKER, 2, []), ValueError),
        ((0, Role.WORKER, 0, ["a:1"]), ValueError),
        ((0, Role.WORKER, 1, ["a:1", "a:1"]), ValueError),
    ):
        with pytest.raises(error):
            role_maker.UserDefinedRoleMaker(*wrong)


def test_waiting_for_others_needs_a_place(cluster):
    cluster.delenv("FLUIDX_MEET", raising=False)
    maker = role_maker.PaddleCloudRoleMaker()
    with pytest.raises(RuntimeError, match="2 workers have no place to meet"):
        maker.barrier_worker()
    role_maker.UserDefinedRoleMaker(0, Role.WORKER, 1, ["a:1"]).barrier_worker()


# ---------------------------------------------------------------- fleets


@pytest.mark.parametrize(
    ("index", "share"), [(0, ["a", "b", "c"]), (1, ["d", "e"]), (2, ["f", "g"])]
)
def test_files_are_shared_out(cluster, index, share):
    fleet = servers.DistributedTranspiler()
    fleet.init(role_maker.UserDefinedRoleMaker(index, Role.WORKER, 3, ["x:1"]))
    assert fleet.split_files(list("abcdefg")) == share


def test_strategies_say_what_the_reference_says(monkeypatch):
    monkeypatch.delenv("CPU_NUM", raising=False)
    factory = strategies.StrategyFactory
    made = {
        "sync": factory.create_sync_strategy(),
        "async": factory.create_async_strategy(),
        "half": factory.create_half_async_strategy(),
        "geo": factory.create_geo_strategy(20),
    }
    for name, strategy in made.items():
        config = strategy.get_program_config()
        assert not config.sync_mode
        assert config.runtime_split_send_recv
        assert config.half_async == (name in ("sync", "half"))
        assert config.completely_not_async == (name == "sync")
        assert config.geo_sgd_mode == (name == "geo")
        runtime = strategy.get_trainer_runtime_config()
        assert runtime.mode == ["sync", "async", "half", "geo"].index(name)
        flags = runtime.get_communicator_flags()
        assert flags["communicator_send_queue_size"] == "1"
        assert flags["communicator_thread_pool_size"] == "5"
    assert made["geo"].get_program_config().geo_sgd_need_push_nums == 20
    made["sync"].set_program_config({"slice_var_up": False})
    assert not made["sync"].get_program_config().slice_var_up
    with pytest.raises(ValueError, match="has no 'slices'"):
        made["sync"].set_program_config({"slices": 1})


def test_programs_of_a_worker_and_of_a_server(cluster):
    fleet = servers.DistributedTranspiler()
    fleet.init()
    loss = a_loss()
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(loss)
    assert fleet.main_program is fluid.default_main_program()
    # recorded from the reference: cut when sent, and no barrier behind the recvs
    assert types(fleet.main_program)[-3:] == ["send_barrier", "recv", "recv"]
    barrier = fleet.main_program.global_block().ops[-3]
    assert barrier.attr("half_async")
    cluster.setenv("TRAINING_ROLE", "PSERVER")
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        fleet = servers.DistributedTranspiler()
        fleet.init()
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(a_loss())
    assert types(fleet.main_program) == ["listen_and_serv"]
    serve = fleet.main_program.global_block().ops[0]
    assert serve.attr("distributed_mode") == 0
    with pytest.raises(TypeError, match="takes a strategy of StrategyFactory"):
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), 3)


def test_order_of_calls(cluster):
    fleet = servers.DistributedTranspiler()
    with pytest.raises(RuntimeError, match=r"fleet\.init"):
        fleet.is_worker()
    fleet.init()
    with pytest.raises(RuntimeError, match="comes after minimize"):
        fleet.init_worker()
    with pytest.raises(TypeError, match="takes a role maker, got int"):
        fleet.init(3)


def test_collective_programs():
    endpoints = ["127.0.0.1:7000", "127.0.0.1:7001"]
    fleet = collective.Collective()
    fleet.init(role_maker.UserDefinedCollectiveRoleMaker(1, endpoints))
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(a_loss())
    assert isinstance(fleet.main_program, CompiledProgram)
    assert fleet.main_program.build_strategy.trainers_endpoints == endpoints
    assert "gen_nccl_id" in types(fleet.startup_program)
    strategy = collective.DistributedStrategy()
    strategy.mode, strategy.collective_mode = "collective", "grad_allreduce"
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        optimizer = fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy)
        optimizer.minimize(a_loss())
    assert types(fleet.main_program).count("c_allreduce_sum") == 2


def test_a_fleet_of_one_is_a_plain_program():
    fleet = collective.Collective()
    fleet.init(role_maker.UserDefinedCollectiveRoleMaker(0, ["127.0.0.1:7000"]))
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(a_loss())
    assert fleet.main_program is fluid.default_main_program()
    assert not [t for t in types(fleet.main_program) if t.startswith("c_")]


@pytest.mark.cluster
@pytest.mark.parametrize("kind", ["sync", "async", "half_async", "geo"])
def test_a_fleet_trains(kind, tmp_path):
    command = [sys.executable, "-m", "fluidx", "run", "-m", "fluidx", "launch"]
    command += ["--workers", "2", "--servers", "2", "--timeout", "60"]
    done = subprocess.run(
        [*command, str(SCRIPT), kind],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=90,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    losses = re.findall(r"loss ([\d.]+)", done.stdout)
    assert len(losses) == 2
    # it begins near 9
    assert max(map(float, losses)) < 1.0
