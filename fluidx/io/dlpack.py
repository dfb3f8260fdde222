"""Tensors to and from other frameworks without a copy, through DLPack.

What `Executor.run` returns are numpy (or CuPy) arrays, which speak DLPack themselves:
``torch.from_dlpack(fetched)``. An executor takes whatever speaks it as a feed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidx.tensor import LoDTensor

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: LoDTensor) -> Any:
    """A DLPack capsule over the tensor's memory, to be taken up once.

    ValueError: it holds no value. Mirrors ``LoDTensor._to_dlpack``.
    """
    if tensor.value is None:
        raise ValueError("this LoDTensor holds no value yet")
    return tensor.value.__dlpack__()


def from_dlpack(source: Any) -> LoDTensor:
    """A LoDTensor over the memory of a tensor on the CPU that speaks DLPack.

    TypeError: it does not. Mirrors ``core.from_dlpack``.
    """
    if not hasattr(source, "__dlpack__"):
        raise TypeError(
            f"from_dlpack takes a tensor that has __dlpack__, got "
            f"{source.__class__.__name__}"
        )
    return LoDTensor(np.from_dlpack(source))
