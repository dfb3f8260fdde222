"""One rule per op type: how it is written in ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fluidx.ir import Operator

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["RULES", "Rule", "rule"]

#: writes one op into the graph; raises `Unsupported` where ONNX has no equal
Rule = Callable[["Graph", Operator], None]
RULES: dict[str, Rule] = {}


def rule(*types: str) -> Callable[[Rule], Rule]:
    """Register a rule for these op types."""

    def register(function: Rule) -> Rule:
        for type in types:
            if type in RULES:
                raise ValueError(f"two ONNX rules for {type}")
            RULES[type] = function
        return function

    return register
