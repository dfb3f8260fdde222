"""Files of samples."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest

from fluidx.dataset import common, samples
from fluidx.io.errors import ModelFileError

SAMPLES: Any = [
    (np.arange(6, dtype="float32").reshape(2, 3), 7),
    {"words": ["a", "b"], 3: None, "pair": (1.5, True)},
    (b"\0\xff", np.float64(0.25), np.zeros([0, 2], "int64")),
    "text",
]


def through(value: Any) -> Any:
    file = io.BytesIO()
    samples.dump(value, file)
    return samples.load(io.BytesIO(file.getvalue()))


def same(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    if isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted):
            same(one, other)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        same(list(found.values()), list(wanted.values()))
    else:
        assert found == wanted


def test_what_is_written_is_read() -> None:
    same(through(SAMPLES), SAMPLES)


def test_the_reference_s_files_are_read() -> None:
    given = [(np.arange(3.0), 7), ["a", 2.5]]
    same(samples.load(io.BytesIO(pickle.dumps(given, protocol=2))), given)


def test_nothing_runs_that_a_file_says() -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return print, ("run",)

    with pytest.raises(ModelFileError):
        samples.load(io.BytesIO(pickle.dumps([Evil()])))


@pytest.mark.parametrize("value", [object(), [1 + 2j], {"x": np.array([None])}])
def test_what_no_file_holds(value: Any) -> None:
    with pytest.raises(TypeError, match="numbers, strings, bytes, arrays"):
        samples.dump(value, io.BytesIO())


def test_a_damaged_file() -> None:
    file = io.BytesIO()
    samples.dump(SAMPLES, file)
    with pytest.raises(ValueError, match="a damaged file of samples"):
        samples.load(io.BytesIO(file.getvalue()[:200]))


def test_pickle_as_scripts_give_it(tmp_path: Any) -> None:
    path = str(tmp_path / "%d.pickle")
    common.split(lambda: iter("abc"), 5, path, pickle.dump)
    assert pickle.loads((tmp_path / "0.pickle").read_bytes()) == ["a", "b", "c"]
    for loader in (samples.load, pickle.load):
        read = common.cluster_files_reader(str(tmp_path / "*"), 1, 0, loader)
        assert list(read()) == ["a", "b", "c"]
