"""Fleet calls that come too early: what is said."""

from __future__ import annotations

import pytest

import fluidx as fluid
from fluidx.incubate.fleet.parameter_server import distribute_transpiler


def test_serving_before_minimize() -> None:
    fleet = distribute_transpiler.DistributedTranspiler()
    with pytest.raises(RuntimeError, match=r"fleet\.run_server comes after minimize"):
        fleet.run_server()


def test_saving_before_minimize() -> None:
    fleet = distribute_transpiler.DistributedTranspiler()
    exe = fluid.Executor(fluid.CPUPlace())
    with pytest.raises(RuntimeError, match="save_persistables comes after minimize"):
        fleet.save_persistables(exe, "model")
