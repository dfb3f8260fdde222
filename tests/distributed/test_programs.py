"""Transpiled programs, run as a cluster: synchronous training equals one process."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from distributed.fluid_cluster import cluster, gathered, initial, train_alone

from fluidx.distributed.inprocess import InProcessCluster


def check(kind, optimizer, servers, steps_of, **options):
    hub = InProcessCluster(seed=len(steps_of))
    with warnings.catch_warnings():
        # three servers have nothing to do for a small net
        warnings.filterwarnings("ignore", "pserver .* has nothing to update")
        results = hub.run(cluster(kind, optimizer, servers, steps_of, **options))
    wanted = train_alone(kind, optimizer, steps_of)
    held = gathered(results)
    assert set(held) == set(wanted)
    last = int(np.argmax(steps_of))  # who trained longest has the last values
    for name, value in wanted.items():
        np.testing.assert_allclose(held[name], value, 0, 1e-5, err_msg=name)
        assert np.abs(value - initial(kind, optimizer)[name]).max() > 1e-3, name
    for name, value in results[f"trainer-{last}"][0].items():
        np.testing.assert_allclose(value, wanted[name], 0, 1e-5, err_msg=name)


@pytest.mark.parametrize("trainers", [1, 2, 3])
@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_sync_equals_one_process(kind, servers, trainers):
    check(kind, "sgd", servers, [4] * trainers)


@pytest.mark.parametrize("slices", [True, False])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("kind", ["dense", "table", "sparse"])
def test_optimizers_and_slices(kind, optimizer, slices):
    check(kind, optimizer, 2, [4, 4], slices=slices)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_uneven_data(kind):
    check(kind, "sgd", 2, [5, 2, 4])


def test_a_learning_rate_schedule():
    check("dense", "decayed", 2, [5, 5])


def test_a_learning_rate_schedule_async():
    """One trainer's steps are numbered from 1 (as the reference was seen to do)."""
    hub = InProcessCluster(seed=1)
    results = hub.run(cluster("dense", "decayed", 2, [1], sync=False))
    first = initial("dense", "decayed")["fc_1.b_0"]
    local = train_alone("dense", "decayed", [1])["fc_1.b_0"]
    moved = gathered(results)["fc_1.b_0"] - first
    # the local run starts at 0: its first rate is 0.5, the second 0.5 * sqrt(0.5)
    np.testing.assert_allclose(moved, (local - first) * 0.5**0.5, 1e-5)


def test_async_learns():
    hub = InProcessCluster(seed=1)
    results = hub.run(cluster("dense", "gentle", 2, [60, 60], sync=False))
    for number in range(2):
        losses = results[f"trainer-{number}"][1]
        assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:10])
    held, first = gathered(results), initial("dense", "gentle")
    assert all(np.abs(held[n] - first[n]).max() > 1e-3 for n in first)


@pytest.mark.parametrize("trainers", [1, 2])
def test_async_sparse_runs(trainers):
    hub = InProcessCluster(seed=1)
    results = hub.run(cluster("sparse", "sgd", 2, [3] * trainers, sync=False))
    if trainers == 1:
        # one trainer's gradients are applied one after the other, as locally
        wanted = train_alone("sparse", "sgd", [3])
        for name, value in gathered(results).items():
            np.testing.assert_allclose(value, wanted[name], 0, 1e-5, err_msg=name)


def test_a_synchronous_step_is_one_message_each_way_per_server():
    hub = InProcessCluster()
    hub.run(cluster("dense", "sgd", 2, [7, 7]))
    for role, counts in hub.stats().items():
        for peer, ways in counts["peers"].items():
            if role.startswith("trainer"):
                # seven steps and the startup's fetch
                assert ways["sent"]["PUSH"]["messages"] == 8, (role, peer)
                assert ways["received"]["VALUES"]["messages"] == 8, (role, peer)
