"""Sixteen little models, with branches, loops and LoD: between both systems.

``little.zip`` holds what the reference saved, ``little_models.json`` how far off its
results were for the models that fluidx saves here.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx.io import ModelFileError

ORACLE = Path(__file__).parents[1] / "golden" / "oracle"
sys.path.insert(0, str(ORACLE))
import little_models  # noqa: E402

sys.path.remove(str(ORACLE))
NAMES = list(little_models.CASES)
CHECKED = json.loads((ORACLE / "little_models.json").read_text())


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("theirs")
    with zipfile.ZipFile(ORACLE / "little.zip") as packed:
        packed.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def ours(tmp_path_factory: Any) -> Path:
    return tmp_path_factory.mktemp("ours")  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", NAMES)
def test_what_the_reference_saved(theirs: Path, name: str) -> None:
    found = little_models.far(fluid, str(theirs), name)
    assert "separate" in found
    assert max(found.values()) < 1e-6


def test_the_reference_loaded_what_is_saved_here() -> None:
    assert sorted(CHECKED) == sorted(NAMES)
    assert len(NAMES) == 16
    assert max(max(v.values()) for v in CHECKED.values()) < 1e-6


def _ops(path: Path) -> Any:
    """Each block's ops: type and variables by slot. Names of targets are numbered
    through all models that a process saves."""
    program = fluid.Program.parse_from_string(path.read_bytes())
    numbered = re.compile(r"(save_infer_model/scale_\d+\.tmp)_\d+")
    shown = []
    for block in program.blocks:
        for op in block.ops:
            slots = [
                {
                    k: sorted(numbered.sub(r"\1", n) for n in v)
                    for k, v in part.items()
                    if v
                }
                for part in (op.inputs, op.outputs)
            ]
            shown.append([block.idx, op.type, *slots])
    return shown


@pytest.mark.parametrize("name", NAMES)
def test_what_is_saved_here_is_what_the_reference_saves(
    theirs: Path, ours: Path, name: str
) -> None:
    """The same parameters, byte for byte, and the same ops."""
    little_models.save(fluid, str(ours), name)
    for path in sorted((theirs / name).rglob("*")):
        if not path.is_file() or path.suffix == ".npz":
            continue
        mine = ours / path.relative_to(theirs)
        if path.name == "__model__":
            assert _ops(mine) == _ops(path)
        else:
            assert mine.read_bytes() == path.read_bytes(), path.name
    assert max(little_models.far(fluid, str(ours), name).values()) == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_model_saved_again(theirs: Path, tmp_path: Path, name: str) -> None:
    """By save_inference_model, save_vars and fluid.save, all from what was loaded."""
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, targets = fluid.io.load_inference_model(
            str(theirs / name / "separate"), exe
        )
        form = str(tmp_path / name / "separate")
        fluid.io.save_inference_model(form, feeds, targets, exe, program)
        some = [v for v in program.list_vars() if fluid.io.is_persistable(v)]
        fluid.io.save_vars(exe, str(tmp_path / "vars"), vars=some)
        if some:
            fluid.io.save_vars(exe, str(tmp_path), vars=some, filename="all")
    shutil.copy(theirs / name / "expected.npz", tmp_path / name)
    assert max(little_models.far(fluid, str(tmp_path), name).values()) < 1e-6
    for var in some:
        kept = (theirs / name / "separate" / var.name).read_bytes()
        assert (tmp_path / "vars" / var.name).read_bytes() == kept
    combined = theirs / name / "params" / "params"
    assert combined.is_file() == bool(some)
    if some:
        assert (tmp_path / "all").read_bytes() == combined.read_bytes()


def test_a_fed_variable_that_is_also_computed(tmp_path: Path) -> None:
    """A loop's variable that is fed: the saved model gives back what is fed, as in the
    reference; here it says so."""
    layers = fluid.layers
    x = fluid.data("x", [2, 3])
    i, n = (layers.fill_constant([1], "int64", v) for v in (0, 4))
    _, y = layers.while_loop(
        lambda i, h: layers.less_than(i, n), lambda i, h: [i + 1, h * 2.0], [i, x]
    )
    exe = fluid.Executor(fluid.CPUPlace())
    with pytest.warns(UserWarning, match="'x' is fed and also computed by op while"):
        fluid.io.save_inference_model(str(tmp_path), ["x"], [y], exe)
    program, _, targets = fluid.io.load_inference_model(str(tmp_path), exe)
    ones = np.ones((2, 3), "f4")
    assert (exe.run(program, {"x": ones}, targets)[0] == ones).all()


def _values() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    kinds = [
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
    ]
    return {f"v_{k}": rng.integers(0, 2, (3, 2)).astype(k) for k in kinds}


@pytest.mark.parametrize("form", ["separate", "combined", "bytes", "state"])
def test_every_dtype(tmp_path: Path, form: str) -> None:
    """Through each form of file, LoD and all."""
    program, values = fluid.Program(), _values()
    for name, value in values.items():
        program.global_block().create_var(
            name=name, shape=[3, 2], dtype=value.dtype, persistable=True, lod_level=1
        )
    exe, lod = fluid.Executor(fluid.CPUPlace()), [[0, 1, 3]]
    with fluid.scope_guard(fluid.Scope()):
        for name, value in values.items():
            var = fluid.global_scope().var(name)
            var.value, var.lod = value, lod
        folder = None if form == "bytes" else str(tmp_path)
        file = "all" if form == "combined" else None
        if form == "state":
            fluid.save(program, str(tmp_path / "m"))
        else:
            file = fluid.io.save_vars(exe, folder, program, filename=file) or file
    with fluid.scope_guard(fluid.Scope()):
        if form == "state":
            found = fluid.io.load_program_state(str(tmp_path / "m"))
            assert {k: v.dtype for k, v in found.items()} == {
                k: v.dtype for k, v in values.items()
            }
            for name, value in values.items():
                np.testing.assert_array_equal(found[name], value)
            return
        fluid.io.load_vars(exe, folder, program, filename=file)
        for name, value in values.items():
            kept = fluid.global_scope().find_var(name)
            assert kept.value.dtype == value.dtype
            np.testing.assert_array_equal(kept.value, value)
            assert kept.lod == lod


class TestComplaints:
    """What is missing or wrong is named, with its path."""

    @pytest.fixture
    def saved(self, theirs: Path, tmp_path: Path) -> Path:
        shutil.copytree(theirs / "feed_forward", tmp_path / "model")
        return tmp_path / "model"

    def _load(self, folder: Path, **names: Any) -> str:
        exe = fluid.Executor(fluid.CPUPlace())
        with (
            fluid.scope_guard(fluid.Scope()),
            pytest.raises(ModelFileError) as caught,
        ):
            fluid.io.load_inference_model(str(folder), exe, **names)
        return f"{caught.type.__name__}: {caught.value}"

    def test_no_folder(self, tmp_path: Path) -> None:
        said = self._load(tmp_path / "none")
        assert said == (
            f"MissingFileError: there is no directory {str(tmp_path / 'none')!r}"
        )

    def test_a_file_in_place_of_a_folder(self, saved: Path) -> None:
        path = saved / "separate" / "w"
        assert f"{str(path)!r} is a file" in self._load(path)

    def test_no_program(self, saved: Path) -> None:
        (saved / "separate" / "__model__").unlink()
        said = self._load(saved / "separate")
        assert said.startswith("MissingFileError: there is no file")
        assert "__model__" in said
        assert "The directory holds: fc_0.b_0, fc_1.b_0, v, w" in said

    def test_no_parameter(self, saved: Path) -> None:
        (saved / "separate" / "w").unlink()
        said = self._load(saved / "separate")
        path = str(saved / "separate" / "w")
        assert f"there is no file {path!r} for variable 'w'" in said

    def test_combined_taken_for_separate(self, saved: Path) -> None:
        said = self._load(saved / "params")
        assert "saved into separate files?" in said

    def test_separate_taken_for_combined(self, saved: Path) -> None:
        said = self._load(saved / "separate", params_filename="params")
        assert "there is no file" in said
        assert "params" in said

    def test_a_parameter_of_another_shape(self, saved: Path) -> None:
        shutil.copy(saved / "separate" / "v", saved / "separate" / "w")
        said = self._load(saved / "separate")
        assert "'w' has shape [4, 3] in the program, but [3, 2] in the file" in said

    def test_a_program_of_a_later_version(self, saved: Path) -> None:
        """It is read, as the reference does, which does not look at the version."""
        path = saved / "separate" / "__model__"
        # field 4 of ProgramDesc, the version; of two the last one counts
        later = bytes([0x08, 0x80, 0x89, 0x7A])  # 2,000,000 as a varint
        path.write_bytes(path.read_bytes() + bytes([0x22, len(later)]) + later)
        exe = fluid.Executor(fluid.CPUPlace())
        with pytest.warns(UserWarning, match=r"saved by Paddle 2\.0"):
            program, *_ = fluid.io.load_inference_model(str(path.parent), exe)
        assert later in program.serialize_to_string()
