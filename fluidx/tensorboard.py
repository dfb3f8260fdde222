"""Scalars for TensorBoard, through the package tensorboardX (extra ``tensorboard``).

tensorboardX writes the event files and needs only numpy and protobuf; the viewer is
``pip install tensorboard`` on whichever machine looks at them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np

from fluidx.ir.errors import EnforceNotMet

__all__ = ["ScalarWriter"]


class ScalarWriter:
    """Writes fetched values of one element, step by step, into a folder.

    Close it, or use it in a ``with`` block: what was added may be in memory until then.
    EnforceNotMet: tensorboardX is not installed. ::

        with ScalarWriter("runs/first") as writer:
            (loss,) = exe.run(feed=feed, fetch_list=[cost])
            writer.add(step, {"loss": loss, "rate": 0.1})
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise EnforceNotMet(
                "ScalarWriter needs the package tensorboardX: "
                "pip install 'fluidx[tensorboard]'"
            ) from None
        self._writer: Any = SummaryWriter(os.fspath(folder))

    def add(self, step: int, values: Mapping[str, Any]) -> None:
        """Add the values of a step: name -> number or array of one element.

        ValueError: a value has more elements, or none; then nothing is added.
        """
        numbers = {}
        for name, value in values.items():
            array = np.asarray(value)
            if array.size != 1:
                shape = list(array.shape)
                raise ValueError(f"{name}: one element is needed, got {shape}")
            numbers[name] = float(array.reshape(()))
        for name, number in numbers.items():
            self._writer.add_scalar(name, number, int(step))

    def close(self) -> None:
        """Write out what is left; may be called again."""
        self._writer.close()

    def __enter__(self) -> ScalarWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
