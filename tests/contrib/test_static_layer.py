"""Layer objects in static programs: what the reference lets them do there."""

from __future__ import annotations

import inspect
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fluidx
from fluidx import contrib, layers
from fluidx.contrib import decoder
from fluidx.contrib.layers.static_layer import StaticLayer
from fluidx.ir import unique_name
from fluidx.kernels import VarType

GOLDEN = Path(__file__).parents[1] / "golden" / "oracle" / "public_names.json.xz"
RECORDED = json.loads(lzma.decompress(GOLDEN.read_bytes()))
MODULES = {
    "paddle.fluid.contrib.layers.rnn_impl": contrib.layers.rnn_impl,
    "paddle.fluid.contrib.decoder": decoder,
    "paddle.fluid.layers.rnn": layers,
}


@pytest.fixture(autouse=True)
def programs() -> Iterator[None]:
    with (
        fluidx.program_guard(fluidx.Program(), fluidx.Program()),
        unique_name.guard(),
    ):
        yield


def _recorded() -> Iterator[tuple[str, Any, str]]:
    for module, mine in MODULES.items():
        for name, facts in RECORDED[module].items():
            if isinstance(facts, str):
                if facts != "module":
                    yield f"{module}.{name}", getattr(mine, name, None), facts
                continue
            for member, text in facts.items():
                if text.startswith("("):
                    full = f"{module}.{name}.{member}"
                    kind = "__init__" if member == "init" else member
                    yield full, getattr(getattr(mine, name), kind), text


@pytest.mark.parametrize(
    ("mine", "wanted"),
    [pytest.param(f, text, id=n) for n, f, text in _recorded() if f is not None],
)
def test_parameters_and_defaults_are_the_recorded_ones(mine: Any, wanted: str) -> None:
    scope: dict[str, Any] = {"VarType": VarType}
    exec(f"def recorded{wanted}: ...", scope)
    shown = [
        [(p.name, p.kind, p.default) for p in inspect.signature(f).parameters.values()]
        for f in (mine, scope["recorded"])
    ]
    if shown[1][:3] and [n for n, *_ in shown[1]] == ["self", "args", "kwargs"]:
        return  # the reference has none of its own
    assert shown[0] == shown[1]


def _unit() -> contrib.BasicGRUUnit:
    return contrib.BasicGRUUnit("u", 5)


def _called(unit: contrib.BasicGRUUnit) -> Any:
    return unit(fluidx.data("x", [None, 3]), fluidx.data("h", [None, 5]))


def test_parameters_are_there_after_the_first_call() -> None:
    unit = _unit()
    assert unit.parameters() == []
    _called(unit)
    one = [p.name for p in unit.parameters()]
    _called(unit)
    assert [p.name for p in unit.parameters()] == one
    full = unit.full_name()
    assert full == "u/BasicGRUUnit_0"
    assert one == [f"{full}.{n}" for n in ("w_0", "w_1", "b_0", "b_1")]
    names = ["_gate_weight", "_candidate_weight", "_gate_bias", "_candidate_bias"]
    named = list(unit.named_parameters("pre"))
    assert [n for n, _ in named] == [f"pre.{n}" for n in names]
    states = unit.state_dict(structured_name_prefix="z")
    assert list(states) == [f"z{n}" for n in names]
    assert unit._gate_bias is unit.parameters()[2]


def test_parameters_variables_and_layers_of_its_own() -> None:
    unit = _unit()
    made = unit.create_parameter([2, 2])
    assert made.name == "u/BasicGRUUnit_0.w_0"
    assert unit.parameters() == []
    assert unit.add_parameter("mine", made) is made
    assert unit.mine is made
    bias = unit.create_parameter([3], fluidx.ParamAttr(name="q"), is_bias=True)
    unit.other = bias
    assert unit.parameters() == [made, bias]
    assert unit.create_variable().name == "u/BasicGRUUnit_0._generated_var_0"
    kept = unit.create_variable("v", persistable=True, dtype="int64")
    assert (kept.name, kept.persistable) == ("u/BasicGRUUnit_0.v", True)
    inner = contrib.BasicLSTMUnit("v", 2)
    assert unit.add_sublayer("inner", inner) is inner
    inner.add_parameter("deep", inner.create_parameter([1]))
    assert [n for n, _ in unit.named_parameters()] == ["mine", "other", "inner.deep"]
    assert unit.parameters(include_sublayers=False) == [made, bias]
    assert unit.sublayers() == [inner]
    everything = list(unit.named_sublayers("top", include_self=True))
    assert everything == [("top", unit), ("top.inner", inner)]
    assert list(unit.named_sublayers(layers_set={inner})) == []
    assert list(unit.named_sublayers(include_sublayers=False)) == [("inner", inner)]


def test_hooks_see_and_change_calls() -> None:
    unit, seen = _unit(), []

    def before(layer: Any, inputs: Any) -> Any:
        seen.append((layer, [v.name for v in inputs]))
        return (inputs[0] * 2.0, inputs[1])

    def after(layer: Any, inputs: Any, outputs: Any) -> Any:
        seen.append((layer, outputs.shape))
        return layers.reduce_sum(outputs)

    first = unit.register_forward_pre_hook(before)
    last = unit.register_forward_post_hook(after)
    assert _called(unit).shape == (1,)
    assert seen == [(unit, ["x", "h"]), (unit, (-1, 5))]
    first.remove()
    last.remove()
    assert _called(unit).shape == (-1, 5)
    assert len(seen) == 2


def test_what_is_for_dygraph_says_so() -> None:
    unit = _unit()
    for call in (
        unit.train,
        unit.eval,
        unit.clear_gradients,
        lambda: unit.set_dict({}),
        lambda: unit.load_dict({}),
    ):
        with pytest.raises(RuntimeError, match=r"BasicGRUUnit\.\w+\(\) is for dygraph"):
            call()
    with pytest.raises(ValueError, match="gradients come of its ops"):
        unit.backward(1)
    with pytest.raises(TypeError, match="takes a Parameter or None, got 's'"):
        unit.add_parameter("mine", "s")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes a layer, got 's'"):
        unit.add_sublayer("mine", "s")  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError):
        StaticLayer("name")()


def test_wrong_arguments_of_the_stacks() -> None:
    x, h = fluidx.data("x", [None, 4, 3]), fluidx.data("h", [1, None, 5])
    with pytest.raises(ValueError, match="both of init_hidden and init_cell"):
        contrib.layers.basic_lstm(x, h, None, 5)
    with pytest.raises(TypeError, match="basic_gru: input must be a Variable"):
        contrib.layers.basic_gru("x", None, 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="sequence_length must be a Variable"):
        contrib.layers.basic_gru(x, None, 5, sequence_length=[4])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a parameter it cannot do without"):
        contrib.layers.basic_gru(x, None, 5, bias_attr=False)
