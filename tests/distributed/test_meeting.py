"""Members that meet outside of programs: in one process with faults, and in several."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fluidx.distributed.config import RpcConfig
from fluidx.distributed.errors import ClusterError
from fluidx.distributed.inprocess import ClusterFailure, InProcessCluster
from fluidx.distributed.meeting import Member

PLACE = "10.0.0.1:7000"
NAMES = ["worker 0", "worker 1", "worker 2"]
FAST = RpcConfig(deadline=20.0, start_deadline=60.0)


def member(number, body, names=NAMES):
    """A role that meets the others, does `body`, and leaves."""

    def run():
        made = Member(names[number], PLACE, number == 0, FAST)
        try:
            return body(made, number)
        finally:
            made.close()

    return run


def roles(body, names=NAMES):
    return {f"trainer-{i}": member(i, body, names) for i in range(len(names))}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_all_get_what_all_brought_in_order(seed):
    def body(me, number):
        arrays = me.gather("workers", NAMES, np.arange(number), "arrays")
        said = me.gather("workers", NAMES, {"me": number, "x": [None, 1.5]}, "said")
        return [a.tolist() for a in arrays], said

    results = InProcessCluster(seed).run(roles(body))
    expected = (
        [[], [0], [0, 1]],
        [{"me": n, "x": [None, 1.5]} for n in range(3)],
    )
    assert list(results.values()) == [expected] * 3


def test_groups_do_not_wait_for_each_other():
    def body(me, number):
        pair = NAMES[:2]
        first = me.gather("pair", pair, number, "pair") if number < 2 else None
        return first, me.gather("all", NAMES, number * 10, "all")

    results = InProcessCluster(4).run(roles(body))
    assert results["trainer-0"] == ([0, 1], [0, 10, 20])
    assert results["trainer-2"] == (None, [0, 10, 20])


def test_arrays_are_the_receivers_own():
    def body(me, number):
        came = me.gather("workers", NAMES, np.zeros(4), "zeros")
        came[0] += number + 1
        return came[0].tolist()

    results = InProcessCluster(1).run(roles(body))
    assert [results[f"trainer-{i}"][0] for i in range(3)] == [1.0, 2.0, 3.0]


def failing(cluster, made):
    with pytest.raises(ClusterFailure) as caught:
        cluster.run(made)
    return {role: str(error) for role, error in caught.value.errors.items()}


def test_who_does_not_come_is_named():
    def body(me, number):
        me.gather("workers", NAMES, 1, "barrier_worker")
        if number != 2:
            me.gather("workers", NAMES, 2, "barrier_worker")
        else:  # busy with other things
            end = me._connected().now() + 50
            while (left := end - me._connected().now()) > 0:
                me._connected().poll(left)

    errors = failing(InProcessCluster(3), roles(body))
    text = "waited for barrier_worker: worker 2 did not come within 20 s"
    assert errors == {"trainer-0": f"worker 0 {text}", "trainer-1": f"worker 1 {text}"}


def test_who_left_is_named_at_once():
    def body(me, number):
        me.gather("workers", NAMES, 1, "first")
        if number != 1:
            before = me._connected().now()
            try:
                me.gather("workers", NAMES, 2, "second")
            finally:
                assert me._connected().now() - before < 5

    errors = failing(InProcessCluster(5), roles(body))
    text = "waited for second: worker 1 does not come: it has left"
    assert errors == {"trainer-0": f"worker 0 {text}", "trainer-2": f"worker 2 {text}"}


def test_different_meetings_are_told_apart():
    def body(me, number):
        me.gather("workers", NAMES[:2], 1, ["all_gather", "barrier_worker"][number])

    errors = failing(InProcessCluster(2), roles(body, NAMES[:2]))
    for error in errors.values():
        assert "barrier_worker" in error
        assert "all_gather" in error


def test_only_arrays_and_json_travel():
    def body(me, number):
        me.gather("workers", NAMES[:1], object(), "objects")

    errors = failing(InProcessCluster(0), roles(body, NAMES[:1]))
    assert "exchange arrays and what JSON can say" in errors["trainer-0"]


ROLE = """
import sys
import numpy as np
from fluidx.distributed.meeting import Member

number, place = int(sys.argv[1]), sys.argv[2]
names = [f"worker {i}" for i in range(3)]
me = Member(names[number], place, number == 0)
for _ in range(20):
    came = me.gather("workers", names, np.full(30000, number), "arrays")
    assert [c[0] for c in came] == [0, 1, 2] and len(came[2]) == 30000
print(me.gather("workers", names, number, "numbers"))
me.close()
"""


@pytest.mark.cluster
def test_processes_meet():
    from fluidx.distributed.launch import bind_ports

    (free,) = bind_ports(1)
    place = "{}:{}".format(*free.getsockname()[:2])
    free.close()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", ROLE, str(i), place],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(3)
    ]
    for one in started:
        out, error = one.communicate(timeout=60)
        assert (out, error) == ("[0, 1, 2]\n", "")


def test_a_place_that_is_taken_is_said():
    from fluidx.distributed.launch import bind_ports

    (taken,) = bind_ports(1)
    place = "{}:{}".format(*taken.getsockname()[:2])
    with taken, pytest.raises(ClusterError, match=f"endpoint {place} is in use"):
        Member("worker 0", place, True)
