"""`DistributeTranspiler`: its arguments, its getters, and what it does to programs."""

from __future__ import annotations

from typing import Any

import pytest
import transpiler_goldens as goldens

from fluidx.ir import Program, Where, program_guard
from fluidx.transpiler import (
    DistributeTranspiler,
    DistributeTranspilerConfig,
    GeoSgdTranspiler,
    HashName,
    TranspileError,
    memory_optimize,
    release_memory,
)

SERVERS = "127.0.0.1:6174,127.0.0.1:6175"
FIRST, SECOND = SERVERS.split(",")


def made(
    name: str = "fc_regression", trainer_id: int = 0, **options: Any
) -> tuple[DistributeTranspiler, Program, Program]:
    """A transpiler that has transpiled a golden network, and both programs."""
    main, startup = goldens.local(name)
    config = DistributeTranspilerConfig()
    arguments = {"pservers": SERVERS, "trainers": 2}
    for key, value in options.items():
        if hasattr(config, key) and key != "sync_mode":
            setattr(config, key, value)
        else:
            arguments[key] = value
    transpiler = DistributeTranspiler(config)
    transpiler.transpile(trainer_id, main, startup_program=startup, **arguments)
    return transpiler, main, startup


def text(*programs: Program) -> list[Any]:
    return [goldens.dump.dump(p) for p in programs]


# ------------------------------------------------------------------ getters


def test_getters_may_be_called_in_any_order_any_number_of_times() -> None:
    first, main, startup = made()
    trainer = text(first.get_trainer_program(), startup)
    servers = {e: text(*first.get_pserver_programs(e)) for e in (SECOND, FIRST)}
    assert servers[FIRST] != servers[SECOND]

    other, main, startup = made()
    for _ in range(2):
        for endpoint in (FIRST, SECOND):
            program = other.get_pserver_program(endpoint)
            assert text(program) == servers[endpoint][:1]
            assert text(other.get_startup_program(endpoint)) == servers[endpoint][1:]
            own = other.get_startup_program(endpoint, program)
            assert text(own) == servers[endpoint][1:]
            assert text(*other.get_pserver_programs(endpoint)) == servers[endpoint]
        assert text(other.get_trainer_program(), startup) == trainer
        assert other.get_trainer_program(wait_port=False) is main


def test_servers_do_not_depend_on_who_asks() -> None:
    zero, one = made()[0], made(trainer_id=1)[0]
    for endpoint in (FIRST, SECOND):
        asked = [text(*t.get_pserver_programs(endpoint)) for t in (zero, one)]
        assert asked[0] == asked[1]


def test_the_users_programs_are_rewritten_in_place() -> None:
    main, startup = goldens.local("fc_regression")
    block, loss = main.global_block(), main.global_block().var("mean_0.tmp_0")
    with program_guard(main, startup):
        transpiler = DistributeTranspiler()
        transpiler.transpile(0, pservers=SERVERS, trainers=2)
        assert transpiler.get_trainer_program() is main
    assert main.global_block() is block
    assert block.var("mean_0.tmp_0") is loss
    assert [op.type for op in startup.global_block().ops][-2:] == [
        "fetch_barrier",
        "concat",
    ]


def test_a_server_gets_a_program_of_its_own() -> None:
    transpiler = made()[0]
    program = transpiler.get_pserver_program(FIRST)
    program.global_block().ops.clear()
    assert transpiler.get_pserver_program(FIRST).global_block().ops


def test_another_startup_program_may_be_given() -> None:
    transpiler = made()[0]
    _, other = goldens.local("fc_regression")
    for op in other.global_block().ops:
        if op.output_arg_names == ["fc_0.b_0"]:
            op.attrs["value"] = 3.0
    program = transpiler.get_startup_program(FIRST, startup_program=other)
    filled = {o.output_arg_names[0]: o.attrs for o in program.global_block().ops}
    assert filled["fc_0.b_0"]["value"] == 3.0


def test_a_server_without_a_slice_has_one_empty_block() -> None:
    transpiler = made("emb_dense", slice_var_up=False, pservers=SERVERS + ",h:1,h:2")[0]
    main, startup = transpiler.get_pserver_programs("h:2")
    assert [len(b.ops) for b in main.blocks] == [1, 0]
    assert not startup.global_block().ops


def test_ops_go_back_to_the_users_line() -> None:
    main, startup = goldens.local("fc_regression")
    for at, op in enumerate(main.global_block().ops):
        op.where = Where("train.py", at, "net")
    transpiler = DistributeTranspiler()
    transpiler.transpile(0, main, SERVERS, 2, startup_program=startup)
    assert all(op.where is not None for op in main.global_block().ops)
    for block in transpiler.get_pserver_program(FIRST).blocks:
        assert all(op.where is not None for op in block.ops)


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pservers": ""}, "names no endpoint"),
        ({"pservers": "a:1,a:1"}, "occurs twice"),
        ({"pservers": ["a:1"]}, "must be a string"),
        ({"trainers": 0}, "positive number"),
        ({"trainers": "a:1,b:1"}, "positive number"),
        ({"trainer_id": 2}, "trainer_id 2 is not below trainers 2"),
        ({"trainer_id": -1}, "trainer_id -1 is not below"),
        ({"mode": "ring"}, "config.mode must be one of"),
        ({"min_block_size": 0}, "min_block_size must be at least 1"),
        ({"split_method": "RoundRobin"}, "must be a PSDispatcher class"),
        ({"enable_dc_asgd": True}, "enable_dc_asgd needs sync_mode=False"),
        ({"mode": "nccl2", "trainers": 2}, "trainers as endpoints"),
        ({"mode": "collective", "trainers": SERVERS}, "collective_mode must be one of"),
    ],
)
def test_arguments_that_mean_nothing(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TranspileError, match=message) as caught:
        made(**options)
    assert "\n" not in str(caught.value)


def test_an_endpoint_that_is_no_server() -> None:
    transpiler = made()[0]
    for getter in (
        transpiler.get_pserver_program,
        transpiler.get_pserver_programs,
        transpiler.get_startup_program,
    ):
        with pytest.raises(TranspileError, match="'h:9' is none of the pservers"):
            getter("h:9")


def test_transpile_called_twice() -> None:
    transpiler, main, startup = made()
    with pytest.raises(TranspileError, match="called twice"):
        transpiler.transpile(0, *goldens.local("fc_regression")[:1], SERVERS, 2)
    with pytest.raises(TranspileError, match="was transpiled before"):
        DistributeTranspiler().transpile(0, main, SERVERS, 2, startup_program=startup)


def test_getters_before_transpile_and_without_servers() -> None:
    transpiler = DistributeTranspiler()
    for getter in (transpiler.get_pserver_program, transpiler.get_startup_program):
        with pytest.raises(TranspileError, match=r"call transpile\(\) first"):
            getter(FIRST)
    with pytest.raises(TranspileError, match=r"call transpile\(\) first"):
        transpiler.get_trainer_program()
    ring, main, _ = made(mode="nccl2", trainers=SERVERS, pservers="")
    with pytest.raises(TranspileError, match="nccl2 has no parameter servers"):
        ring.get_pserver_program(FIRST)
    assert ring.get_trainer_program() is main


def test_nothing_to_train() -> None:
    with pytest.raises(TranspileError, match=r"call optimizer\.minimize"):
        DistributeTranspiler().transpile(0, Program(), SERVERS, 2, True, Program())


def test_a_missing_variable_is_named() -> None:
    main, startup = goldens.local("fc_regression")
    del main.global_block().vars["fc_0.b_0@GRAD"]
    with pytest.raises(TranspileError, match=r"no variable fc_0\.b_0@GRAD"):
        DistributeTranspiler().transpile(0, main, SERVERS, 2, startup_program=startup)


def test_splitting_at_run_time_and_sync_exclude_each_other() -> None:
    config = DistributeTranspilerConfig()
    with pytest.raises(ValueError, match="sync_mode = False first"):
        config.runtime_split_send_recv = True
    config.sync_mode = False
    config.runtime_split_send_recv = True
    with pytest.raises(ValueError, match="runtime_split_send_recv = False first"):
        config.sync_mode = True
    assert (config.sync_mode, config.runtime_split_send_recv) == (False, True)


def test_config_has_the_references_defaults() -> None:
    config = DistributeTranspilerConfig()
    wanted = {
        "collective_mode": None,
        "completely_not_async": False,
        "enable_dc_asgd": False,
        "geo_sgd_mode": False,
        "geo_sgd_need_push_nums": 100,
        "half_async": False,
        "hierarchical_allreduce_inter_nranks": 0,
        "min_block_size": 8192,
        "mode": "pserver",
        "nccl_comm_num": 1,
        "print_log": False,
        "runtime_split_send_recv": False,
        "slice_var_up": True,
        "split_method": None,
        "sync_mode": True,
        "use_hierarchical_allreduce": False,
        "wait_port": True,
    }
    assert {k: getattr(config, k) for k in wanted} == wanted


# ------------------------------------------------------------------ better than there


def test_one_trainer_in_sync_mode_agrees_with_its_servers() -> None:
    transpiler, main, _ = made(trainers=1)
    sent = {
        n for op in main.global_block().ops if op.type == "send" for n in op.input("X")
    }
    waited = set()
    for endpoint in (FIRST, SECOND):
        program = transpiler.get_pserver_program(endpoint)
        waited.update(program.global_block().ops[0].input("X"))
        for block in program.blocks[1:]:
            assert [op.type for op in block.ops] == ["sgd"]
    assert sent == waited
    assert not any(".trainer_" in n for n in sent)


def test_adadelta_and_lamb_update_on_servers() -> None:
    for name, type in (("opt_adadelta", "adadelta"), ("opt_lamb", "lamb")):
        transpiler = made(name)[0]
        updates = [
            op.input("Param")[0]
            for e in (FIRST, SECOND)
            for b in transpiler.get_pserver_program(e).blocks
            for op in b.ops
            if op.type == type
        ]
        stems = sorted({n.split(".block")[0] for n in updates})
        assert stems == ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]


def test_slices_of_one_parameter_on_one_server_keep_apart() -> None:
    transpiler, _, _ = made("opt_ftrl", split_method=HashName, min_block_size=64)
    own: dict[str, list[str]] = {}
    for endpoint in (FIRST, SECOND):
        main, startup = transpiler.get_pserver_programs(endpoint)
        names = [n for op in startup.global_block().ops for n in op.output_arg_names]
        assert len(set(names)) == len(names)
        for block in main.blocks[1:]:
            for op in block.ops:
                if op.type == "ftrl":
                    own.setdefault(endpoint, []).extend(op.input("LinearAccumulator"))
    for names in own.values():
        assert len(set(names)) == len(names)
    everything = [n for names in own.values() for n in names]
    assert "fc_0.w_0_linear_0.block0" in everything
    assert "fc_0.w_0_linear_0.block1" in everything


def test_a_warm_up_schedule_reaches_the_servers() -> None:
    transpiler = made("lr_warmup_adamax")[0]
    main = transpiler.get_pserver_program(FIRST)
    listen = main.global_block().ops[0]
    assert listen.attr("lr_decay_block_id") == 1
    assert [b.parent_idx for b in main.blocks[:5]] == [-1, 0, 1, 1, 3]
    # the temporaries of a branch stay in the branch
    branch = main.blocks[2]
    temporaries = [n for op in branch.ops[:-1] for n in op.output_arg_names]
    assert all(n in branch.vars and n not in main.blocks[0].vars for n in temporaries)
    assert branch.ops[-1].output("Out") == ["learning_rate_warmup"]


def test_sparse_tables_go_uncompensated_in_dc_asgd() -> None:
    transpiler = made("emb_sparse", enable_dc_asgd=True, sync_mode=False)[0]
    types: dict[str, list[str]] = {}
    for endpoint in (FIRST, SECOND):
        main, startup = transpiler.get_pserver_programs(endpoint)
        for block in main.blocks[1:]:
            param = next(
                op.input("Param")[0] for op in block.ops if "Param" in op.inputs
            )
            types[param] = [op.type for op in block.ops]
        made_ = [n for o in startup.global_block().ops for n in o.output_arg_names]
        assert not any(n.startswith("table") and n.endswith("_bak") for n in made_)
    assert types["table.block0"] == ["adagrad"]
    assert types["fc_0.w_0"][0] == "ref_by_trainer_id"


def test_a_distributed_lookup_table_is_looked_up_on_the_servers() -> None:
    transpiler, main, startup = made("emb_dist_one")
    block = main.global_block()
    lookup = block.ops[0]
    assert lookup.type == "distributed_lookup_table"
    assert lookup.attr("table_names") == ["table.block0", "table.block1"]
    received = [n for op in block.ops if op.type == "recv" for n in op.output("Out")]
    assert not any(n.startswith("table") for n in received)
    assert startup.global_block().ops[-1].type == "fake_init"


def test_sparse_nce_comes_whole() -> None:
    transpiler, main, _ = made("nce_sparse")
    listed = []
    for endpoint in (FIRST, SECOND):
        program = transpiler.get_pserver_program(endpoint)
        listed += program.global_block().ops[0].attr("sparse_grad_to_param")
    assert any(e.startswith("nce_0.w_0@GRAD") for e in listed)
    received = [
        n for op in main.all_ops() if op.type == "recv" for n in op.output("Out")
    ]
    assert "nce_0.w_0" in received or "nce_0.w_0.block0" in received


# ------------------------------------------------------------------ the rest


def test_geo_has_its_own_defaults() -> None:
    transpiler = GeoSgdTranspiler()
    assert transpiler.config.geo_sgd_mode
    assert not transpiler.config.sync_mode
    main, startup = goldens.local("fc_regression")
    transpiler.transpile(0, main, SERVERS, 2, startup_program=startup)
    listen = transpiler.get_pserver_program(FIRST).global_block().ops[0]
    assert listen.attr("distributed_mode") == 3


def test_memory_functions_change_nothing() -> None:
    main, _ = goldens.local("fc_regression")
    before = text(main)
    assert memory_optimize(main, skip_opt_set={"x"}, print_log=True, level=1) is None
    assert release_memory(main, {"x"}) is None
    assert text(main) == before
    for function in (memory_optimize, release_memory):
        with pytest.raises(TypeError, match="expected a Program, got str"):
            function("main")  # type: ignore[arg-type]
