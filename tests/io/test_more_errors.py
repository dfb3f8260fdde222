"""Wrong arguments of saving and loading: what is said."""

from __future__ import annotations

import pytest

import fluidx as fluid


def test_a_state_that_is_no_dict() -> None:
    with pytest.raises(TypeError, match="set_program_state: state_dict must be a dict"):
        fluid.io.set_program_state(fluid.default_main_program(), 3)


def test_variables_that_are_no_list() -> None:
    with pytest.raises(TypeError, match="vars must be a list of Variables, got 3"):
        fluid.io.save_vars(fluid.Executor(fluid.CPUPlace()), "model", vars=3)
