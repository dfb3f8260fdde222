"""Scopes: names bound to values, nested."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from fluidx.kernels import SelectedRows

from .lod_tensor import Cell, LoDTensor
from .selected_rows import HeldRows

__all__ = ["Scope", "ScopeVar", "global_scope", "scope_guard"]


class ScopeVar(Cell):
    """A named place for a value in a scope (``core.Variable``)."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def get_tensor(self) -> LoDTensor:
        """The value as a tensor; setting it sets the variable."""
        if isinstance(self.value, SelectedRows):
            raise TypeError(f"{self.name} holds SelectedRows: use get_selected_rows()")
        if self.value.__class__ in (int, float):
            raise TypeError(f"{self.name} holds one number: use get_int, get_float")
        return LoDTensor(cell=self)

    def get_selected_rows(self) -> HeldRows:
        """The value as selected rows; setting them sets the variable."""
        if self.value is not None and not isinstance(self.value, SelectedRows):
            raise TypeError(f"{self.name} holds no SelectedRows")
        return HeldRows(cell=self)

    def get_lod_tensor_array(self) -> list[Any]:
        if self.value is None:
            self.value = []
        return self.value  # type: ignore[no-any-return]

    get_fetch_list = get_lod_tensor_array

    # ------------------------------------------------ single numbers

    def is_int(self) -> bool:
        """Whether `set_int` has set it."""
        return self.value.__class__ is int

    def is_float(self) -> bool:
        return self.value.__class__ is float

    def set_int(self, value: int) -> None:
        """Hold one number, outside of any tensor. TypeError: it holds another kind."""
        self._check_kind(int)
        if not isinstance(value, (int, np.integer)):
            raise TypeError(f"{self.name}: set_int takes an integer, got {value!r:.60}")
        self.value = int(value)

    def set_float(self, value: float) -> None:
        """The same, as float32."""
        self._check_kind(float)
        self.value = float(np.float32(value))

    def get_int(self) -> int:
        """The number. TypeError: it holds none."""
        return self._number(int)  # type: ignore[no-any-return]

    def get_float(self) -> float:
        return self._number(float)  # type: ignore[no-any-return]

    def _number(self, kind: type) -> Any:
        if self.value.__class__ is not kind:
            raise TypeError(f"{self.name} holds no {kind.__name__}: {self!r}")
        return self.value

    def _check_kind(self, kind: type) -> None:
        if self.value is not None:
            self._number(kind)

    def __repr__(self) -> str:
        return f"<{self.name} = {self.value!r:.80}>"


class Scope:
    """Variables by name; what a scope lacks, its parent may have (``core.Scope``).

    >>> outer = Scope()
    >>> outer.var("w").value = 3
    >>> outer.new_scope().find_var("w").value
    3
    """

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self._vars: dict[str, ScopeVar] = {}
        self._kids: list[Scope] = []
        # plans remember the holders they found; this tells when to look again
        self._epoch = 0

    def var(self, name: str) -> ScopeVar:
        """The variable of this name in this scope, made if there is none."""
        found = self._vars.get(name)
        if found is None:
            found = self._vars[name] = ScopeVar(name)
            self._epoch += 1
        return found

    def find_var(self, name: str) -> ScopeVar | None:
        """The variable here or in a scope around; None if there is none."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._vars.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def epoch(self) -> int:
        """Changes whenever a name of this scope or one around it is (un)bound."""
        total, scope = 0, self.parent
        while scope is not None:
            total += scope._epoch
            scope = scope.parent
        return total + self._epoch

    def erase(self, names: list[str]) -> None:
        for name in names:
            if self._vars.pop(name, None) is not None:
                self._epoch += 1

    def local_var_names(self) -> list[str]:
        return list(self._vars)

    def new_scope(self) -> Scope:
        """A scope inside this one."""
        kid = Scope(self)
        self._kids.append(kid)
        return kid

    def drop_kids(self) -> None:
        self._kids.clear()


class RunScope(Scope):
    """The variables of one run of a block, gone when the run is over."""

    parent: Scope

    def __init__(self, parent: Scope) -> None:
        super().__init__(parent)
        #: what plans bound to this scope, with its epoch then
        self.bound: dict[Any, tuple[int, Any]] = {}

    def reset(self) -> None:
        """Forget all values; the names stay."""
        for var in self._vars.values():
            var.value = var.lod = None

    def release(self) -> None:
        """Forget everything, and so do the scopes of steps kept in variables.

        They and this scope refer to each other: memory would wait for Python's
        collector of cycles.
        """
        for var in self._vars.values():
            if var.value.__class__ is list:
                for item in var.value:
                    if isinstance(item, RunScope):
                        item.release()
            var.value = var.lod = None
        self._vars.clear()
        self.bound.clear()
        self._epoch += 1


_root = Scope()
# per thread: the roles of an in-process cluster must not see each other's guard
_current: ContextVar[Scope | None] = ContextVar("fluidx_scope", default=None)


def global_scope() -> Scope:
    """The scope that programs run in unless told otherwise."""
    return _current.get() or _root


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Make `scope` the global scope inside (of this thread)."""
    if not isinstance(scope, Scope):
        raise TypeError(f"scope_guard takes a Scope, got {scope.__class__.__name__}")
    token = _current.set(scope)
    try:
        yield
    finally:
        _current.reset(token)
