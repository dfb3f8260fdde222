"""Numbers over all workers, program files, and what is not there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fluidx as fluid
from fluidx.incubate.fleet.base import role_maker
from fluidx.incubate.fleet.parameter_server import distribute_transpiler as servers
from fluidx.incubate.fleet.parameter_server import pslib
from fluidx.incubate.fleet.utils import auc, utils
from fluidx.incubate.fleet.utils.fleet_util import FleetUtil

GOLDEN = Path(__file__).parents[1] / "golden" / "oracle" / "fleet_metrics.json"
CASES = json.loads(GOLDEN.read_text())
SUMS = ("sqrerr", "abserr", "prob", "q", "npos", "tot")


class Twice(role_maker.UserDefinedRoleMaker):
    """One of two workers with the same numbers."""

    def _all_reduce(self, input, output, mode="sum"):
        output[...] = input * 2


def util(kind=role_maker.UserDefinedRoleMaker, number=0, workers=1):
    made = FleetUtil("transpiler")
    made._fleet = servers.DistributedTranspiler()
    role = kind(number, role_maker.Role.WORKER, workers, ["127.0.0.1:6000"])
    role.generate_role()
    made._fleet._role_maker = role
    return made


def scope_of(case):
    scope = fluid.Scope()

    def put(name, value, dtype):
        scope.var(name).get_tensor().set(np.array(value, dtype), fluid.CPUPlace())

    put("pos", [case["pos"]], "int64")
    put("neg", [case["neg"]], "int64")
    for name, value in case["values"].items():
        put(name, [value], "float32")
    return scope


@pytest.mark.parametrize("case", CASES, ids=lambda c: str(len(c["pos"])))
def test_metrics_are_the_references(case):
    found = util().get_global_metrics(scope_of(case), "pos", "neg", *SUMS)
    np.testing.assert_allclose(found, case["metrics"], rtol=1e-6)
    assert util().get_global_auc(scope_of(case), "pos", "neg") == pytest.approx(
        case["auc"], abs=1e-12
    )


def test_numbers_of_two_workers_add_up(capsys):
    # recorded from the reference
    case = {"pos": [1, 2, 3, 4], "neg": [5, 3, 1, 1]}
    sums = zip(SUMS, (2.5, 3.5, 4.5, 4.0, 4.0, 20.0))
    scope = scope_of({**case, "values": dict(sums)})
    made = util(Twice)
    found = made.get_global_metrics(scope, "pos", "neg", *SUMS)
    wanted = [0.79, 0.0, 0.175, 0.3535533905932738, 0.2, 0.225, 0.88888896, 0.2, 40]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    made.print_global_auc(scope, "pos", "neg", "hi")
    made.print_global_metrics(scope, "pos", "neg", *SUMS, "pre")
    assert capsys.readouterr().out == (
        "hi global auc = 0.79\n"
        "pre global AUC=0.790000 BUCKET_ERROR=0.000000 MAE=0.175000 RMSE=0.353553 "
        "Actural_CTR=0.200000 Predicted_CTR=0.225000 COPC=0.888889 "
        "MEAN Q_VALUE=0.200000 Ins number=40\n"
    )


def test_a_metric_without_its_variables(capsys):
    scope = scope_of({"pos": [1], "neg": [1], "values": {}})
    made = util()
    assert made.get_global_auc(scope, "other", "neg") is None
    assert made.get_global_metrics(scope, "other", "neg") == [None] * 9
    assert capsys.readouterr().out == "not found auc bucket\n" * 2
    with pytest.raises(KeyError, match="no \\['sqrerr'"):
        made.get_global_metrics(scope, "pos", "neg", *SUMS)
    assert auc.area([0, 0], [3, 1]) == 0.5


def test_counts_are_set_to_zero():
    scope = scope_of({"pos": [1, 2], "neg": [1, 1], "values": {}})
    util().set_zero("pos", scope)
    assert np.array(scope.find_var("pos").get_tensor()).tolist() == [[0, 0]]
    with pytest.raises(KeyError, match="no 'other'"):
        util().set_zero("other", scope)


def test_only_the_first_worker_speaks(capsys):
    util(number=0, workers=2).rank0_print("first")
    util(number=1, workers=2).rank0_print("second")
    assert capsys.readouterr().out == "first\n"


def test_passes_of_a_day():
    made = FleetUtil()
    passes = made.get_online_pass_interval("{20190720..20190729}", "{0..1}", 15, 2, 0)
    assert passes == [["0000", "0015"], ["0030", "0045"], ["0100", "0115"]] + [
        ["0130", "0145"]
    ]
    assert made.get_online_pass_interval("20190720", "00 03", 60, 1, True) == [
        ["00"],
        ["03"],
    ]


def test_what_needs_pslib_says_what_to_use():
    with pytest.raises(ValueError, match="mode must be one of"):
        FleetUtil("other")
    with pytest.raises(AttributeError, match=r"'save_delta_model'.*save_persistables"):
        FleetUtil().save_delta_model("out", 1, 2)
    with pytest.raises(NotImplementedError, match=r"pslib fleet.init.*distribute_tran"):
        pslib.fleet.init()
    with pytest.raises(NotImplementedError, match=r"fleet.run_server"):
        pslib.fleet.run_server()
    with pytest.raises(AttributeError, match="'shrink_sparse_table'"):
        pslib.fleet.shrink_sparse_table()
    with pytest.raises(AttributeError, match="'DistributedAdam'"):
        _ = pslib.DistributedAdam


def small_program():
    x = fluid.data("x", [None, 4])
    fluid.layers.fc(x, 1, param_attr="w", bias_attr="b")
    return fluid.default_main_program()


@pytest.mark.parametrize("is_text", [False, True])
def test_programs_in_files(is_text, tmp_path):
    program = small_program()
    utils.save_program(program, str(tmp_path / "p"), is_text)
    assert (b'name: "w"' in (tmp_path / "p").read_bytes()) == is_text
    again = utils.load_program(str(tmp_path / "p"), is_text)
    wanted = fluid.Program.parse_from_string(program.serialize_to_string()).to_text()
    assert again.to_text() == wanted
    made = utils.program_type_trans(str(tmp_path), "p", is_text)
    assert made == ("p.bin" if is_text else "p.pbtxt")
    back = utils.load_program(str(tmp_path / made), not is_text)
    assert back.to_text() == wanted
    (tmp_path / "bad").write_text("blocks {")
    with pytest.raises(fluid.io.ModelFileError, match="bad is no program"):
        utils.load_program(str(tmp_path / "bad"), True)


def test_lists_of_what_is_in_a_program(tmp_path):
    program = small_program()
    utils.parse_program(program, str(tmp_path))
    lines = (tmp_path / "vars_persistable.log").read_text().splitlines()
    assert lines[0] == "persistable vars:"
    assert sorted(line.split("'")[3] for line in lines[1:]) == ["b", "w"]
    assert "{'type': 'mul', 'input_arg_names': \"['x', 'w']\"" in (
        (tmp_path / "ops.log").read_text()
    )
    assert utils.check_pruned_program_vars(program, program)
    assert not utils.check_pruned_program_vars(fluid.Program(), program)
    utils.graphviz(program.global_block(), str(tmp_path))
    assert (tmp_path / "debug.dot").read_text().startswith("digraph")
    with pytest.raises(AttributeError, match="'try_load_model_vars'"):
        _ = utils.try_load_model_vars
