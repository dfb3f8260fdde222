"""Recorded networks with tables on servers compute what one process computes.

Several of them the reference refuses or cannot run: distributed v1 tables (one and
two), sparse nce, hsigmoid with a custom tree.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from golden.transpiler import programs

import fluidx as fluid
from fluidx.distributed.equivalent import Equivalence, equivalent
from fluidx.kernels import VarType

# how many values each integer input takes; labels and codes of a tree: two
HIGH = {
    "basket": 2000,
    "ids": 3000,
    "item": 5001,
    "items_id": 5001,
    "label": 1200,
    "next": 1024,
    "path": 1999,
    "user": 2500,
    "users_id": 3000,
    "word": 2000,
}


def report(name: str, mode: str, **sizes: int) -> Equivalence:
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup):
        getattr(programs, name)(fluid)
    fed = [v for v in main.global_block().vars.values() if v.is_data]

    def feed(step: int, trainer: int, trainers: int) -> dict[str, Any]:
        rng = np.random.default_rng([step, trainer])
        made: dict[str, Any] = {}
        for var in fed:
            shape = [8 if d < 0 else d for d in var.shape]
            if var.dtype == VarType.INT64:
                high = 1024 if var.name[:1] == "w" and var.name[1:].isdigit() else 2
                made[var.name] = rng.integers(0, HIGH.get(var.name, high), shape)
            else:
                made[var.name] = rng.standard_normal(shape).astype("float32")
        return made

    with warnings.catch_warnings():
        # a small net can leave a server without anything to do
        warnings.filterwarnings("ignore", "pserver .* has nothing to update")
        return equivalent(main, mode, feed, 3, startup_program=startup, **sizes)


@pytest.mark.parametrize(
    "name",
    [
        "emb_sparse",
        "emb_dist_one",
        "emb_dist_two",
        "emb_dist_v2",
        "emb_v2",
        "hsigmoid_sparse",
        "shared_param",
        "word2vec",
    ],
)
@pytest.mark.parametrize("servers", [1, 3])
def test_tables_on_servers(name: str, servers: int) -> None:
    found = report(name, "pserver", trainers=2, pservers=servers)
    assert found.same is True, str(found)
    assert found.largest < 1e-5


@pytest.mark.parametrize("name", ["nce_dense", "nce_sparse"])
def test_nce_with_one_trainer(name: str) -> None:
    """Negative samples are drawn for a batch: two half batches draw others."""
    found = report(name, "pserver", trainers=1, pservers=2)
    assert found.same is True, str(found)
    assert found.largest < 1e-5
