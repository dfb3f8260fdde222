"""Whole networks: the untranspiled programs equal the reference's."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import fluidx

GOLDEN = Path(__file__).parent / "golden" / "transpiler"


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(
        f"golden_{name}", GOLDEN / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


programs, dump, compare = _load("programs"), _load("dump"), _load("compare")
NAMES = (
    "fc_regression",
    "mlp_softmax",
    "lenet_bn",
    "slice_shapes",
    "emb_dense",
    "emb_sparse",
    "emb_dist_one",
    "emb_dist_v2",
    "emb_v2",
    "ctr_dnn",
    "word2vec",
    "seq_pool",
    "shared_param",
    "frozen_param",
    "dropout_net",
    "lr_exponential_adagrad",
    "lr_noam_adam",
    "lr_polynomial_decayed_adagrad",
    "reg_global_l2",
    "reg_per_param",
    "clip_value",
    "clip_norm",
    "clip_global_norm",
    "clip_by_optimizer",
    "clip_by_optimizer_sliced",
    "opt_adamax",
    "opt_adadelta",
    "opt_rmsprop",
    "opt_ftrl",
    "opt_lamb",
    "opt_lars",
    "lr_piecewise_momentum",
    "lr_warmup_adamax",
    "nce_dense",
    "nce_sparse",
    "hsigmoid_sparse",
    "static_rnn",
    "while_net",
    "cond_net",
)


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    with zipfile.ZipFile(GOLDEN / "out.zip") as file:
        return {n: json.loads(file.read(f"local/{n}.json")) for n in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_program_equals_the_reference(name: str, golden: dict[str, Any]) -> None:
    getattr(programs, name)(fluidx)
    for role, program in (
        ("main", fluidx.default_main_program()),
        ("startup", fluidx.default_startup_program()),
    ):
        mine = json.loads(json.dumps(dump.dump(program)))
        assert compare.compare(golden[name][role], mine) == []
