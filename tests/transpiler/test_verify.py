"""`verify` proves what is right and refutes everything that is broken."""

from __future__ import annotations

import pytest
import transpiler_goldens as goldens
from transpiler_mutations import mutations

from fluidx.ir import Where
from fluidx.transpiler import TranspileError, VerificationError, verify
from fluidx.transpiler.verify import problems

# one of each mode; two trainers, so that the set is whole
BROKEN = [
    "fc_regression--pserver-sync-2",
    "emb_sparse--pserver-sync-3",
    "mlp_softmax--pserver-async-2",
    "lr_exponential_adagrad--pserver-async-2-runtime-split",
    "fc_regression--pserver-half-async-2",
    "fc_regression--pserver-completely-not-async-2",
    "clip_by_optimizer--pserver-sync-2",
    "fc_regression--geo-2",
    "mlp_softmax--class-grad-allreduce-2",
    "fc_regression--collective-local-sgd",
    "mlp_softmax--nccl2-two-comms",
]


def _complete(pair: str) -> bool:
    """Trainers 0 and 1 are in the set; with more of them it is not whole."""
    return bool(goldens.configs.CONFIGS[pair.split("--")[1]]["trainers"] <= 2)


@pytest.mark.parametrize("pair", goldens.pairs() + goldens.pairs("more"))
def test_no_false_alarm(pair: str) -> None:
    if pair != "emb_dist_two--pserver-sync-2":
        programs = goldens.transpiled(*pair.split("--"))
        assert problems(programs, _complete(pair)) == []
    wanted = goldens.golden(pair)
    if pair in goldens.EXCEPTIONS and goldens.EXCEPTIONS[pair]["kind"] != "doubtful":
        return  # the reference refuses, or makes what cannot run
    assert problems(goldens.loaded(wanted), _complete(pair)) == []


@pytest.mark.parametrize("pair", BROKEN)
def test_every_corruption_is_found(pair: str) -> None:
    whole = goldens.transpiled(*pair.split("--"))
    missed, broken = [], list(mutations(whole))
    for name, act in broken:
        programs = {
            role: {kind: program.clone() for kind, program in both.items()}
            for role, both in whole.items()
        }
        act(programs)
        if not problems(programs):
            missed.append(name)
    assert missed == []
    assert len(broken) >= 5


def test_there_are_many_corruptions() -> None:
    sets = [goldens.transpiled(*pair.split("--")) for pair in BROKEN]
    assert sum(len(list(mutations(s))) for s in sets) >= 400


@pytest.mark.parametrize(
    "pair", ["clip_by_optimizer--pserver-sync-2", "opt_adadelta--pserver-sync-2"]
)
def test_what_the_reference_makes_wrong_is_refuted(pair: str) -> None:
    assert problems(goldens.loaded(goldens.golden(pair)))


def test_one_trainer_of_the_reference_is_refuted() -> None:
    pair = "mlp_softmax--pserver-sync-2-one-trainer"
    found = problems(goldens.loaded(goldens.golden(pair)))
    assert any("waits for" in p.message for p in found)


def test_says_what_was_proved() -> None:
    proof = verify(goldens.transpiled("fc_regression", "pserver-sync-2"))
    # 5 slices each way, for two trainers
    assert str(proof) == "2 trainers, 2 servers, 20 messages per step"


def test_error_names_both_sides_and_the_line() -> None:
    programs = goldens.transpiled("fc_regression", "pserver-sync-2")
    block = programs["trainer-0"]["main"].global_block()
    send = next(op for op in block.ops if op.type == "send")
    send.where = Where("train.py", 12, "net")
    send.attrs["epmap"] = ["127.0.0.1:6174"]
    with pytest.raises(VerificationError) as caught:
        verify(programs)
    text = str(caught.value)
    assert "fc_1.b_0@GRAD.trainer_0 is sent to 127.0.0.1:6174" in text
    assert "trainer-0 main, op send" in text
    assert "train.py:12 in net" in text
    assert "pserver-0 main, op listen_and_serv" in text
    assert caught.value.problems[0].kind == "send"


def test_an_incomplete_set_needs_all_servers() -> None:
    programs = goldens.transpiled("fc_regression", "pserver-sync-2")
    del programs["trainer-1"]
    assert problems(programs, complete=False) == []
    assert problems(programs)
    del programs["pserver-1"]
    assert problems(programs, complete=False)


def test_no_programs() -> None:
    with pytest.raises(TranspileError, match="no programs"):
        verify({})
    with pytest.raises(TranspileError, match="role a has no main program"):
        verify({"a": {}})
