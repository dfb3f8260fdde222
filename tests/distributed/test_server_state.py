"""The server's logic alone: events in, actions out, no time but what is given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fluidx.distributed.config import RpcConfig
from fluidx.distributed.serve_spec import ServeSpec
from fluidx.distributed.server_state import (
    Answer,
    Assign,
    Fail,
    Finish,
    Run,
    ServerState,
    Tell,
)
from fluidx.distributed.wire import Kind, Message
from fluidx.kernels import SelectedRows

CONFIG = RpcConfig(deadline=10.0, start_deadline=30.0, drop_grace=1.0)


def spec(fanin=2, mode=0, lr=-1, names=None, blocks=("w@GRAD:1", "b@GRAD:2")):
    order = [1, 2] if lr < 0 else [lr, 1, 2]
    if names is None:
        grads = ["w@GRAD", "b@GRAD"]
        names = [f"{g}.trainer_{t}" for g in grads for t in range(fanin)]
        names = names if mode == 0 else grads
    attrs = {
        "endpoint": "1.2.3.4:5",
        "Fanin": fanin,
        "distributed_mode": mode,
        "optimize_blocks": order,
        "grad_to_block_id": list(blocks),
        "lr_decay_block_id": lr,
    }
    return ServeSpec.from_attrs(names, attrs)


def state(**more):
    return ServerState(spec(**more), CONFIG, started=0.0)


def push(trainer, *values, barrier=True, names=("w",), seq=1, suffix=True):
    named = [
        (f"{n}@GRAD.trainer_{trainer}" if suffix else f"{n}@GRAD", np.array([float(v)]))
        for n, v in values
    ]
    return Message(
        Kind.PUSH, trainer, seq, 0, barrier, list(names) if names else [], named
    )


def told(kind, trainer, text=""):
    return Message(kind, trainer, text=text)


def assigned(actions):
    return {
        a.name: a.value.tolist()
        for a in actions
        if isinstance(a, Assign) and a.value is not None
    }


def kinds(actions):
    return [type(a).__name__ for a in actions if not isinstance(a, Assign)]


def test_a_round_ends_with_the_last_barrier():
    s = state()
    assert s.handle("A", push(0, ("w", 2), ("b", 4)), 1.0) == []
    actions = s.handle("B", push(1, ("w", 6), ("b", 8), seq=5), 2.0)
    assert assigned(actions) == {
        "w@GRAD.trainer_0": [2.0], "w@GRAD.trainer_1": [6.0],
        "b@GRAD.trainer_0": [4.0], "b@GRAD.trainer_1": [8.0],
    }  # fmt: skip
    assert kinds(actions) == ["Run", "Answer", "Answer"]
    assert [a.blocks for a in actions if isinstance(a, Run)] == [[1, 2]]
    answers = [a for a in actions if isinstance(a, Answer)]
    assert [(a.peer, a.question.seq, list(a.names)) for a in answers] == [
        ("A", 1, ["w"]), ("B", 5, ["w"]),
    ]  # fmt: skip
    # the gradients are let go of once they are used
    run = next(i for i, a in enumerate(actions) if isinstance(a, Run))
    assert {a.name for a in actions[run:] if isinstance(a, Assign)} == {
        f"{n}@GRAD.trainer_{t}" for n in "wb" for t in (0, 1)
    }
    assert s.round == 1


def test_gradients_may_come_ahead_of_the_barrier():
    s = state()
    assert s.handle("A", push(0, ("w", 1), barrier=False, names=()), 0.0) == []
    assert s.handle("A", push(0, ("b", 2)), 0.0) == []
    actions = s.handle("B", push(1, ("w", 3), ("b", 4)), 0.0)
    assert assigned(actions)["w@GRAD.trainer_0"] == [1.0]
    assert kinds(actions)[0] == "Run"


def test_the_learning_rate_comes_first():
    s = state(fanin=1, lr=3)
    (run,) = [
        a for a in s.handle("A", push(0, ("w", 1), ("b", 1)), 0.0)
        if isinstance(a, Run)
    ]  # fmt: skip
    assert run.blocks == [3, 1, 2]


@pytest.mark.parametrize("names", [["w@GRAD"], ["w@GRAD.trainer_0"]])
@pytest.mark.parametrize("suffix", [True, False])
def test_one_trainer_with_and_without_a_number(names, suffix):
    s = state(fanin=1, names=names)
    actions = s.handle("A", push(0, ("w", 3), suffix=suffix), 0.0)
    assert assigned(actions) == {names[0]: [3.0]}
    assert kinds(actions) == ["Run", "Answer"]


def test_a_fetch_without_a_round_is_answered_at_once():
    s = state()
    (answer,) = s.handle("A", Message(Kind.PUSH, 0, 9, names=["w", "b"]), 0.0)
    assert isinstance(answer, Answer)
    assert answer.names == ["w", "b"]


def test_rows_are_answered_at_once():
    s = state()
    rows = np.array([1, 2])
    (answer,) = s.handle("A", Message(Kind.LOOKUP, 0, 9, values=[("t", rows)]), 0.0)
    assert [(n, r.tolist()) for n, r in answer.rows] == [("t", [1, 2])]


def test_a_block_without_gradient_does_not_run():
    s = state()
    s.handle("A", push(0, ("w", 1)), 0.0)
    (run,) = [a for a in s.handle("B", push(1, ("w", 1)), 0.0) if isinstance(a, Run)]
    assert run.blocks == [1]


def test_an_early_end_lets_the_others_go_on_with_their_own_average():
    s = state(fanin=3)
    s.handle("A", push(0, ("w", 1)), 0.0)
    s.handle("B", push(1, ("w", 2)), 0.0)
    actions = s.handle("C", told(Kind.COMPLETE, 2), 0.0)
    # the block divides by 3: two contributed, so each counts 3/2
    assert assigned(actions) == {
        "w@GRAD.trainer_0": [1.5], "w@GRAD.trainer_1": [3.0],
    }  # fmt: skip
    assert any(a == Assign("w@GRAD.trainer_2", None) for a in actions)
    assert kinds(actions) == ["Run", "Answer", "Answer"]
    assert s.handle("A", told(Kind.COMPLETE, 0), 0.0) == []
    actions = s.handle("B", push(1, ("w", 2)), 0.0)
    assert assigned(actions) == {"w@GRAD.trainer_1": [6.0]}
    assert s.handle("B", told(Kind.COMPLETE, 1), 0.0) == [Finish()]


def test_sparse_gradients_are_scaled_too():
    s = state()
    rows = SelectedRows(np.array([1]), np.array([[2.0]]), 4)
    s.handle("A", told(Kind.COMPLETE, 0), 0.0)
    message = Message(Kind.PUSH, 1, 1, 0, True, [], [("w@GRAD.trainer_1", rows)])
    (value,) = [
        a.value for a in s.handle("B", message, 0.0)
        if isinstance(a, Assign) and a.value is not None
    ]  # fmt: skip
    assert value.value.tolist() == [[4.0]]
    assert value.rows.tolist() == [1]


def test_asynchronous_gradients_are_applied_as_they_come():
    s = state(mode=2)
    message = push(1, ("w", 1), ("b", 2), barrier=False, suffix=False)
    actions = s.handle("B", message, 0.0)
    assert [type(a).__name__ for a in actions] == [
        "Assign", "Run", "Assign", "Run", "Answer",
    ]  # fmt: skip
    assert actions[1] == Run([1], 1)
    assert actions[3] == Run([2], 1)


def test_asynchronous_steps_of_all_trainers_drive_the_schedule():
    s = state(mode=2, lr=3)
    counters = []
    for trainer in (0, 0, 1):
        name = f"@LR_DECAY_COUNTER@.trainer_{trainer}"
        message = Message(Kind.PUSH, trainer, values=[(name, np.array([1]))])
        actions = s.handle(trainer, message, 0.0)
        assert actions[-1] == Run([3], trainer)
        counters.append(sum(v[0] for v in assigned(actions).values()))
    assert counters == [1, 2, 3]


def test_strangers_are_refused():
    s = state()
    (refusal,) = s.handle("A", told(Kind.HELLO, 2), 0.0)
    assert isinstance(refusal, Tell)
    assert refusal.message.kind is Kind.FAIL
    assert "expects 2 trainers: there is no trainer 2" in refusal.message.text
    s.handle("A", told(Kind.HELLO, 0), 0.0)
    (refusal,) = s.handle("B", told(Kind.HELLO, 0), 0.0)
    assert "another process already is trainer 0" in refusal.message.text
    s.handle("A", told(Kind.COMPLETE, 0), 0.0)
    (refusal,) = s.handle("A", push(0, ("w", 1)), 0.0)
    assert "trainer 0 has already closed" in refusal.message.text


@pytest.mark.parametrize("name", ["x@GRAD.trainer_0", "w@GRAD.trainer_1"])
def test_an_unknown_gradient_fails_the_cluster(name):
    message = Message(Kind.PUSH, 0, values=[(name, np.array([1.0]))])
    (fail,) = state().handle("A", message, 0.0)
    assert isinstance(fail, Fail)
    assert f"no gradient {name}, which trainer 0 sent" in fail.reason


def test_a_trainer_that_gives_up_fails_the_others():
    (fail,) = state().handle("A", told(Kind.ABORT, 0, "lost pserver X"), 0.0)
    assert fail == Fail("trainer 0 gave up: lost pserver X")


# liveness


def reason(actions):
    (fail,) = actions
    assert isinstance(fail, Fail)
    return fail.reason


def test_a_trainer_that_never_comes():
    s = state()
    s.handle("A", told(Kind.HELLO, 0), 29.0)
    assert s.tick(29.9) == []
    assert s.next_timer() == 30.0
    text = reason(s.tick(30.0))
    assert text == "pserver 1.2.3.4:5 waited 30 s for trainer 1, which never appeared"
    assert s.tick(99.0) == []  # it has failed once


def test_a_broken_connection():
    s = state()
    s.handle("A", told(Kind.HELLO, 0), 0.0)
    s.handle("B", told(Kind.HELLO, 1), 0.0)
    assert s.lost("B", 2.0) == []
    assert s.peers() == ["A"]
    assert s.tick(2.9) == []
    text = reason(s.tick(3.0))
    assert text.startswith("trainer 1 died or ended without exe.close()")
    assert "in round 0" in text


def test_a_broken_connection_after_the_end_is_none():
    s = state()
    s.handle("A", told(Kind.HELLO, 0), 0.0)
    s.handle("B", told(Kind.HELLO, 1), 0.0)
    s.lost("B", 2.0)
    assert s.handle("B", told(Kind.COMPLETE, 1), 2.5) == []  # was on its way
    s.handle("A", told(Kind.PING, 0), 4.0)
    assert s.tick(5.0) == []


def test_silence():
    s = state()
    s.handle("A", told(Kind.HELLO, 0), 0.0)
    s.handle("B", told(Kind.HELLO, 1), 0.0)
    s.handle("A", told(Kind.PING, 0), 5.0)
    assert s.next_timer() == 10.0
    text = reason(s.tick(10.0))
    assert (
        text == "pserver 1.2.3.4:5 has heard nothing of trainer 1 for 10 s in round 0"
    )


def test_a_live_trainer_that_does_not_come_to_the_barrier():
    s = state()
    s.handle("A", told(Kind.HELLO, 0), 0.0)
    s.handle("B", told(Kind.HELLO, 1), 0.0)
    s.handle("A", push(0, ("w", 1)), 1.0)
    for now in range(2, 11):
        s.handle("A", told(Kind.PING, 0), now)
        s.handle("B", told(Kind.PING, 1), now)
        assert s.tick(now) == []
    text = reason(s.tick(11.0))
    assert text == (
        "pserver 1.2.3.4:5 waited 10 s for the gradients of trainer 1 in round 0"
    )


def test_configuration_from_the_environment():
    assert RpcConfig.from_env({}) == RpcConfig()
    assert RpcConfig().deadline == 180.0
    assert RpcConfig.from_env({"FLAGS_rpc_deadline": "5000"}).deadline == 5.0
    both = {"FLAGS_rpc_deadline": "5000", "FLUIDX_RPC_DEADLINE": "7"}
    assert RpcConfig.from_env(both).deadline == 7.0
    assert RpcConfig.from_env({"FLUIDX_CHUNK_BYTES": "64"}).limits.chunk == 64
    for bad in ("soon", "0", "-3"):
        with pytest.raises(ValueError, match="a number above 0"):
            RpcConfig.from_env({"FLUIDX_HEARTBEAT": bad})


def test_a_gradient_is_applied_at_the_rate_of_its_own_step():
    s = state(mode=2, lr=3)
    counter = ("@LR_DECAY_COUNTER@.trainer_0", np.array([1]))
    message = push(0, ("w", 5), names=(), barrier=False, suffix=False)
    message.values.append(counter)  # trainers send it last
    runs = [a.blocks for a in s.handle("A", message, 0.0) if isinstance(a, Run)]
    assert runs == [[3], [1]]


def test_a_rate_without_a_counter_is_computed_once():
    s = state(mode=2, lr=3)
    message = push(0, ("w", 5), names=(), barrier=False, suffix=False)
    for wanted in ([[3], [1]], [[1]]):
        runs = [a.blocks for a in s.handle("A", message, 0.0) if isinstance(a, Run)]
        assert runs == wanted


# completely_not_async: in step, without barriers


def test_what_a_trainer_says_after_its_round_is_heard_when_all_have_ended_it():
    s = state()
    ended = push(0, ("w", 2), ("b", 4), barrier=False, names=(), seq=3)
    ended.ends = True
    assert s.handle("A", ended, 1.0) == []
    rows = [("w", np.array([0]))]
    assert s.handle("A", Message(Kind.LOOKUP, 0, 4, values=rows), 1.1) == []
    assert s.handle("A", Message(Kind.PING, 0), 1.2) == []
    assert s.handle("A", told(Kind.COMPLETE, 0), 1.3) == []
    other = push(1, ("w", 6), ("b", 8), barrier=False, names=("w",), seq=5)
    other.ends = True
    actions = s.handle("B", other, 2.0)
    assert kinds(actions) == ["Run", "Answer", "Answer"]
    assert [a.question.seq for a in actions if isinstance(a, Answer)] == [5, 4]
    assert s.trainers[0].done
    assert kinds(s.handle("B", told(Kind.COMPLETE, 1), 3.0)) == ["Finish"]


def test_steps_that_trainers_tell_count_once_per_round():
    s = ServerState(replace(spec(lr=3), lr_start=-1), CONFIG, started=0.0)
    for number in range(2):
        actions = []
        for trainer, peer in enumerate("AB"):
            message = push(trainer, ("w", 1), ("b", 1), barrier=False)
            counter = f"@LR_DECAY_COUNTER@.trainer_{trainer}"
            message.values.append((counter, np.array([1])))
            message.ends = True
            actions = s.handle(peer, message, 1.0)
        counts = {n: v for n, v in assigned(actions).items() if "COUNTER" in n}
        assert counts["@LR_DECAY_COUNTER@.trainer_0"] == [number]
        assert counts["@LR_DECAY_COUNTER@.trainer_1"] == [0]


def test_geo_takes_differences_by_their_blocks():
    made = spec(mode=3, names=[], blocks=["w.delta:1", "b.delta:2"])
    s = ServerState(made, CONFIG, started=0.0)
    message = Message(Kind.PUSH, 1, 2, names=["w"], values=[("w.delta", np.ones(1))])
    actions = s.handle("B", message, 1.0)
    assert assigned(actions) == {"w.delta": [1.0]}
    assert kinds(actions) == ["Run", "Answer"]
