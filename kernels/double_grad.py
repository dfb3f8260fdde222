"""Gradients of gradient ops, for those gradients that have one in the reference.

Slots are named after what they hold: ``DX`` is the gradient of X, ``DDX`` the gradient
that arrives for that one, ``DDOut`` the gradient of the output gradient. An absent
``DDX`` counts as zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .activation import relu
from .arrays import sum_to
from .elementwise import aligned
from .grad import EMPTY, GRAD, GradContext, OpSpec
from .infer import InferContext
from .registry import OpDef, find_declared, op
from .schema import In, Out

__all__ = ["declare_double"]
