"""A whole cluster in one process: exact, repeatable, and with faults on demand."""

from __future__ import annotations

import re

import numpy as np
import pytest
from distributed import toy

from fluidx.distributed import ClusterError, stats
from fluidx.distributed.client import Client
from fluidx.distributed.inprocess import ClusterFailure, InProcessCluster, sleep
from fluidx.distributed.wire import Kind, Message, encode

NAMES = ["w", "b", "v"]


def endpoints(count):
    return [f"127.0.0.1:{6174 + i}" for i in range(count)]


def roles(servers, steps_of, mode=0, before_step=None):
    eps = endpoints(servers)
    count = len(steps_of)
    made = {}
    for i, e in enumerate(eps):
        made[f"pserver-{i}"] = lambda e=e: toy.run_server(e, NAMES, eps, count, mode)
    for t, steps in enumerate(steps_of):
        made[f"trainer-{t}"] = lambda t=t, steps=steps: toy.run_trainer(
            t, NAMES, eps, steps, mode, before_step=before_step and before_step(t)
        )
    return made


def run(servers, steps_of, seed=0, **more):
    hub = InProcessCluster(seed)
    return hub, hub.run(roles(servers, steps_of, **more))


def failure(hub, made):
    with pytest.raises(ClusterFailure) as caught:
        hub.run(made)
    return caught.value.errors


@pytest.mark.parametrize("trainers", [1, 2, 3])
@pytest.mark.parametrize("servers", [1, 2, 3])
def test_sync_equals_one_place(servers, trainers):
    _, results = run(servers, [4] * trainers)
    for t in range(trainers):
        for name, value in toy.expected(NAMES, [4] * trainers).items():
            np.testing.assert_allclose(
                results[f"trainer-{t}"][name], value, 1e-5, 1e-6, err_msg=name
            )


def test_uneven_data():
    steps = [5, 2, 4]
    _, results = run(2, steps)
    for name, value in toy.expected(NAMES, steps).items():
        np.testing.assert_allclose(results["trainer-0"][name], value, 1e-5, 1e-6)


def test_one_seed_gives_one_interleaving():
    first, a = run(2, [3, 3], seed=5)
    again, b = run(2, [3, 3], seed=5)
    other, c = run(2, [3, 3], seed=6)
    assert first.trace == again.trace
    assert first.trace != other.trace
    for name in NAMES:
        assert (a["trainer-0"][name] == b["trainer-0"][name]).all()
        # a synchronous result does not depend on who comes first
        np.testing.assert_allclose(
            a["trainer-0"][name], c["trainer-0"][name], 1e-6, 1e-6
        )


def test_async_results_depend_on_the_interleaving_alone():
    runs = [run(1, [4, 4], seed=s, mode=2)[1]["pserver-0"]["w"] for s in (1, 1, 2)]
    assert (runs[0] == runs[1]).all()
    assert not (runs[0] == runs[2]).all()


def test_async_with_one_trainer_is_plain_descent():
    _, results = run(2, [5], mode=2)
    for name, value in toy.expected(NAMES, [5]).items():
        np.testing.assert_allclose(results["trainer-0"][name], value, 1e-5, 1e-6)


def test_delays_change_the_order_and_not_the_result():
    hub = InProcessCluster(seed=2)
    hub.delay("trainer-1", "pserver-0", 30.0)
    results = hub.run(roles(2, [3, 3]))
    assert hub.trace[-1][0] > 100.0  # virtual seconds
    for name, value in toy.expected(NAMES, [3, 3]).items():
        np.testing.assert_allclose(results["trainer-0"][name], value, 1e-5, 1e-6)


def test_roles_share_no_memory():
    """A trainer's parameters stay what they were when the server's change."""
    kept = {}

    def keep(client, trainer):
        client.register(endpoints(1), trainer)
        return client.exchange([], [(endpoints(1)[0], "w")], trainer)[0]

    def first():
        client = Client()
        kept["early"] = keep(client, 0)
        kept["copy"] = kept["early"].copy()
        client.close()

    made = roles(1, [0, 3])
    made["trainer-0"] = first
    InProcessCluster().run(made)
    assert (kept["early"] == kept["copy"]).all()


def test_bytes_are_counted_for_each_role():
    before = stats()
    hub, _ = run(2, [3, 3])
    counts = hub.stats()
    for role in ("trainer-0", "trainer-1"):
        ours = counts[role]["peers"]
        assert set(ours) == {f"pserver {e}" for e in endpoints(2)}
        for index, endpoint in enumerate(endpoints(2)):
            theirs = counts[f"pserver-{index}"]["peers"][role]
            mine = ours[f"pserver {endpoint}"]
            assert theirs["received"]["PUSH"] == mine["sent"]["PUSH"]
            assert theirs["sent"]["VALUES"] == mine["received"]["VALUES"]
    # four messages with three 300x100, 7 and 3x5 tensors each way: nearly all data
    floats = 4 * (300 * 100 + 7 + 15)
    got = counts["trainer-0"]["received_bytes"]
    assert 4 * floats < got < 4 * floats + 4000
    assert stats() == before  # not this thread's


# faults


def names_the_dead(errors, dead, others, bound):
    """Every other role failed, and says who is dead."""
    assert set(others) <= set(errors)
    for role in others:
        assert isinstance(errors[role], ClusterError)
        assert re.search(dead, str(errors[role])), errors[role]
    assert bound


@pytest.mark.parametrize("after", [3, 6, 9])
@pytest.mark.parametrize("victim", ["trainer-0", "trainer-1"])
def test_a_dead_trainer_ends_all_others(victim, after):
    hub = InProcessCluster(seed=after)
    hub.crash(victim, after)
    errors = failure(hub, roles(2, [50, 50]))
    others = {"trainer-0", "trainer-1", "pserver-0", "pserver-1"} - {victim}
    number = victim[-1]
    names_the_dead(errors, f"trainer {number} (died|gave up)", others, True)
    assert hub.trace[-1][0] < 5.0


@pytest.mark.parametrize("victim", [0, 1])
def test_a_dead_server_ends_all_others(victim):
    hub = InProcessCluster(seed=victim)
    hub.crash(f"pserver-{victim}", 15)
    errors = failure(hub, roles(2, [50, 50]))
    others = {"trainer-0", "trainer-1", f"pserver-{1 - victim}"}
    endpoint = endpoints(2)[victim]
    names_the_dead(errors, f"pserver {endpoint} died", others, True)
    waiting = re.search(
        r"trainer \d waited for .* at step \d+", str(errors["trainer-0"])
    )
    assert waiting
    assert hub.trace[-1][0] < 5.0


def test_a_trainer_that_raises_is_named():
    def before(trainer):
        def step(number):
            if trainer == 1 and number == 2:
                raise ValueError("bad batch")

        return step

    errors = failure(InProcessCluster(), roles(2, [9, 9], before_step=before))
    assert next(iter(errors)) == "trainer-1"
    assert isinstance(errors["trainer-1"], ValueError)
    names_the_dead(errors, "trainer 1 died or ended", {"trainer-0", "pserver-0"}, True)


def test_a_server_whose_block_raises_is_named():
    def broken():
        raise FloatingPointError("overflow")

    made = roles(1, [9, 9])
    made["pserver-0"] = lambda: toy.run_server(
        endpoints(1)[0], NAMES, endpoints(1), 2, before_block=broken
    )
    errors = failure(InProcessCluster(), made)
    text = "pserver 127.0.0.1:6174 failed: FloatingPointError: overflow"
    assert str(errors["trainer-0"]) == str(errors["trainer-1"]) == text


def test_a_lost_message_ends_in_a_bounded_wait():
    hub = InProcessCluster()
    hub.lose("trainer-1", "pserver-0", 3)  # hello, fetch, step, step: lost
    errors = failure(hub, roles(1, [9, 9]))
    assert (
        "pserver 127.0.0.1:6174 waited 180 s for the gradients of trainer 1 in round 1"
        in str(errors["trainer-0"])
    )
    assert 180 < hub.trace[-1][0] < 190


def test_a_lost_answer_ends_in_a_bounded_wait():
    hub = InProcessCluster()
    hub.lose("pserver-0", "trainer-0", 2)
    errors = failure(hub, roles(1, [9]))
    assert (
        "no answer from pserver 127.0.0.1:6174 for 185 s while trainer 0 waited for "
        "w, b, v at step 2" in str(errors["trainer-0"])
    )


def test_a_slow_trainer_is_waited_for():
    def before(trainer):
        return lambda step: sleep(150.0) if trainer == 1 else None

    hub = InProcessCluster()
    results = hub.run(roles(1, [2, 2], before_step=before))
    for name, value in toy.expected(NAMES, [2, 2]).items():
        np.testing.assert_allclose(results["trainer-0"][name], value, 1e-5, 1e-6)


def test_a_frozen_trainer_is_not_waited_for():
    def before(trainer):
        return lambda step: sleep(400.0, alive=False) if trainer == 1 else None

    errors = failure(InProcessCluster(), roles(1, [2, 2], before_step=before))
    text = "has heard nothing of trainer 1 for 180 s|gradients of trainer 1"
    names_the_dead(errors, text, {"pserver-0", "trainer-0"}, True)


def test_a_server_that_never_comes():
    made = roles(1, [1])
    del made["pserver-0"]
    hub = InProcessCluster()
    errors = failure(hub, made)
    assert (
        "no answer from pserver 127.0.0.1:6174 for 905 s while trainer 0 waited for "
        "w, b, v at step 0" in str(errors["trainer-0"])
    )


def test_a_trainer_that_never_comes():
    made = roles(1, [3, 3])
    del made["trainer-1"]
    errors = failure(InProcessCluster(), made)
    assert str(errors["trainer-0"]) == str(errors["pserver-0"])
    assert "for trainer 1, which never appeared" in str(errors["pserver-0"])


@pytest.mark.parametrize("late", ["pserver-0", "trainer-0"])
def test_any_order_of_starting(late):
    made = roles(2, [2, 2])
    body = made[late]

    def wait():
        sleep(60.0)
        return body()

    made[late] = wait
    results = InProcessCluster().run(made)
    for name, value in toy.expected(NAMES, [2, 2]).items():
        np.testing.assert_allclose(results["trainer-1"][name], value, 1e-5, 1e-6)


def test_two_servers_on_one_endpoint():
    eps = endpoints(1)
    made = roles(1, [2])
    made["pserver-1"] = lambda: toy.run_server(eps[0], NAMES, eps, 1)
    errors = failure(InProcessCluster(), made)
    assert [str(e) for e in errors.values()] == [
        "endpoint 127.0.0.1:6174 is in use by another process"
    ]


def test_two_trainers_of_one_number():
    made = roles(1, [3, 3])
    made["trainer-1"] = lambda: toy.run_trainer(0, NAMES, endpoints(1), 3)
    errors = failure(InProcessCluster(), made)
    texts = " ".join(map(str, errors.values()))
    assert "another process already is trainer 0" in texts


def test_a_server_without_parameters_is_legal():
    eps = endpoints(4)
    with pytest.warns(UserWarning, match="6177 has nothing to update"):
        results = InProcessCluster().run(roles(4, [2, 2]))
    for name, value in toy.expected(NAMES, [2, 2]).items():
        np.testing.assert_allclose(results["trainer-0"][name], value, 1e-5, 1e-6)
    assert results["pserver-3"] == {}
    assert len(eps) == 4


def test_what_the_server_does_not_have():
    def ask():
        client = Client()
        client.exchange([], [(endpoints(1)[0], "nothing")], 0)

    made = roles(1, [1])
    made["trainer-0"] = ask
    errors = failure(InProcessCluster(), made)
    assert (
        "pserver 127.0.0.1:6174: nothing has no value: startup program not run?"
        in str(errors["trainer-0"])
    )


def test_rows_outside_the_table():
    def ask():
        client = Client()
        rows = client.lookup([(endpoints(1)[0], "w", np.array([0, 299]))], 0)
        assert rows[0].shape == (2, 100)
        client.lookup([(endpoints(1)[0], "w", np.array([300]))], 0)

    made = roles(1, [1])
    made["trainer-0"] = ask
    errors = failure(InProcessCluster(), made)
    assert "rows of w are asked for outside [0, 300)" in str(errors["trainer-0"])


def test_garbage_does_not_stop_a_server(caplog):
    """A message that cannot be read is answered, and serving goes on."""
    from fluidx.distributed.transport import current_network

    def stranger():
        transport = current_network.get().trainer(None)
        transport.connect(endpoints(1)[0])
        transport.send(endpoints(1)[0], [b"\x00" * 99])
        transport.send(endpoints(1)[0], encode(Message(Kind.PING, 7)))
        answers = []
        while len(answers) < 2:
            answers += transport.poll(10.0)
        transport.close()
        return [bytes(a.frames[0]) for a in answers]

    made = roles(1, [3])
    made["stranger"] = stranger
    results = InProcessCluster().run(made)
    assert b"cannot read this message" in results["stranger"][0]
    assert b"there is no trainer 7" in results["stranger"][1]
    assert "message dropped: not a fluidx message" in caplog.text
    for name, value in toy.expected(NAMES, [3]).items():
        np.testing.assert_allclose(results["trainer-0"][name], value, 1e-5, 1e-6)


def test_after_the_end_nothing_more_is_sent():
    def once():
        client = Client()
        client.exchange([], [(endpoints(1)[0], "w")], 0)
        with pytest.raises(ClusterError, match="speaks for trainer 0"):
            client.exchange([], [(endpoints(1)[0], "w")], 1)
        client.close()
        client.close()
        with pytest.raises(ClusterError, match="closed"):
            client.exchange([], [(endpoints(1)[0], "w")], 0)

    made = roles(1, [1])
    made["trainer-0"] = once
    InProcessCluster().run(made)


def test_large_gradients_leave_before_the_barrier(monkeypatch):
    monkeypatch.setenv("FLUIDX_FLUSH_BYTES", "1000")
    monkeypatch.setenv("FLUIDX_CHUNK_BYTES", "5000")
    hub, results = run(1, [3, 3])
    pushes = hub.stats()["trainer-0"]["peers"]["pserver 127.0.0.1:6174"]["sent"]["PUSH"]
    assert pushes["messages"] == 1 + 3 * 2
    for name, value in toy.expected(NAMES, [3, 3]).items():
        np.testing.assert_allclose(results["trainer-0"][name], value, 1e-5, 1e-6)
