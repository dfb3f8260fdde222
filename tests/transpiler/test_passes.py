"""Passes leave their input alone, and do what their first sentence says."""

from __future__ import annotations

import pytest
import transpiler_goldens as goldens

from fluidx.ir import Block, Operator, Program
from fluidx.transpiler import (
    DistributeTranspiler,
    DistributeTranspilerConfig,
    Facts,
    Setting,
    make_plan,
)
from fluidx.transpiler.clipping import optimizer_clip
from fluidx.transpiler.collective import (
    GradAllReduce,
    LocalSGD,
    SingleProcessMultiThread,
    grad_allreduce_main,
    local_sgd_main,
    local_sgd_startup,
    ring_startup,
)
from fluidx.transpiler.config import TranspileError
from fluidx.transpiler.pserver import pserver_main
from fluidx.transpiler.startup import pserver_startup, trainer_startup
from fluidx.transpiler.trainer import trainer_main

ENDS = ("127.0.0.1:6174", "127.0.0.1:6175")


def planned(name: str, **options: object):  # type: ignore[no-untyped-def]
    main, startup = goldens.local(name)
    setting = Setting(ENDS, 2, **options)  # type: ignore[arg-type]
    facts = Facts.of(main, startup, setting.suffixed)
    return facts, make_plan(facts, setting)


def types(program: Program, block: int = 0) -> list[str]:
    return [op.type for op in program.blocks[block].ops]


def op_of(program: Program, type: str) -> Operator:
    return next(op for op in program.all_ops() if op.type == type)


def test_passes_leave_their_input_alone() -> None:
    facts, plan = planned("clip_by_optimizer", min_block_size=64)
    before = [goldens.dump.dump(p) for p in (facts.main, facts.startup)]
    trainer_main(facts.main, plan=plan, trainer_id=1)
    trainer_startup(facts.startup, plan=plan, trainer_id=1, facts=facts)
    main = pserver_main(facts.main, plan=plan, endpoint=ENDS[0], facts=facts)
    pserver_startup(facts.startup, plan=plan, endpoint=ENDS[0], facts=facts, main=main)
    ring_startup(facts.startup, rank=0, endpoints=ENDS, nrings=2)
    local_sgd_startup(facts.startup)
    grad_allreduce_main(facts.main, nranks=2, nrings=2)
    local_sgd_main(facts.main, nranks=2, nrings=2)
    assert [goldens.dump.dump(p) for p in (facts.main, facts.startup)] == before


def test_a_server_pass_reads_the_program_by_itself() -> None:
    facts, plan = planned("fc_regression")
    alone = pserver_main(facts.main, plan=plan, endpoint=ENDS[1])
    told = pserver_main(facts.main, plan=plan, endpoint=ENDS[1], facts=facts)
    assert goldens.dump.dump(alone) == goldens.dump.dump(told)


# ------------------------------------------------------------------ trainer


def test_what_else_reads_the_learning_rate_keeps_it() -> None:
    main, startup = goldens.local("fc_regression")
    block = main.global_block()
    op = Operator(block, "print", {"In": "learning_rate_0"}, {}, {"op_role": 0})
    block.ops.insert(0, op)
    transpiler = DistributeTranspiler()
    transpiler.transpile(0, main, ",".join(ENDS), 2, startup_program=startup)
    assert "learning_rate_0" in block.vars
    made = [n for op in startup.global_block().ops for n in op.output_arg_names]
    assert made.count("learning_rate_0") == 1


def lookups(main: Program) -> list[Operator]:
    return [op for op in main.all_ops() if op.type == "distributed_lookup_table"]


def test_a_lookup_whose_ids_come_later_stays_apart() -> None:
    main, startup = goldens.local("ctr_dnn")
    block = main.global_block()
    found = [op for op in block.ops if op.type == "lookup_table"]
    # slot_2 is computed from what slot_0 found
    maker = Operator(
        block,
        "cast",
        {"X": found[0].output("Out")[0]},
        {"Out": "slot_2"},
        {"op_role": 0},
    )
    block.ops.insert(block.ops.index(found[0]) + 1, maker)
    transpiler = DistributeTranspiler()
    transpiler.transpile(0, main, ",".join(ENDS), 2, startup_program=startup)
    assert [op.input("Ids") for op in lookups(main)] == [
        ["slot_0", "slot_1"],
        ["slot_2"],
    ]
    at = {op.type: i for i, op in enumerate(block.ops)}
    assert at["cast"] < block.ops.index(lookups(main)[1])


def test_lookups_with_different_padding_stay_apart() -> None:
    main, startup = goldens.local("ctr_dnn")
    found = [op for op in main.global_block().ops if op.type == "lookup_table"]
    found[1].attrs["padding_idx"] = 3
    transpiler = DistributeTranspiler()
    transpiler.transpile(0, main, ",".join(ENDS), 2, startup_program=startup)
    assert [(op.input("Ids"), op.attr("padding_idx")) for op in lookups(main)] == [
        (["slot_0", "slot_2"], -1),
        (["slot_1"], 3),
    ]


def test_a_lookup_in_a_sub_block_is_remote_too() -> None:
    main, startup = goldens.local("emb_sparse")
    block = main.global_block()
    at = next(i for i, op in enumerate(block.ops) if op.type == "lookup_table")
    inner = main._create_block(0)
    main.current_block_idx = 0
    moved = block.ops[at].copy_to(inner)
    inner.ops.append(moved)
    outs = {"Out": block.ops[at].output("Out")}
    attrs = {"sub_block": inner, "op_role": 0}
    block.ops[at] = Operator(block, "while", {"X": ["table", "ids"]}, outs, attrs)
    transpiler = DistributeTranspiler()
    transpiler.transpile(0, main, ",".join(ENDS), 2, startup_program=startup)
    assert types(main, 1) == ["distributed_lookup_table"]
    assert isinstance(block.ops[at].attr("sub_block"), Block)
    assert block.ops[at].attr("sub_block") is main.blocks[1]


def test_a_table_that_is_not_trained_stays_local() -> None:
    main, startup = goldens.local("emb_sparse")
    block = main.global_block()
    block.ops = [
        op
        for op in block.ops
        if "table" not in op.input("Param") and op.type != "lookup_table_grad"
    ]
    transpiler = DistributeTranspiler()
    transpiler.transpile(0, main, ",".join(ENDS), 2, startup_program=startup)
    assert block.ops[0].type == "lookup_table"
    assert "fake_init" not in types(startup)


# ------------------------------------------------------------------ startup


def test_given_values_are_cut_like_the_parameter() -> None:
    main, startup = goldens.local("fc_regression")
    block = startup.global_block()
    values = [float(i) for i in range(1000)]
    for at, op in enumerate(block.ops):
        if op.output_arg_names == ["fc_1.w_0"]:
            attrs = {"shape": [1000, 1], "dtype": 5, "fp32_values": values}
            block.ops[at] = Operator(
                block, "assign_value", {}, {"Out": "fc_1.w_0"}, {"op_role": 0, **attrs}
            )
    config = DistributeTranspilerConfig()
    config.min_block_size = 100
    transpiler = DistributeTranspiler(config)
    transpiler.transpile(0, main, ",".join(ENDS), 2, startup_program=startup)
    found = {}
    for end in ENDS:
        op = op_of(transpiler.get_startup_program(end), "assign_value")
        found[op.output("Out")[0]] = op.attr("shape"), op.attr("fp32_values")
    assert found == {
        "fc_1.w_0.block0": ([500, 1], values[:500]),
        "fc_1.w_0.block1": ([500, 1], values[500:]),
    }


def test_an_initialiser_of_several_ops_comes_whole() -> None:
    main, startup = goldens.local("fc_regression")
    block = startup.global_block()
    at = next(
        i for i, op in enumerate(block.ops) if op.output_arg_names == ["fc_0.b_0"]
    )
    block.ops[at].outputs["Out"] = ["raw"]
    block.create_var(name="raw", shape=[1000], dtype="float32")
    last = Operator(block, "cast", {"X": "raw"}, {"Out": "fc_0.b_0"}, {"op_role": 0})
    block.ops.insert(at + 1, last)
    transpiler = DistributeTranspiler()
    transpiler.transpile(0, main, ",".join(ENDS), 2, startup_program=startup)
    made = transpiler.get_startup_program(ENDS[0])
    names = [op.output_arg_names[0] for op in made.global_block().ops]
    assert names.index("raw") + 1 == names.index("fc_0.b_0")


# ------------------------------------------------------------------ clipping


def test_only_clip_ops_of_the_optimizer_are_taken_for_clipping() -> None:
    for name, count, across in (
        ("reg_per_param", 0, 0),
        ("opt_adamax", 0, 0),
        ("lr_noam_adam", 0, 0),
        ("clip_global_norm", 0, 0),  # set_gradient_clip: told by their scope
        ("clip_by_optimizer_sliced", 4, 0),
        ("clip_by_optimizer", 17, 5),
    ):
        main, _ = goldens.local(name)
        clip = optimizer_clip(main.global_block().ops)
        assert (name, len(clip.ops), len(clip.across)) == (name, count, across)


def test_without_merging_the_optimizers_clip_stays_on_the_trainer() -> None:
    for options in ({"sync": False}, {}):
        main, startup = goldens.local("clip_by_optimizer")
        trainers = 2 if options else 1
        setting = Setting(ENDS, trainers, **options)
        facts = Facts.of(main, startup, setting.suffixed)
        plan = make_plan(facts, setting)
        made = trainer_main(main, plan=plan, trainer_id=0)
        clip = [op for op in made.global_block().ops if op.type == "sqrt"]
        assert [op.attr("op_role") for op in clip] == [1]
        assert plan.clip is None
        sent = [n for o in made.all_ops() if o.type == "send" for n in o.input("X")]
        assert all(n.startswith("elementwise_mul_") for n in sent)


def test_a_norm_over_servers_takes_two_exchanges() -> None:
    facts, plan = planned("clip_by_optimizer", min_block_size=64)
    assert plan.clip is not None
    assert plan.clip.factors == ("elementwise_div_0.tmp_0",)
    made = trainer_main(facts.main, plan=plan, trainer_id=1)
    rpc = [t for t in types(made) if t.endswith("barrier")]
    assert rpc == ["send_barrier", "fetch_barrier"] * 2
    total = op_of(made, "sum")
    assert total.input("X") == [
        "reduce_sum_0.tmp_0",
        "reduce_sum_1.tmp_0.block0",
        "reduce_sum_1.tmp_0.block1",
        "reduce_sum_2.tmp_0",
        "reduce_sum_3.tmp_0",
    ]


# ------------------------------------------------------------------ rings


@pytest.mark.parametrize("kind", [GradAllReduce, LocalSGD, SingleProcessMultiThread])
def test_workers_that_make_no_sense(kind: type) -> None:
    main, startup = goldens.local("fc_regression")
    for rank, ends, current, message in (
        (2, ENDS, ENDS[0], "rank 2 is not below"),
        (0, ENDS, ENDS[1], "worker 0 is 127.0.0.1:6174"),
        (0, ENDS[:1] * 2, ENDS[0], "occurs twice"),
    ):
        with pytest.raises(TranspileError, match=message):
            kind().transpile(startup, main, rank, list(ends), current, False)
    if kind is not SingleProcessMultiThread:
        with pytest.raises(TranspileError, match="at least two workers"):
            kind().transpile(startup, main, 0, ENDS[0], ENDS[0], False)
        with pytest.raises(TranspileError, match="nrings must be at least 1"):
            kind(0)


def test_hierarchical_groups_must_be_equal() -> None:
    for ranks, workers, message in (
        (1, 4, "at least 2"),
        (2, 3, "3 workers do not make"),
        (2, 2, "2 workers do not make"),
    ):
        config = DistributeTranspilerConfig()
        config.mode = "nccl2"
        config.use_hierarchical_allreduce = True
        config.hierarchical_allreduce_inter_nranks = ranks
        main, startup = goldens.local("fc_regression")
        ends = ",".join(f"h:{i}" for i in range(workers))
        with pytest.raises(TranspileError, match=message):
            DistributeTranspiler(config).transpile(
                0, main, trainers=ends, startup_program=startup
            )


def test_the_plan_is_printed_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    config = DistributeTranspilerConfig()
    config.print_log = True
    main, startup = goldens.local("fc_regression")
    DistributeTranspiler(config).transpile(
        0, main, ",".join(ENDS), 2, startup_program=startup
    )
    assert capsys.readouterr().out.splitlines()[1] == (
        "fc_0.w_0.block0 FP32[500, 1000] [0:500] on 127.0.0.1:6175"
    )
