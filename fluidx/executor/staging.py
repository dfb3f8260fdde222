"""Double buffering: while a step runs on a GPU, the next batch is copied to it."""

from __future__ import annotations

from typing import Any

from fluidx.dataloader import queue
from fluidx.dataloader.queue import Source
from fluidx.tensor import CUDAPlace, LoDTensor, Place
from fluidx.tensor.lod_tensor import Cell

from . import cuda

__all__ = ["Staged", "staged"]


def staged(source: Source, place: Place) -> Source:
    """The same batches, on the GPU of a CUDAPlace; elsewhere, the source itself."""
    if not isinstance(place, CUDAPlace) or cuda.device_count() <= place.device_id:
        return source
    return Staged(source, place)


class Staged:
    """Gives batches on a device. Mirrors the reference's ``BufferedReader``.

    One batch is under way to the device while another is used. It is only taken early
    where it waits already, so that no step is held up by the batch after it.
    """

    def __init__(self, source: Source, place: CUDAPlace) -> None:
        cuda.array_module(place)  # makes the device current
        self._source = source
        self._side = cuda.SideStream()
        self._next: tuple[list[LoDTensor], Any] | Exception | None = None

    def take(self) -> list[LoDTensor]:
        """The next batch; Closed at the end, or what the reader raised."""
        ready = self._begin() if self._next is None else self._next
        self._next = None
        if isinstance(ready, Exception):
            raise ready
        tensors, done = ready
        if self._source.waiting():
            self._next = self._begin()
        self._side.meet(done)
        return tensors

    def _begin(self) -> tuple[list[LoDTensor], Any] | Exception:
        try:
            tensors = self._source.take()
        except Exception as error:
            return error
        arrays, done = self._side.send([t.value for t in tensors])
        lods = [t._cell.lod for t in tensors]
        made = [LoDTensor(cell=Cell(a, lod)) for a, lod in zip(arrays, lods)]
        return made, done

    def waiting(self) -> int:
        return self._source.waiting() + (self._next is not None)

    def close(self) -> None:
        self._next = None
        self._source.close()


queue.stage = staged
