"""send, recv and the barriers as kernels: what they ask of ``ctx.rpc``."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from fluidx import kernels
from fluidx.kernels import Call, SelectedRows


class Rpc:
    """Notes what is asked; answers every name with its own array."""

    def __init__(self):
        self.log = []

    between_ = None

    def between(self, ctx):
        return self.between_

    def register(self, endpoints, trainer_id):
        self.log.append(("register", list(endpoints), trainer_id))

    def push(self, endpoint, name, value):
        self.log.append(("push", endpoint, name, value))

    def exchange(self, barriers, wanted, trainer_id):
        self.log.append(("exchange", list(barriers), list(wanted), trainer_id))
        return [self.answer(name) for _, name in wanted]

    @staticmethod
    def answer(name):
        return np.full((2, 1), sum(name.encode()), "f4")


def call(type, names, out=(), **attrs):
    """One op over variables whose values are their own answers."""
    definition = kernels.find(type)
    values = [Rpc.answer(n) for n in names]
    return Call(
        definition,
        [values],
        {**definition.defaults, **attrs},
        {"X": list(names), "Out": list(out)},
    )


def run(*calls):
    rpc = Rpc()
    context = SimpleNamespace(rpc=rpc)
    outs = kernels.batch_of("rpc")(np, context, list(calls))
    assert [len(o) for o in outs] == [1] * len(calls)
    for each, (values,) in zip(calls, outs):
        assert len(values) == len(each.names["Out"])
    return [values for (values,) in outs], rpc.log


E = ["e0", "e1"]


def test_a_synchronous_step_is_one_exchange():
    outs, log = run(
        call("send", ["g0"], ["c0"], epmap=["e0"]),
        call("send", ["g1", "g2"], ["c1"], epmap=["e0", "e1"]),
        call("send_barrier", ["c0", "c1"], ["c2"], endpoints=E, trainer_id=1),
        call("recv", ["c2"], ["p0"], epmap=["e0"], trainer_id=1),
        call("recv", ["c2"], ["p1", "p2"], epmap=["e0", "e1"], trainer_id=1),
        call("fetch_barrier", ["c2"], ["p0", "p1", "p2"], endpoints=E, trainer_id=1),
    )
    assert [(k[0], k[1], k[2]) for k in log[:3]] == [
        ("push", "e0", "g0"), ("push", "e0", "g1"), ("push", "e1", "g2"),
    ]  # fmt: skip
    np.testing.assert_array_equal(log[1][3], Rpc.answer("g1"))
    wanted = [("e0", "p0"), ("e0", "p1"), ("e1", "p2")]
    assert log[3:] == [("register", E, 1), ("exchange", E, wanted, 1)]
    for position, names in ((3, ["p0"]), (4, ["p1", "p2"]), (5, ["p0", "p1", "p2"])):
        for value, name in zip(outs[position], names):
            np.testing.assert_array_equal(value, Rpc.answer(name))


def test_a_barrier_alone_is_an_exchange_too():
    _, log = run(call("send_barrier", [], ["c"], endpoints=E, trainer_id=2))
    assert log == [("exchange", E, [], 2)]


def test_the_first_fetch_has_no_barrier():
    outs, log = run(
        call("recv", [], ["p"], epmap=["e1"], trainer_id=1),
        call("fetch_barrier", [], ["control"], endpoints=E, trainer_id=1),
    )
    assert log == [("register", E, 1), ("exchange", [], [("e1", "p")], 1)]
    assert outs[1][0].size == 0


def test_sends_behind_a_recv_belong_to_the_next_exchange():
    _, log = run(
        call("send", ["a"], ["c"], epmap=["e0"]),
        call("recv", ["c"], ["p"], epmap=["e0"]),
        call("send", ["b"], ["c"], epmap=["e0"]),
        call("recv", ["c"], ["q"], epmap=["e0"]),
    )
    assert [entry[0] for entry in log] == ["push", "exchange"] * 2


def test_one_variable_can_go_to_every_server():
    _, log = run(call("send", ["n"], ["c"], epmap=E))
    assert [(k[1], k[2]) for k in log] == [("e0", "n"), ("e1", "n")]


def test_slices_can_be_cut_while_running():
    """``runtime_split_send_recv``: whole variables here, slices on the wire."""
    cut = call(
        "send", ["g"], ["c"], epmap=E, send_varnames=["g.b0", "g.b1"], sections=[1, 1]
    )
    _, log = run(cut)
    assert [(k[1], k[2], k[3].shape) for k in log] == [
        ("e0", "g.b0", (1, 1)), ("e1", "g.b1", (1, 1)),
    ]  # fmt: skip
    rows = SelectedRows(np.array([3, 0]), np.array([[1.0], [2.0]]), 4)
    cut.inputs[0] = [rows]
    cut.attrs["sections"] = [2, 2]
    _, log = run(cut)
    assert [k[3].rows.tolist() for k in log] == [[0], [1]]
    (values,), log = run(
        call("recv", [], ["p"], epmap=E, recv_varnames=["p.b0", "p.b1"])
    )
    assert log[0][2] == [("e0", "p.b0"), ("e1", "p.b1")]
    np.testing.assert_array_equal(
        values[0], np.concatenate([Rpc.answer("p.b0"), Rpc.answer("p.b1")])
    )


def test_a_half_asynchronous_barrier_waits_for_nobody():
    _, log = run(call("send_barrier", [], ["c"], endpoints=E, half_async=True))
    assert log == [("register", E, 0)]


def test_a_single_op_runs_by_itself():
    rpc = Rpc()
    (value,) = kernels.find("recv").run(
        np, [], ctx=SimpleNamespace(rpc=rpc), names={"Out": ["p"]},
        do_not_run=0, epmap=["e0"], recv_varnames=[], varnames=[], trainer_id=0,
    )  # fmt: skip
    np.testing.assert_array_equal(value, Rpc.answer("p"))


def test_what_does_not_fit():
    with pytest.raises(ValueError, match="2 variables for 3 endpoints"):
        run(call("send", ["a", "b"], ["c"], epmap=["e", "f", "g"]))
    empty = call("send", ["a"], ["c"], epmap=["e"])
    empty.inputs[0] = [None]
    with pytest.raises(ValueError, match="one of a has no value"):
        run(empty)
    with pytest.raises(ValueError, match="recv:"):
        run(call("recv", [], ["a", "b"], epmap=["e"]))


def test_listen_and_serv_hands_names_and_attributes_on():
    seen = []
    context = SimpleNamespace(serve=lambda names, attrs: seen.append((names, attrs)))
    definition = kernels.find("listen_and_serv")
    every = {
        **definition.defaults, "endpoint": "e0", "Fanin": 2, "optimize_blocks": [1],
        "ctx": context, "names": {"X": ["g.trainer_0", "g.trainer_1"]},
    }  # fmt: skip
    definition.run(np, None, **{k: every[k] for k in definition.keywords})
    ((names, attrs),) = seen
    assert names == ["g.trainer_0", "g.trainer_1"]
    assert (attrs["endpoint"], attrs["Fanin"]) == ("e0", 2)
    assert attrs["optimize_blocks"] == [1]
