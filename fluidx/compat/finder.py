"""The import hook: ``import paddle...`` finds the modules of fluidx."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

from .inner_names import answer
from .names import ABSENT, absent, real_name
from .submodules import layers_module

__all__ = ["AbsentFinder", "Finder"]


class Finder(MetaPathFinder):
    """Finds ``paddle`` and all below it."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "paddle":
            return None
        return ModuleSpec(fullname, _Alias(fullname))


class AbsentFinder(MetaPathFinder):
    """Last of all finders: says why ``from paddle.fluid import dygraph`` fails."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package != "fluidx" or rest not in ABSENT:
            return None
        raise _missing(f"paddle.fluid.{rest}")


class _Alias(Loader):
    """Puts the module of fluidx under its other name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # the import system takes what stands in sys.modules afterwards
        sys.modules[self.name] = find_module(self.name)

    def get_code(self, name: str) -> CodeType:
        """For ``python -m paddle.distributed.launch``: runs the module behind it."""
        real = real_name(name)
        if importlib.util.find_spec(real) is None:
            raise _missing(name)
        source = f"import runpy\nrunpy.run_module({real!r}, None, '__main__', True)"
        return compile(source, f"<{name}>", "exec")


def find_module(name: str) -> ModuleType:
    """The module that a name of ``paddle`` stands for.

    ModuleNotFoundError: fluidx has no such module; it says why if that is known.
    """
    real = real_name(name)
    made = layers_module(real)
    if made is not None:
        return answer(made)
    try:
        found = importlib.import_module(real)
    except ModuleNotFoundError as error:
        # not there, or something that it needs is not installed
        lacking = (error.name or "?").replace("paddle.fluid.", "fluidx.")
        if f"{real}.".startswith(f"{lacking}."):
            raise _missing(name) from None
        raise
    if name == "paddle.dataset":
        # the import has put it where fluid.dataset is looked for
        importlib.import_module("fluidx").__dict__.pop("dataset", None)
    return answer(found)


def _missing(name: str) -> ModuleNotFoundError:
    why = absent(name.removeprefix("paddle.").removeprefix("fluid."))
    return ModuleNotFoundError(f"fluidx has no module {name!r}{why}", name=name)


def attribute(owner: str, name: str) -> Any:
    """``__getattr__`` of ``paddle``: modules below it, imported at first use."""
    try:
        return importlib.import_module(f"{owner}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{owner}.{name}":
            raise
        raise AttributeError(str(error)) from None
