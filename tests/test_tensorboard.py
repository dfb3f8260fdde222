"""Scalars are read back from the event file, by its own format.

In a process of its own: tensorboardX imports PyTorch wherever that is installed.
"""

from __future__ import annotations

import importlib.util
import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fluidx.ir.errors import EnforceNotMet
from fluidx.tensorboard import ScalarWriter

needs_writer = pytest.mark.skipif(
    importlib.util.find_spec("tensorboardX") is None,
    reason="the extra tensorboard is not installed",
)


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


def write(folder: Path) -> str:
    """Two steps, and one that is refused as a whole; returns why."""
    with ScalarWriter(folder) as writer:
        writer.add(0, {"loss": np.array([0.5], "float32"), "rate": 0.25})
        writer.add(3, {"loss": np.float32(0.125)})
        try:
            writer.add(4, {"rate": 0.25, "loss": np.zeros(2)})
        except ValueError as error:
            return str(error)
    return ""


@needs_writer
def test_scalars_of_steps(tmp_path: Path):
    output = subprocess.check_output(
        [sys.executable, __file__, str(tmp_path)], text=True, timeout=120
    )
    found, refused = json.loads(output)
    assert found == [["loss", 0, 0.5], ["rate", 0, 0.25], ["loss", 3, 0.125]]
    assert refused == "loss: one element is needed, got [2]"


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(EnforceNotMet, match=r"pip install 'fluidx\[tensorboard\]'"):
        ScalarWriter(tmp_path)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    reason = write(target)
    print(json.dumps([scalars(target), reason]))
