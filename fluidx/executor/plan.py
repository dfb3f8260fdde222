"""Plans: a block compiled once for given feeds and fetches, run many times."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidx.ir import Block, Operator, Program
from fluidx.ir.errors import EnforceNotMet, RunError, describe
from fluidx.tensor import Scope, ScopeVar

from .analysis import Step, analyse
from .codegen import Writer

if TYPE_CHECKING:
    from types import TracebackType

    from .context import Context

__all__ = ["Plan"]

_numbers = count()
Runner = Callable[..., tuple[Any, ...]]


class Plan:
    """One block, compiled for a set of fed names and a list of fetches.

    `run` binds it to a scope (remembered) and runs it. The source that it runs is in
    `source`.
    """

    def __init__(
        self,
        program: Program,
        index: int,
        feeds: Sequence[str],
        fetches: Sequence[str],
        with_lod: frozenset[str],
        xp: Any,
    ) -> None:
        block = program.blocks[index]
        self.block = block
        ops = [op for op in block.ops if op.type not in ("feed", "fetch")]
        facts = analyse(block, ops, set(feeds), fetches)
        self._has_control = any(
            op.sub_blocks and op.type != "listen_and_serv" for op in ops
        )
        self._persistable = {
            n for n in facts.bound if _lives_on(block, n) or block.parent_idx >= 0
        }
        lod = set(with_lod) | {
            n for n in facts.bound if _lod_level(block, n) > 0
        }
        writer = Writer(facts, feeds, fetches, lod, xp)
        self.source = writer.write()
        self._op_at = writer.op_at
        self._missing = writer.missing
        #: per fetch: whether its array belongs to nobody else
        self.fresh = tuple(
            facts.root.get(n, n) not in facts.bound | set(feeds) for n in fetches
        )
        self._locals = writer.locals
        self._holders = list(writer.holders)
        self._file = f"<fluidx plan {next(_numbers)}>"
        namespace = writer.globals
        namespace["missing"] = self._raise_missing
        namespace["ndarray"] = np.ndarray if xp is np else xp.ndarray
        code = compile(self.source, self._file, "exec")
        exec(code, namespace)
        self._bind: Callable[..., Runner] = namespace["bind"]
        self._bound: weakref.WeakKeyDictionary[Scope, tuple[int, Runner]]
        self._bound = weakref.WeakKeyDictionary()

    def run(
        self,
        ctx: Context,
        feed: dict[str, Any],
        lods: dict[str, Any] | None = None,
    ) -> tuple[Any, ...]:
        """Run on ``ctx.scope``; returns a (value, LoD) pair per fetch.

        RunError names the op, its inputs and the user's line.
        """
        runner = self._runner(ctx)
        try:
            # log(0) is -inf and 0/0 is NaN, silently, as on a GPU
            with np.errstate(all="ignore"):
                return runner(feed, lods, ctx)
        except EnforceNotMet:
            raise
        except Exception as error:
            explained = self._explain(error)
            if explained is None:
                raise
            raise explained from error

    def _runner(self, ctx: Context) -> Runner:
        scope = ctx.scope
        if self._has_control:
            # temporaries that sub-blocks share live in a scope of this run
            ctx.scope = scope = Scope(scope)
            return self._bind(*(self._holder(scope, n) for n in self._holders))
        known = self._bound.get(scope)
        epoch = scope.epoch()
        if known is not None and known[0] == epoch:
            return known[1]
        holders = [self._holder(scope, n) for n in self._holders]
        runner = self._bind(*holders)
        self._bound[scope] = (scope.epoch(), runner)
        return runner

    def _holder(self, scope: Scope, name: str) -> ScopeVar:
        found = scope.find_var(name)
        if found is not None:
            return found
        home = scope
        if self._has_control and name in self._persistable and scope.parent:
            home = scope.parent
        return home.var(name)

    # ------------------------------------------------ errors

    def _raise_missing(self, number: int) -> None:
        name, op, slot = self._missing[number]
        var = self.block._find_var_recursive(name)
        if var is not None and var.persistable:
            hint = "was the startup program run in this scope?"
        elif var is not None and var.is_data:
            hint = "it must be fed"
        elif var is None:
            hint = "the program declares no such variable"
        else:
            hint = "no op before it makes it"
        if op is None:
            raise RunError(f"fetch: variable {name!r} has no value; {hint}")
        message = f"input {slot}: variable {name!r} has no value; {hint}"
        raise RunError(describe(f"op {op.type}", message, op.where))

    def _explain(self, error: Exception) -> RunError | None:
        """What went wrong in which op, from the line that failed."""
        trace: TracebackType | None = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != self._file:
            trace = trace.tb_next
        if trace is None:
            return None
        found = self._op_at.get(trace.tb_lineno)
        if found is None:
            return None
        values = trace.tb_frame.f_locals
        op = found.ops[0] if isinstance(found, Step) else found
        kinds = "".join(f"\n  {line}" for line in self._inputs_of(op, values))
        text = f"{error}" if str(error) else error.__class__.__name__
        name = error.__class__.__name__
        prefix = "" if name in ("ValueError", "RuntimeError") else f"{name}: "
        message = f"{prefix}{text.removeprefix(op.type + ': ')}{kinds}"
        return RunError(describe(f"op {op.type}", message, op.where))

    def _inputs_of(self, op: Operator, values: dict[str, Any]) -> list[str]:
        lines = []
        for slot, names in op.inputs.items():
            for name in names:
                value = values.get(self._locals.get(name, ""))
                if value is None:
                    continue
                shape = list(getattr(value, "shape", ()))
                dtype = getattr(value, "dtype", value.__class__.__name__)
                lines.append(f"{slot} {name}: {dtype}{shape}")
        return lines

    def show(self) -> str:
        """The source that this plan runs."""
        linecache.cache[self._file] = (
            len(self.source),
            None,
            self.source.splitlines(True),
            self._file,
        )
        return self.source


def _lives_on(block: Block, name: str) -> bool:
    var = block._find_var_recursive(name)
    return var is None or var.persistable


def _lod_level(block: Block, name: str) -> int:
    var = block._find_var_recursive(name)
    return var.lod_level if var is not None and not var.persistable else 0
