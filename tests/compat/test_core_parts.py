"""`core`: the profiler's switches, pruning, single numbers, DLPack, the machine.

Expected values are what the reference gave for the same calls.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx import core, core_parts, layers
from fluidx.ir.errors import EnforceNotMet


def op_types(desc: core.ProgramDesc) -> list[str]:
    block = desc.block(0)
    return [block.op(i).type() for i in range(block.op_size())]


# ---------------------------------------------------------------- the profiler


def test_enumerations() -> None:
    states = {s.name: int(s) for s in core.ProfilerState}
    assert states == {"kDisabled": 0, "kCPU": 1, "kCUDA": 2, "kAll": 3}
    keys = {k.name: int(k) for k in core.EventSortingKey}
    assert keys == {
        "kDefault": 0,
        "kCalls": 1,
        "kTotal": 2,
        "kMin": 3,
        "kMax": 4,
        "kAve": 5,
    }
    options = {o.name: int(o) for o in core.TracerOption}
    assert options == {"kDefault": 0, "kOpDetail": 1, "kAllOpDetail": 2}
    shown = [str(v) for v in (core.kAll, core.kCPU, core.kDefault, core.kAllOpDetail)]
    assert shown == [
        *("ProfilerState.kAll", "ProfilerState.kCPU"),
        *("EventSortingKey.kDefault", "TracerOption.kAllOpDetail"),
    ]
    assert core.ProfilerState(3) is core.kAll


def test_profiling(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace"
    layers.fill_constant([1], "float32", 1.0)
    assert not core.is_profiler_enabled()
    core.enable_profiler(core.ProfilerState.kCPU)
    assert core.is_profiler_enabled()
    fluid.Executor().run(fluid.default_main_program())
    core.reset_profiler()
    fluid.Executor().run(fluid.default_main_program())
    core.disable_profiler(core.EventSortingKey.kCalls, str(path))
    assert not core.is_profiler_enabled()
    printed = capsys.readouterr().out
    (row,) = [line for line in printed.splitlines() if "fill_constant" in line]
    assert row.split()[1] == "1"  # what was before the reset is gone
    assert path.exists()
    with pytest.raises(EnforceNotMet, match="kDisabled"):
        core.enable_profiler(core.ProfilerState.kDisabled)


def test_the_option_holds_for_profiles_to_come(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    monkeypatch.setattr(core_parts, "_option", core.TracerOption.kDefault)
    core.set_tracer_option(core.TracerOption.kOpDetail)
    core.enable_profiler(core.ProfilerState.kAll)
    assert core_parts.tracing.active is not None
    assert core_parts.tracing.active.option == "OpDetail"
    core.set_tracer_option(core.TracerOption.kAllOpDetail)
    assert core_parts.tracing.active.option == "AllOpDetail"
    core.disable_profiler(core.kDefault, str(tmp_path / "trace"))


# ---------------------------------------------------------------- programs


def two_layers() -> tuple[fluid.Program, fluid.Variable]:
    x = fluid.data("x", [2, 3])
    h = layers.fc(x, 4, name="a")
    y = layers.fc(h, 2, name="b")
    layers.fc(x, 2, name="c")
    layers.mean(y)
    return fluid.default_main_program(), h


FC = ["mul", "elementwise_add"]


def test_pruning() -> None:
    program, h = two_layers()
    assert op_types(program.desc) == [*FC * 3, "mean"]
    made, moved = core.prune(program.desc, set(), [[0, 6]])
    assert (op_types(made), moved) == ([*FC * 2, "mean"], {0: 0})
    held = {v.name() for v in made.block(0).all_vars()}
    assert held == {
        *("x", "a.w_0", "a.b_0", "a.tmp_0", "a.tmp_1"),
        *("b.w_0", "b.b_0", "b.tmp_0", "b.tmp_1", "mean_0.tmp_0"),
    }
    assert op_types(core.prune(program.desc, {h.name}, [[0, 3]])[0]) == FC
    assert op_types(core.prune(program.desc, set(), [[0, 1], [0, 3]])[0]) == FC * 2
    assert op_types(core.prune(program.desc, set(), [])[0]) == []
    assert op_types(program.desc) == [*FC * 3, "mean"]  # untouched
    with pytest.raises(IndexError, match=r"block 0 has 7 ops, not \[0, 99\]"):
        core.prune(program.desc, set(), [[0, 99]])


def test_pruning_drops_blocks() -> None:
    x = fluid.data("x", [1])
    i = layers.fill_constant([1], "float32", 0.0)
    cond = layers.less_than(i, x)
    with layers.While(cond).block():
        layers.increment(i)
        layers.less_than(i, x, cond=cond)
    y = layers.scale(i, 2.0)
    layers.cond(layers.less_than(x, i), lambda: x + 1.0, lambda: x)
    program = fluid.default_main_program()
    place = program.global_block().ops.index(y.op)
    made, moved = core.prune(program.desc, set(), [[0, place]])
    assert op_types(made) == ["fill_constant", "less_than", "while", "scale"]
    assert (moved, made.num_blocks()) == ({0: 0, 1: 1}, 2)


def test_pruning_of_backward() -> None:
    x = fluid.data("x", [2, 3])
    fluid.optimizer.SGD(0.1).minimize(layers.mean(layers.fc(x, 2)))
    made, moved = core.prune_backward(fluid.default_main_program().desc)
    assert (op_types(made), moved) == ([*FC, "mean"], {0: 0})
    assert len(op_types(fluid.default_main_program().desc)) > 3


def test_names() -> None:
    assert (core.var_names.empty(), core.var_names.temp()) == ("@EMPTY@", "@TEMP@")


# ---------------------------------------------------------------- values


def test_single_numbers() -> None:
    scope = core.Scope()
    var = scope.var("a")
    assert (var.is_int(), var.is_float()) == (False, False)
    with pytest.raises(TypeError, match="a holds no int"):
        var.get_int()
    var.set_int(3)
    assert scope.find_var("a").get_int() == 3
    assert (var.is_int(), var.is_float()) == (True, False)
    with pytest.raises(TypeError, match="a holds no float"):
        var.set_float(0.5)
    with pytest.raises(TypeError, match=r"set_int takes an integer, got 2\.5"):
        var.set_int(2.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="one number: use get_int"):
        var.get_tensor()
    other = scope.var("b")
    other.set_float(0.1)
    assert other.get_float() == 0.10000000149011612
    assert other.is_float()
    tensor = scope.var("c")
    tensor.get_tensor().set(np.ones(1), core.CPUPlace())
    with pytest.raises(TypeError, match="c holds no int"):
        tensor.set_int(1)
    assert scope.var("d").get_fetch_list() == []


def test_dlpack() -> None:
    array = np.arange(6, dtype="float32").reshape(2, 3)
    taken = core.from_dlpack(array.__dlpack__())
    np.testing.assert_array_equal(taken, array)
    assert np.shares_memory(np.asarray(taken), array)
    tensor = core.LoDTensor(array)
    np.testing.assert_array_equal(core.from_dlpack(tensor), array)
    with pytest.raises(TypeError, match="got int"):
        core.from_dlpack(3)


# ---------------------------------------------------------------- the machine


@pytest.mark.parametrize(
    ("a", "b", "less"),
    [
        ("1.10", "1.9", False),
        ("1.9", "1.10", True),
        ("2", "1.9", False),
        ("1.9", "1.9.0", False),
        ("1.9", "1.9.1", True),
    ],
)
def test_versions(a: str, b: str, less: bool) -> None:
    assert core.less_than_ver(a, b) is less


def test_commands_of_the_shell() -> None:
    assert core.run_shell_command("echo hi; exit 2") == "hi"
    assert core.run_shell_command("false") == ""
    assert core.run_shell_command("no_such_command_at_all") is None


@pytest.mark.skipif(sys.platform != "linux", reason="asks the C library of Linux")
def test_glibc() -> None:
    found = core.get_glibc_ver()
    assert (
        found == (core.run_shell_command("getconf GNU_LIBC_VERSION") or " ").split()[1]
    )


def test_avx(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"flags : sse avx avx2\nbugs :": True, "Features : asimd\n": False}
    monkeypatch.setattr(core_parts.platform, "system", lambda: "Linux")
    monkeypatch.setattr(Path, "exists", lambda self: True)
    for text, expected in texts.items():
        monkeypatch.setattr(Path, "read_text", lambda self, text=text: text)
        assert core.avx_supported() is expected
    monkeypatch.setattr(core_parts.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(core_parts, "run_shell_command", lambda cmd: "SSE AVX1.0")
    assert core.avx_supported()


def test_starting_up() -> None:
    core.init_gflags(["x", "--cpu_deterministic=true"])
    assert core.globals()["FLAGS_cpu_deterministic"] is False  # as in the reference
    assert (core.init_glog("x"), core.init_devices(True)) == (None, None)
    with pytest.raises(NotImplementedError, match=r"nothing.so"):
        core.load_op_library("nothing.so")
