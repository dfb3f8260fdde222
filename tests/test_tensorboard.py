"""Scalars are read back from the event file, by its own format."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from fluidx.tensorboard import ScalarWriter

pytest.importorskip("tensorboardX", reason="the extra tensorboard is not installed")


def scalars(folder: Path) -> list[tuple[str, int, float]]:
    """(name, step, value) of every scalar: records are length, crc, event, crc."""
    from tensorboardX.proto.event_pb2 import Event

    (file,) = folder.glob("events.out.tfevents.*")
    data, found = file.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        event = Event.FromString(data[12 : 12 + length])
        found += [(v.tag, event.step, v.simple_value) for v in event.summary.value]
        data = data[16 + length :]
    return found


def test_scalars_of_steps(tmp_path: Path):
    with ScalarWriter(tmp_path) as writer:
        writer.add(0, {"loss": np.array([0.5], "float32"), "rate": 0.25})
        writer.add(3, {"loss": np.float32(0.125)})
    expected = [("loss", 0, 0.5), ("rate", 0, 0.25), ("loss", 3, 0.125)]
    assert scalars(tmp_path) == expected


def test_more_than_one_element(tmp_path: Path):
    with (
        ScalarWriter(tmp_path) as writer,
        pytest.raises(ValueError, match=r"loss: one element is needed, got \[2\]"),
    ):
        writer.add(0, {"rate": 0.25, "loss": np.zeros(2)})
    assert scalars(tmp_path) == []
