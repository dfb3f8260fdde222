"""Recurrent and CRF layers: their programs are the reference's; what they refuse."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import fluidx
from fluidx import layers

ORACLE = Path(__file__).parents[1] / "golden" / "oracle"
sys.path.insert(0, str(ORACLE))
import layers as oracle  # noqa: E402
import rnn_layers  # noqa: E402
from compact import compact  # noqa: E402

sys.path.remove(str(ORACLE))

GOLDEN = json.loads((ORACLE / "rnn_layers.json").read_text())


def test_all_cases_are_recorded() -> None:
    assert sorted(GOLDEN) == sorted(rnn_layers.cases())


@pytest.mark.parametrize("case", sorted(GOLDEN))
def test_programs_equal_the_reference(case: str) -> None:
    made = oracle.build(fluidx, rnn_layers.cases()[case])
    for role in ("main", "startup"):
        mine = json.loads(json.dumps(compact(made[role])))
        theirs = GOLDEN[case][role]
        assert len(mine) == len(theirs)
        for block, wanted in zip(mine, theirs):
            assert block[0] == wanted[0]
            assert block[1] == wanted[1]


def _x(width: int = 8):
    return fluidx.data("x", [None, width], lod_level=1)


def _h(width: int = 2):
    return fluidx.data("h", [None, width])


WRONG = {
    "size must be a positive multiple of 4": lambda: layers.dynamic_lstm(_x(), 7),
    "cannot be False": lambda: layers.dynamic_lstm(_x(), 8, bias_attr=False),
    "both of h_0 and c_0": lambda: layers.dynamic_lstm(_x(), 8, h_0=_h()),
    "gate_activation.*foo": lambda: layers.dynamic_lstm(_x(), 8, gate_activation="foo"),
    "Input is 8 wide, Weight 12": lambda: layers.dynamic_lstm(_x(), 12),
    "proj_size must be positive": lambda: layers.dynamic_lstmp(_x(), 8, 0),
    "Input is 8 wide, Weight 9": lambda: layers.dynamic_gru(_x(), 3),
    "Input is 8 wide, Weight 6": lambda: layers.gru_unit(_x(), _h(), 6),
    "equally wide": lambda: layers.lstm_unit(_x(), _h(), fluidx.data("c", [None, 3])),
    "nope": lambda: layers.crf_decoding(_x(), fluidx.ParamAttr(name="nope")),
}


@pytest.mark.parametrize("told", WRONG)
def test_wrong_arguments(told: str) -> None:
    with (
        fluidx.program_guard(fluidx.Program(), fluidx.Program()),
        pytest.raises((ValueError, TypeError), match=told),
    ):
        WRONG[told]()


def test_tagging_learns_and_decodes() -> None:
    """A CRF over an LSTM learns that tags alternate, which the words do not say."""
    with fluidx.program_guard(fluidx.Program(), fluidx.Program()):
        word = fluidx.data("word", [None, 1], "int64", lod_level=1)
        tag = fluidx.data("tag", [None, 1], "int64", lod_level=1)
        gates = layers.fc(layers.embedding(word, [4, 8]), 4 * 8)
        hidden, _ = layers.dynamic_lstm(gates, 4 * 8)
        scores = layers.fc(hidden, 2)
        attr = fluidx.ParamAttr(name="crfw")
        cost = layers.mean(layers.linear_chain_crf(scores, tag, attr))
        hits = layers.crf_decoding(scores, attr, label=tag)
        fluidx.optimizer.Adam(0.05).minimize(cost)
        exe = fluidx.Executor(fluidx.CPUPlace())
        exe.run(fluidx.default_startup_program())
        rng = np.random.RandomState(0)
        lengths = [[5, 1, 7, 3]]
        rows = sum(lengths[0])
        tags = np.concatenate([np.arange(n) % 2 for n in lengths[0]])[:, None]
        costs = []
        for _ in range(60):
            words = rng.randint(0, 4, (rows, 1))
            feed = {
                "word": fluidx.create_lod_tensor(words, lengths, exe.place),
                "tag": fluidx.create_lod_tensor(tags, lengths, exe.place),
            }
            got = exe.run(feed=feed, fetch_list=[cost, hits], return_numpy=False)
            costs.append(float(np.array(got[0])[0]))
    assert costs[0] > 1.0
    assert costs[-1] < 0.2
    assert np.array(got[1]).all()
    assert got[1].recursive_sequence_lengths() == lengths
