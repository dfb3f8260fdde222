"""Every public name has the signature that the reference has."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import fluidx.average
import fluidx.initializer
import fluidx.input
import fluidx.layers
import fluidx.metrics
import fluidx.nets
import fluidx.param_attr
from fluidx import kernels
from fluidx.kernels import VarType

GOLDEN = Path(__file__).parents[1] / "golden"
API = json.loads((GOLDEN / "api.json").read_text())
# names of fluid.layers that are still to come; a name leaves the list when it is there
ABSENT = (GOLDEN / "layers_absent.txt").read_text().split()
HOMES = {
    "fluid": (fluidx.input, fluidx.param_attr),
    "fluid.layers": (fluidx.layers,),
    "fluid.nets": (fluidx.nets,),
    "fluid.initializer": (fluidx.initializer,),
    "fluid.metrics": (fluidx.metrics,),
    "fluid.average": (fluidx.average,),
}


def _provided() -> list[tuple[str, Any, Any]]:
    found = []
    for section, homes in HOMES.items():
        for name, recorded in API[section].items():
            for home in homes:
                if name in home.__all__:
                    found.append((f"{section}.{name}", getattr(home, name), recorded))
    return found


def _parameters(signature: inspect.Signature) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in signature.parameters.values()]


def _recorded(text: str) -> list[tuple[str, Any, Any]]:
    """The parameters of a signature written down as text."""
    scope = {"VarType": VarType}
    exec(f"def recorded{text}: ...", scope)
    return _parameters(inspect.signature(scope["recorded"]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "mine", "recorded"), _provided(), ids=[p[0] for p in _provided()]
)
def test_signature_is_the_recorded_one(name: str, mine: Any, recorded: Any) -> None:
    if isinstance(recorded, str):
        assert _parameters(inspect.signature(mine)) == _recorded(recorded)
        return
    assert _parameters(inspect.signature(mine.__init__)) == _recorded(recorded["init"])
    for member, text in recorded["members"].items():
        assert _parameters(inspect.signature(getattr(mine, member))) == _recorded(text)


def test_the_layers_still_absent_are_listed() -> None:
    provided = set(fluidx.layers.__all__)
    missing = {n for n in API["fluid.layers"] if n not in provided}
    assert not missing - set(ABSENT), "layers of the reference that were there are gone"
    assert not set(ABSENT) - missing, "now provided: drop them from layers_absent.txt"
    assert sorted(set(ABSENT)) == ABSENT


def test_much_of_the_api_is_provided() -> None:
    names = [name for name, _, _ in _provided()]
    assert len(names) == len(set(names))
    assert {n for n in names if n.startswith("fluid.initializer.")} == {
        f"fluid.initializer.{n}" for n in API["fluid.initializer"]
    }


def test_public_names_exist_and_are_documented() -> None:
    for home in [h for homes in HOMES.values() for h in homes]:
        assert len(home.__all__) == len(set(home.__all__)), home
        for name in home.__all__:
            assert inspect.getdoc(getattr(home, name)), f"{home.__name__}.{name}"


def test_activations_have_ops() -> None:
    missing = [n for n in fluidx.layers.ops.__all__ if not kernels.has(n)]
    assert missing == []
