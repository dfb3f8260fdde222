"""Mixed precision on servers: scaled back, checked and cleared before it is sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx.contrib import mixed_precision
from fluidx.distributed.equivalent import equivalent
from fluidx.transpiler import distribute

OPTIMIZERS = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "decayed": lambda: fluid.optimizer.SGD(
        0.1, regularization=fluid.regularizer.L2Decay(0.01)
    ),
    "clipped": lambda: fluid.optimizer.Adam(
        0.01, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.5)
    ),
}


class Net:
    def __init__(self, optimizer: str = "sgd", **scaling: Any) -> None:
        self.main, self.startup = fluid.Program(), fluid.Program()
        self.main.random_seed = self.startup.random_seed = 3
        with (
            fluid.program_guard(self.main, self.startup),
            fluid.unique_name.guard(),
        ):
            x, y = fluid.data("x", [None, 8]), fluid.data("y", [None, 1])
            hidden = fluid.layers.fc(x, 6, act="tanh")
            out = fluid.layers.fc(hidden, 1)
            loss = fluid.layers.reduce_mean(fluid.layers.square_error_cost(out, y))
            mixed = mixed_precision.decorate(OPTIMIZERS[optimizer](), **scaling)
            mixed.minimize(loss)
            self.scale = mixed.get_loss_scaling()


def _feed(step: int, trainer: int, trainers: int) -> dict[str, Any]:
    rng = np.random.default_rng([step, trainer])
    x = rng.standard_normal((4, 8)).astype("f4")
    return {"x": x, "y": x[:, :1] * 0.5}


def _overflowing(step: int, trainer: int, trainers: int) -> dict[str, Any]:
    """Step 1 is too much for half precision."""
    feed = _feed(step, trainer, trainers)
    if step == 1:
        feed["y"] = np.full_like(feed["y"], 1e6)
    return feed


def _check(net: Net, feed: Any, mode: str = "pserver", **options: Any) -> Any:
    return equivalent(net.main, mode, feed, 4, startup_program=net.startup, **options)


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
@pytest.mark.parametrize("dynamic", [False, True])
def test_equals_one_process(optimizer: str, dynamic: bool) -> None:
    net = Net(optimizer, use_dynamic_loss_scaling=dynamic, init_loss_scaling=8.0)
    # half precision sums a batch of eight other than two of four
    report = _check(net, _feed, tolerance=1e-3)
    assert report.same is True, str(report)


@pytest.mark.parametrize("mode", ["pserver", "completely-not-async"])
def test_a_step_that_overflows_is_skipped_on_servers_too(mode: str) -> None:
    net = Net("sgd", init_loss_scaling=64.0, decr_every_n_nan_or_inf=1)
    report = _check(net, _overflowing, mode, tolerance=1e-3)
    assert report.same is True, str(report)


def test_servers_get_scaled_back_gradients_and_update_only() -> None:
    net = Net("sgd", init_loss_scaling=8.0)
    made = distribute(net.main, net.startup, "pserver").programs
    for role in ("pserver-0", "pserver-1"):
        kinds = {op.type for b in made[role]["main"].blocks for op in b.ops}
        assert not kinds & {"elementwise_div", "isfinite", "conditional_block", "cast"}
        assert "sgd" in kinds
    ops = made["trainer-1"]["main"].global_block().ops
    kinds = [op.type for op in ops]
    first = kinds.index("send")
    assert kinds.count("elementwise_div") == 4
    assert "conditional_block" in kinds[:first]
    assert "conditional_block" not in kinds[first:]
    sent = [op.inputs["X"][0] for op in ops if op.type == "send"]
    assert all(name.endswith(".trainer_1") for name in sent)
    # what the conditional block clears is what is sent
    (clear,) = [op for op in ops if set(sent) <= set(op.outputs.get("Out", ()))]
    assigned = [
        o.outputs["Out"][0] for o in clear.sub_blocks[0].ops if o.type == "assign"
    ]
    assert sorted(assigned) == sorted(sent)
