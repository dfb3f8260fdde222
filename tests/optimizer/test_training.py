"""Four training steps of every optimizer, against the reference's parameters."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from golden.oracle import optimizers

import fluidx as fluid

DATA = json.loads(
    (Path(__file__).parents[1] / "golden/oracle/optimizers.json").read_text()
)


@pytest.mark.parametrize("name", sorted(optimizers.TRAINERS))
def test_same_parameters_as_the_reference(name: str) -> None:
    got = optimizers.train(fluid, name)
    assert len(got) == optimizers.STEPS
    for step, (ours, theirs) in enumerate(zip(got, DATA[name], strict=True)):
        for key, numbers in theirs.items():
            np.testing.assert_allclose(
                ours[key], numbers, 2e-5, 2e-6, err_msg=f"{key} after step {step}"
            )


def test_training_moves_every_parameter() -> None:
    """The recorded numbers are worth comparing with: nothing stands still."""
    first = {k: v.reshape(-1) for k, v in optimizers.start().items()}
    for name in optimizers.TRAINERS:
        for key, numbers in DATA[name][-1].items():
            assert np.abs(first[key] - numbers).max() > 1e-4, (name, key)
