"""The `RunContext` that kernels see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidx.ir.errors import EnforceNotMet
from fluidx.tensor import Place, Scope
from fluidx.tensor.scope import RunScope

from . import hooks

if TYPE_CHECKING:
    from fluidx.ir import Program

    from .executor import Executor

__all__ = ["Context"]


class Context:
    """What one run of one program offers to kernels that ask for ``ctx``."""

    def __init__(self, executor: Executor, program: Program, scope: Scope) -> None:
        self._executor = executor
        self.program = program
        self.scope = scope

    @property
    def xp(self) -> Any:
        return self._executor.xp

    @property
    def place(self) -> Place:
        return self._executor.place

    @property
    def rpc(self) -> Any:
        """The RPC client of this executor, made at first use."""
        return self._executor.rpc

    @property
    def files(self) -> Any:
        """Files of saved models, for the ops `save` and `load`."""
        from fluidx.io.op_files import OpFiles

        return OpFiles(self.program, self.scope, self.xp)

    @property
    def world(self) -> Any:
        """The ranks that run collective ops together with this process."""
        if hooks.world is None:
            raise EnforceNotMet("collective ops need fluidx.distributed")
        return hooks.world(self.place)

    def host_generator(self, seed: int = 0) -> np.random.Generator:
        """numpy's generator; seed 0: the program's own (see `RunContext`)."""
        if seed:
            return np.random.default_rng(seed)
        return self._own("host", np.random.default_rng)  # type: ignore[no-any-return]

    def generator(self, seed: int = 0) -> Any:
        """The generator of the place's array module."""
        if self.xp is np:
            return self.host_generator(seed)
        make = self.xp.random.default_rng
        return make(seed) if seed else self._own("device", make)

    def _own(self, kind: str, make: Callable[..., Any]) -> Any:
        known = self._executor.generators.setdefault(self.program, {})
        seed = self.program.random_seed
        key = (kind, seed)
        if key not in known:
            known[key] = make(seed) if seed else make()
        return known[key]

    def run_block(
        self,
        index: int,
        scope: Scope | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch: Sequence[str] = (),
    ) -> list[Any]:
        """Run a block of the program (see `RunContext`)."""
        values = feed or {}
        plan = self._executor.plan_of(self.program, index, tuple(values), tuple(fetch))
        if scope is None:
            return [v for v, _ in plan.run(self, values)]
        outer, self.scope = self.scope, scope
        try:
            return [v for v, _ in plan.run_step(self, values)]
        finally:
            self.scope = outer

    def step_scope(self, parent: Scope | None = None) -> Scope:
        """A scope for one run of a sub-block."""
        return RunScope(self.scope if parent is None else parent)

    def keeps(self, index: int) -> bool:
        """Whether a gradient block looks at the values of this block."""
        return self._executor.keeps(self.program, index)

    def serve(self, inputs: list[Any], attrs: dict[str, Any]) -> None:
        """Serve parameters until all trainers are done."""
        if hooks.serve is None:
            raise EnforceNotMet("listen_and_serv needs fluidx.distributed")
        hooks.serve(self, inputs, attrs)
