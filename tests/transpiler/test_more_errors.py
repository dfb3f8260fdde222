"""Wrong arguments of the transpiler: what is said."""

from __future__ import annotations

import pytest

import fluidx as fluid


def test_a_config_that_is_none() -> None:
    with pytest.raises(TypeError, match="config must be a DistributeTranspilerConfig"):
        fluid.DistributeTranspiler(3)


def test_a_program_that_is_none() -> None:
    made = fluid.DistributeTranspiler()
    with pytest.raises(TypeError, match="transpile: expected a Program, got 3"):
        made.transpile(0, program=3, pservers="127.0.0.1:6174", trainers=1)
