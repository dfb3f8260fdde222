"""Damaged files of every kind: always one clean error, never more memory than bytes."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fluidx as fluid
from fluidx import io
from fluidx.io import ModelFileError
from fluidx.io.inference import feeds_and_fetches, parse_program
from fluidx.io.outline import outline
from fluidx.io.safetensors import load_file, save_file
from fluidx.io.tensors import read_all
from fluidx.io.unpickle import loads
from fluidx.kernels import VarType

MODELS = Path(__file__).parents[1] / "golden" / "models"
STREAMS = MODELS / "streams"
INTERESTING = (0, 1, 127, 128, 255)


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with one to four damages: flipped, set, cut, repeated, inserted."""
    made = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        kind = rng.integers(0, 7)
        at = int(rng.integers(0, max(1, len(made))))
        if kind == 0 and made:
            made[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1 and made:
            made[at] = int(rng.choice(INTERESTING))
        elif kind == 2:
            del made[at:]
        elif kind == 3:
            del made[at : at + int(rng.integers(1, 9))]
        elif kind == 4:
            made[at:at] = rng.bytes(int(rng.integers(1, 9)))
        elif kind == 5:
            made[at : at + 8] = b"\xff" * 8
        else:
            made[at:at] = made[at : at + int(rng.integers(1, 65))]
    return bytes(made)


def read_tensor(data: bytes) -> None:
    read_all(data, "file", [("x", VarType.LOD_TENSOR)])


def read_rows(data: bytes) -> None:
    read_all(data, "file", [("x", VarType.SELECTED_ROWS)])


def read_combined(data: bytes) -> None:
    read_all(data, "file", [(n, VarType.LOD_TENSOR) for n in "abc"])


def read_program(data: bytes) -> None:
    program = parse_program(data, "file")
    feeds_and_fetches(program)
    program.serialize_to_string()


Target = tuple[bytes, Callable[[bytes], object]]
TARGETS: dict[str, Target] = {
    "tensor": ((STREAMS / "two_levels").read_bytes(), read_tensor),
    "rows": ((STREAMS / "rows").read_bytes(), read_rows),
    "combined": ((STREAMS / "combined").read_bytes(), read_combined),
    "pdparams": ((MODELS / "mlp/ckpt/model.pdparams").read_bytes(), loads),
    "pdopt": ((MODELS / "lenet/ckpt/model.pdopt").read_bytes(), loads),
    "program": ((MODELS / "mlp/infer_separate/__model__").read_bytes(), read_program),
}


def attack(name: str, rounds: int, seed: int) -> int:
    """Read so many mutations; returns how many were refused."""
    data, read = TARGETS[name]
    rng = np.random.default_rng([seed, *name.encode()])
    refused = 0
    for _ in range(rounds):
        try:
            read(mutated(data, rng))
        except ModelFileError:
            refused += 1
    return refused


@pytest.mark.parametrize("name", TARGETS)
def test_mutations(name):
    read = TARGETS[name][1]
    read(TARGETS[name][0])
    rounds = 60
    refused = attack(name, rounds, seed=1)
    # the elements themselves may be damaged unseen
    assert 0.3 * rounds < refused <= rounds


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_ten_thousand_mutations(name):
    rounds = 1200 if name == "program" else 2200
    assert sum(1200 if n == "program" else 2200 for n in TARGETS) >= 10_000
    assert attack(name, rounds, seed=2) > 0.3 * rounds


@pytest.mark.parametrize("name", TARGETS)
def test_memory_stays_near_the_size_of_the_file(name):
    data, read = TARGETS[name]
    rng = np.random.default_rng(3)
    read(data)
    tracemalloc.start()
    try:
        for _ in range(40):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            with contextlib.suppress(ModelFileError):
                read(mutated(data, rng))
            peak = tracemalloc.get_traced_memory()[1] - before
            assert peak < 100 * len(data) + 500_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("cut", [0.0, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("name", TARGETS)
def test_cut_off(name, cut):
    data, read = TARGETS[name]
    with pytest.raises(ModelFileError):
        read(data[: int(len(data) * cut)])


def test_safetensors_mutations(tmp_path):
    path = tmp_path / "x"
    arrays = {"w": np.ones((2, 3), "f4"), "b": np.arange(3), "half": np.ones(1, "f2")}
    save_file(arrays, path, {"format": "np"})
    data = path.read_bytes()
    rng = np.random.default_rng(4)
    refused = 0
    for _ in range(150):
        path.write_bytes(mutated(data, rng))
        try:
            load_file(path)
        except ModelFileError:
            refused += 1
    assert refused > 50


def test_whole_models(tmp_path):
    """Loading and looking at a folder with one damaged file."""
    source = MODELS / "mlp" / "infer_separate"
    files = {p.name: p.read_bytes() for p in source.iterdir()}
    exe = fluid.Executor(fluid.CPUPlace())
    rng = np.random.default_rng(5)
    refused = 0
    for round in range(60):
        name = sorted(files)[round % len(files)]
        for n, data in files.items():
            (tmp_path / n).write_bytes(mutated(data, rng) if n == name else data)
        for look in (
            lambda: io.load_inference_model(str(tmp_path), exe),
            lambda: outline(str(tmp_path)),
        ):
            try:
                look()
            except ModelFileError:
                refused += 1
    assert refused > 20
