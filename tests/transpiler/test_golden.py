"""Every role of every pair equals what the reference makes, op for op."""

from __future__ import annotations

import pytest
import transpiler_goldens as goldens
from golden.transpiler import compare

from fluidx.ir import Program

# the reference's programs run, or were never run; ours equal them
EQUAL = [
    p
    for p in goldens.pairs()
    if goldens.EXCEPTIONS.get(p, {}).get("kind") in (None, "doubtful")
]
OWN = sorted(set(goldens.pairs()) - set(EQUAL) - {"emb_dist_two--pserver-sync-2"})


def test_every_golden_is_there() -> None:
    assert len(goldens.pairs()) == 123
    assert len(goldens.pairs("more")) == 39
    assert len(EQUAL) == 102


@pytest.mark.parametrize("pair", EQUAL + goldens.pairs("more"))
def test_equals_the_reference(pair: str) -> None:
    assert goldens.differences(*pair.split("--")) == []


@pytest.mark.parametrize("pair", OWN)
def test_where_the_reference_fails_programs_are_made(pair: str) -> None:
    for both in goldens.transpiled(*pair.split("--")).values():
        for program in both.values():
            assert program.global_block().ops


@pytest.mark.parametrize("pair", ["fc_regression--pserver-sync-2", "word2vec--geo-2"])
def test_the_comparison_sees_damage(pair: str) -> None:
    assert compare.self_check(goldens.golden(pair)) == []


def test_a_dump_becomes_the_program_it_was_made_of() -> None:
    for name in ("cond_net", "static_rnn", "while_net", "ctr_dnn"):
        facts = goldens.golden(f"local/{name}")
        for kind in ("main", "startup"):
            program = goldens.load(facts[kind])
            assert isinstance(program, Program)
            assert compare.compare(facts[kind], goldens.dump.dump(program)) == []
