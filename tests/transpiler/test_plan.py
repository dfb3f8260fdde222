"""The plan: blocks tile every tensor, all roles compute the same, at linear cost."""

from __future__ import annotations

import random
import sys
from math import prod

import numpy as np
import pytest
import transpiler_goldens as goldens

from fluidx.ir import Operator, Parameter, Program, Variable
from fluidx.transpiler import (
    DistributeTranspiler,
    DistributeTranspilerConfig,
    Facts,
    HashName,
    RoundRobin,
    Setting,
    TranspileError,
    make_plan,
)
from fluidx.transpiler.distribute_transpiler import same_or_split_var, slice_variable
from fluidx.transpiler.slicing import row_counts

ENDPOINTS = ("127.0.0.1:6174", "127.0.0.1:6175", "127.0.0.1:6176")


def plan_of(name: str, **options: object) -> object:
    main, startup = goldens.local(name)
    setting = Setting(ENDPOINTS, 2, **options)  # type: ignore[arg-type]
    return make_plan(Facts.of(main, startup, setting.suffixed), setting)


def named(name: str, *shape: int) -> Variable:
    return Variable(Program().global_block(), name=name, shape=shape)


def test_blocks_are_the_references() -> None:
    variables = [named("a", 1000, 1000), named("b", 30000), named("c", 7)]
    blocks = [str(b) for b in slice_variable(variables, 3, 8192)]
    assert blocks == [
        "a:0:334000",
        "a:1:334000",
        "a:2:332000",
        "b:0:10000",
        "b:1:10000",
        "b:2:10000",
        "c:0:7",
    ]


def test_same_or_split_var() -> None:
    assert same_or_split_var("w", "w")
    assert same_or_split_var("w.block1", "w")
    assert not same_or_split_var("wx", "w")
    assert not same_or_split_var("w", "w.block1")
    assert not same_or_split_var("w@GRAD", "w")


def test_rows_tile_every_tensor() -> None:
    draw = random.Random(5)
    for _ in range(2000):
        shape = [draw.randint(1, 300) for _ in range(draw.randint(1, 4))]
        servers, least = draw.randint(1, 9), draw.randint(1, 9000)
        rows = row_counts(shape, servers, least)
        assert sum(rows) == shape[0]
        assert len(rows) <= servers
        assert len(set(rows[:-1])) <= 1
        assert 0 < rows[-1] <= rows[0]
        if len(rows) > 1:
            assert rows[0] * prod(shape[1:]) >= min(least, prod(shape))


@pytest.mark.parametrize("shape", [[0], [0, 4], [3, 0]])
def test_a_tensor_without_elements_stays_whole(shape: list[int]) -> None:
    assert row_counts(shape, 4, 1) == [shape[0]]


@pytest.mark.parametrize("options", [{}, {"min_block_size": 64}, {"slice_up": False}])
@pytest.mark.parametrize("name", ["slice_shapes", "ctr_dnn", "lenet_bn"])
def test_slices_tile_every_parameter(name: str, options: dict[str, object]) -> None:
    plan = plan_of(name, **options)
    for param in plan.parameters:
        row = 0
        for number, piece in enumerate(param.slices):
            assert (piece.index, piece.row) == (number, row)
            assert piece.shape[1:] == param.shape[1:]
            row += piece.rows
        assert row == param.shape[0]
    held = [s for e in ENDPOINTS for of in plan.on(e).values() for s in of]
    assert len(held) == sum(len(p.slices) for p in plan.parameters)


@pytest.mark.parametrize(
    "config", ["pserver-sync-3", "pserver-sync-2-noslice", "geo-2"]
)
def test_every_role_has_the_same_plan(config: str) -> None:
    plans = []
    state = np.random.get_state()[1].tolist()
    for role in goldens.configs.roles(config):
        main, startup = goldens.local("slice_shapes")
        transpiler = goldens.transpiler(main, startup, config, role)
        plans.append(transpiler._plan)
    assert all(plan == plans[0] for plan in plans)
    assert np.random.get_state()[1].tolist() == state


def test_the_order_without_slices_follows_the_seed() -> None:
    orders = []
    for seed in (0, 0, 3):
        main, startup = goldens.local("slice_shapes")
        main.random_seed = seed
        facts = Facts.of(main, startup)
        orders.append(make_plan(facts, Setting(ENDPOINTS, 2, slice_up=False)).sending)
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])


def test_round_robin_deals_on() -> None:
    robin = RoundRobin(["a", "b"])
    assert robin.dispatch([1, 2, 3]) == ["a", "b", "a"]
    assert robin.dispatch([1]) == ["b"]
    robin.reset()
    assert robin.dispatch([1]) == ["a"]
    assert robin.eps == ["a", "b"]


def test_hash_name_is_the_same_in_every_process() -> None:
    # CRC-32 of the names modulo 3; that of "x" is 0x8CDC1683
    names = [named("fc_0.w_0@GRAD", 1), named("fc_0.b_0@GRAD", 1), named("x", 1)]
    assert HashName(ENDPOINTS).dispatch(names) == [
        ENDPOINTS[i] for i in (3917557942 % 3, 3722055673 % 3, 0x8CDC1683 % 3)
    ]


def test_a_dispatcher_of_ones_own() -> None:
    class Last(RoundRobin):
        def dispatch(self, varlist):  # type: ignore[no-untyped-def]
            return [self.eps[-1]] * len(varlist)

    plan = plan_of("fc_regression", dispatcher=Last)
    assert not plan.on(ENDPOINTS[0])
    assert len(plan.on(ENDPOINTS[2])["fc_0.w_0"]) == 3

    class Wrong(RoundRobin):
        def dispatch(self, varlist):  # type: ignore[no-untyped-def]
            return ["10.0.0.9:1"] * len(varlist)

    with pytest.raises(TranspileError, match=r"10\.0\.0\.9:1.*none of the pservers"):
        plan_of("fc_regression", dispatcher=Wrong)

    class Short(RoundRobin):
        def dispatch(self, varlist):  # type: ignore[no-untyped-def]
            return []

    with pytest.raises(TranspileError, match="0 endpoints for 1 variables"):
        plan_of("fc_regression", dispatcher=Short)


def test_updates_that_need_the_whole_parameter_are_not_cut() -> None:
    assert not any(p.sliced for p in plan_of("opt_lamb").parameters)
    assert any(p.sliced for p in plan_of("opt_ftrl").parameters)
    # geo-SGD trainers update by themselves
    assert any(p.sliced for p in plan_of("opt_lamb", geo=True).parameters)


def chain(layers: int) -> tuple[Program, Program]:
    """A program whose only purpose is its size: per layer a gradient and an update."""
    main, startup = Program(), Program()
    block = main.global_block()
    for i in range(layers):
        name, shape = f"w_{i}", [64, 64]
        for home in (block, startup.global_block()):
            home.vars[name] = Parameter(home, shape, "float32", name=name)
        block.vars[f"{name}@GRAD"] = Variable(block, name=f"{name}@GRAD", shape=shape)
        attrs = {"shape": shape, "dtype": 5, "value": 0.0}
        op = Operator(startup.global_block(), "fill_constant", {}, {"Out": name}, attrs)
        startup.global_block().ops.append(op)
    pairs = [[f"w_{i}", f"w_{i}@GRAD"] for i in range(layers)]
    for type, role in (("mul_grad", 1), ("sgd", 2)):
        for name, grad in pairs:
            attrs = {"op_role": role, "op_role_var": [name, grad]}
            if role == 1:
                op = Operator(block, type, {}, {"Y@GRAD": grad}, attrs)
            else:
                ins = {"Param": name, "Grad": grad}
                op = Operator(block, type, ins, {"ParamOut": name}, attrs)
            block.ops.append(op)
    return main, startup


def calls(layers: int, servers: int, verify: bool) -> int:
    """Python calls made while a program is transpiled: a measure without a clock."""
    main, startup = chain(layers)
    ends = ",".join(f"127.0.0.1:{i}" for i in range(servers))
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    config = DistributeTranspilerConfig()
    config.min_block_size = 1024
    config.verify = verify
    transpiler = DistributeTranspiler(config)
    sys.setprofile(counted)
    try:
        transpiler.transpile(0, main, ends, 2, startup_program=startup)
        transpiler.get_trainer_program()
        transpiler.get_pserver_programs("127.0.0.1:0")
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("verify", [False, True])
def test_cost_is_linear(verify: bool) -> None:
    calls(10, 4, verify)  # loads what is loaded once
    small, large = calls(40, 4, verify), calls(160, 4, verify)
    assert large < 4.2 * small
    # four times the servers hold the same slices
    assert calls(160, 16, verify) < 1.1 * large
