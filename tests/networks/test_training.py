"""Whole networks train as on the reference from the same initial parameters."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import fluidx
from fluidx.tensor import Scope

FOLDER = Path(__file__).parents[1] / "golden" / "networks"
sys.path.insert(0, str(FOLDER))
import networks  # noqa: E402
import training  # noqa: E402

sys.path.remove(str(FOLDER))

RECORDED = json.loads((FOLDER / "losses.json").read_text())


def test_all_networks_are_recorded() -> None:
    assert sorted(RECORDED) == sorted(networks.networks())


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_losses_are_the_reference_s(name: str) -> None:
    losses = training.train(fluidx, networks.networks()[name], Scope())
    for mine, theirs in zip(losses, RECORDED[name], strict=True):
        assert len(mine) == 20
        np.testing.assert_allclose(mine, theirs, rtol=1e-4)
    if len(losses) == 1:  # a pair of adversaries need not get better
        assert np.mean(losses[0][-4:]) < 0.97 * np.mean(losses[0][:4])
