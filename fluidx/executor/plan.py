"""Plans: a block compiled once for given feeds and fetches, run many times."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidx.ir import Block, Operator, Program
from fluidx.ir.errors import EnforceNotMet, RunError, describe
from fluidx.kernels import InferContext, InferError, Meta, SelectedRows
from fluidx.tensor import Scope, ScopeVar
from fluidx.tensor.scope import RunScope

from . import profile, reads, sequences, tracing
from .analysis import BlockFacts, Step, analyse
from .codegen import Writer
from .collectives import gather_reductions
from .steps import Notes

if TYPE_CHECKING:
    from types import TracebackType

    from .context import Context

__all__ = ["Plan"]

#: what an executor takes as a program's signature, and does not run
_SIGNATURE = frozenset(["feed", "fetch", *reads.OPS])
_numbers = count()
Runner = Callable[..., tuple[Any, ...]]


class Plan:
    """One block, compiled for a set of fed names and a list of fetches.

    `run` binds it to a scope (remembered) and runs it. The source that it runs is in
    `source`. check: look for NaN and Inf after each op (see `nan_inf`).
    """

    def __init__(
        self,
        program: Program,
        index: int,
        feeds: Sequence[str],
        fetches: Sequence[str],
        with_lod: frozenset[str],
        xp: Any,
        notes: Notes | None = None,
        check: bool = False,
    ) -> None:
        block = program.blocks[index]
        self.block = block
        ops = [op for op in block.ops if op.type not in _SIGNATURE]
        if xp is np:
            ops = gather_reductions(ops)
        if notes is not None:
            ops = notes.ops(ops)
        facts = analyse(block, ops, set(feeds), fetches, notes)
        #: ops with sub-blocks take variables from a scope of this run
        self._has_control = any(op.definition.scoped for op in ops)
        lod = set(with_lod) | {n for n in facts.bound if _lod_level(block, n) > 0}
        lod |= sequences.remembered(ops, facts)
        gradients: list[str] = []
        if sequences.are_in(program):
            lod |= sequences.carriers(block, ops, facts)
            gradients = sequences.of_gradients(block, ops)
        writer = Writer(facts, feeds, fetches, lod, xp, check, gradients)
        self.source = writer.write()
        self._op_at = writer.op_at
        self._missing = writer.missing
        #: per fetch: whether its array belongs to nobody else
        self.fresh = tuple(
            facts.root.get(n, n) not in facts.bound | set(feeds) for n in fetches
        )
        self._locals = writer.locals
        self._holders = list(writer.holders)
        self._home = _Home(block, facts, self._holders)
        self._file = f"<fluidx plan {next(_numbers)}>"
        namespace = writer.globals
        namespace["missing"] = self._raise_missing
        namespace["ndarray"] = np.ndarray if xp is np else xp.ndarray
        code = compile(self.source, self._file, "exec")
        exec(code, namespace)
        self._bind: Callable[..., Runner] = namespace["bind"]
        #: the same with clocks, once it has been profiled
        self._timed: Callable[..., Runner] | None = None
        self._bound: weakref.WeakKeyDictionary[Scope, tuple[int, Runner]]
        self._bound = weakref.WeakKeyDictionary()

    def run(
        self,
        ctx: Context,
        feed: Mapping[str, Any],
        lods: dict[str, Any] | None = None,
    ) -> tuple[Any, ...]:
        """Run on ``ctx.scope``; returns a (value, LoD) pair per fetch.

        RunError names the op, its inputs and the user's line.
        """
        if not self._has_control:
            return self._call(self._runner(ctx.scope), ctx, feed, lods)
        outer = ctx.scope
        ctx.scope = own = RunScope(outer)
        try:
            return self.run_step(ctx, feed, lods)
        finally:
            ctx.scope = outer
            own.release()

    def run_step(
        self,
        ctx: Context,
        feed: Mapping[str, Any],
        lods: dict[str, Any] | None = None,
    ) -> tuple[Any, ...]:
        """The same in a scope that is the home of the block's own variables."""
        return self._call(self._runner(ctx.scope, own=True), ctx, feed, lods)

    def _call(
        self,
        runner: Runner,
        ctx: Context,
        feed: Mapping[str, Any],
        lods: dict[str, Any] | None,
    ) -> tuple[Any, ...]:
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

    def _runner(self, scope: Scope, own: bool = False) -> Runner:
        if tracing.active is not None:
            return profile.timed(self)(*self._holders_in(scope, own))
        # a scope of a run keeps what is bound to it: here it would never be freed
        passing = isinstance(scope, RunScope)
        bound: Any = scope.bound if isinstance(scope, RunScope) else self._bound
        key = self if passing else scope
        known = bound.get(key)
        if known is not None and known[0] == scope.epoch():
            return known[1]  # type: ignore[no-any-return]
        runner = self._bind(*self._holders_in(scope, own))
        bound[key] = (scope.epoch(), runner)
        return runner

    def _holders_in(self, scope: Scope, own: bool) -> list[ScopeVar]:
        if own:
            self._home.prepare(scope)
        return [self._home.holder(scope, n, own) for n in self._holders]

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
            if any(name in block.vars for block in self.block.program.blocks):
                hint = "it is inside a loop or branch; assign it to one from outside"
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
        op = self._likely(found.ops, values) if isinstance(found, Step) else found
        kinds = "".join(f"\n  {line}" for line in self._inputs_of(op, values))
        text = f"{error}" if str(error) else error.__class__.__name__
        if any(words in text for words in _BARE):
            text = self._refused(op, values) or text
        name = error.__class__.__name__
        prefix = "" if name in ("ValueError", "RuntimeError") else f"{name}: "
        message = f"{prefix}{text.removeprefix(op.type + ': ')}{kinds}"
        return RunError(describe(f"op {op.type}", message, op.where))

    def _refused(self, op: Operator, values: dict[str, Any]) -> str | None:
        """What the op's inference says of the sizes that came; None: nothing."""
        ins: dict[str, list[Meta]] = {}
        for slot, names in op.inputs.items():
            ins[slot] = []
            for name in names:
                var = self.block._find_var_recursive(name)
                shape = getattr(values.get(self._locals.get(name, "")), "shape", None)
                if var is None or not isinstance(shape, tuple):
                    return None
                ins[slot].append(replace(var.meta, shape=shape))
        outs = {slot: len(names) for slot, names in op.outputs.items()}
        attrs = {**op.definition.defaults, **op.attrs}
        try:
            op.definition.infer(InferContext(op.type, ins, attrs, outs))
        except InferError as error:
            return str(error)
        except Exception:  # a rule that does not suit: the first error stays
            return None
        return None

    def _likely(self, ops: Sequence[Operator], values: dict[str, Any]) -> Operator:
        """Of ops that run together: one that reads rows, else the first.

        Most kernels of such groups take dense arrays only.
        """
        for op in ops:
            for name in op.input_arg_names:
                if isinstance(values.get(self._locals.get(name, "")), SelectedRows):
                    return op
        return ops[0]

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


#: in errors of NumPy's own, which do not say what the op wants
_BARE = (
    *("negative dimensions", "must match exactly", "must have the same shape"),
    *("cannot reshape array", "not aligned"),
)


class _Home:
    """Where the variables of a block live."""

    def __init__(self, block: Block, facts: BlockFacts, bound: Sequence[str]) -> None:
        self._own = {
            name
            for name, var in block.vars.items()
            if not var.persistable and (block.parent_idx >= 0 or name in facts.shared)
        }
        if block.parent_idx < 0:  # what nothing here makes may be the user's
            self._own -= set(facts.needed)
        values = [*facts.notes.entry, *chain(*facts.notes.after.values())]
        self._own |= {key for _, key in values}
        self._unbound = (self._own & facts.shared).difference(bound)
        self._persistable = {n for n in facts.bound if _is_persistable(block, n)}

    def prepare(self, scope: Scope) -> None:
        """Make the variables that sub-blocks share, which only they may name."""
        for name in self._unbound:
            scope.var(name)

    def holder(self, scope: Scope, name: str, own: bool) -> ScopeVar:
        """The variable of this name; own: the scope is home to the block's own."""
        if own and name in self._own:
            return scope.var(name)
        found = scope.find_var(name)
        if found is not None:
            return found
        if own and name in self._persistable:
            while isinstance(scope, RunScope):
                scope = scope.parent
        return scope.var(name)


def _is_persistable(block: Block, name: str) -> bool:
    var = block._find_var_recursive(name)
    return var is not None and var.persistable


def _lod_level(block: Block, name: str) -> int:
    var = block._find_var_recursive(name)
    return var.lod_level if var is not None and not var.persistable else 0
