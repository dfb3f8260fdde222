"""Turning a block into one straight Python function: no look-ups left in a run.

The source of a plan reads like the program::

    def bind(h0, h1):
        def run(feed, ctx):
            v0 = feed["x"]
            v1 = h0.value
            if v1 is None: missing(0)
            v2 = k0(xp, v0, v1, x_num_col_dims=1, ...)
            ...
            return (v9,)
        return run

Each op stands on lines of its own, so that a traceback's line tells the op.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from keyword import iskeyword
from typing import Any

from fluidx import kernels
from fluidx.ir import Block, Operator
from fluidx.kernels import EMPTY, GRAD, Call, OpDef

from .analysis import BlockFacts, Step
from .halves import batch_kernel_of, kernel_of
from .nan_inf import Checks
from .steps import inner_writes

__all__ = ["Writer"]


def _literal(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (bool, int, str))


class Writer:
    """Writes the source of one plan; `globals` holds what the source refers to."""

    def __init__(
        self,
        facts: BlockFacts,
        feeds: Sequence[str],
        fetches: Sequence[str],
        with_lod: set[str],
        xp: Any,
        check: bool = False,
        lod_only: Sequence[str] = (),
    ) -> None:
        self.facts = facts
        self.lod_only = lod_only
        self.feeds = list(feeds)
        self.fetches = tuple(fetches)
        # names that may have a LoD, and those of them whose local is assigned
        self.has_lod = set(with_lod)
        self.lod_set: set[str] = set()
        self.globals: dict[str, Any] = {"xp": xp, "Call": Call}
        self.lines: list[str] = []
        self.op_at: dict[int, Operator | Step] = {}
        self.holders: dict[str, str] = {}
        self.locals: dict[str, str] = {}
        self.missing: list[tuple[str, Operator | None, str]] = []
        self._constants = 0
        self._checks = Checks(xp, self.globals) if check else None
        # what ops of the batch at hand hand to each other (control variables)
        self.unborn: set[str] = set()

    # ------------------------------------------------ small parts

    def local(self, name: str) -> str:
        """The Python local that stands for a variable."""
        if name not in self.locals:
            self.locals[name] = f"v{len(self.locals)}"
        return self.locals[name]

    def lod_local(self, name: str) -> str:
        return "l" + self.local(name)[1:]

    def holder(self, name: str) -> str:
        if name not in self.holders:
            self.holders[name] = f"h{len(self.holders)}"
        return self.holders[name]

    def constant(self, value: Any, prefix: str = "c") -> str:
        """A name in the plan's globals for a value."""
        name = f"{prefix}{self._constants}"
        self._constants += 1
        self.globals[name] = value
        return name

    def attribute(self, value: Any) -> str:
        value = kernel_attr(value)
        return repr(value) if _literal(value) else self.constant(value)

    def add(self, line: str, source: Operator | Step | None = None) -> None:
        self.lines.append(line)
        if source is not None:
            self.op_at[len(self.lines)] = source

    # ------------------------------------------------ the whole

    def write(self) -> str:
        """The source; `op_at` then maps its line numbers (from 1) to ops."""
        body_from = 3
        self.lines = ["", ""]  # the two def lines, known at the end
        for name in self.feeds:
            self.add(f"{self.local(name)} = feed[{name!r}]")
            if name in self.has_lod:
                self.lod_set.add(name)
                self.add(f"{self.lod_local(name)} = lods[{name!r}]")
            if name in self.facts.stored:
                self._put(name)
        for name, key in self.facts.notes.entry:
            self._keep(name, key)
        for name, (op, slot) in self.facts.needed.items():
            self._load(name, op, slot)
        for name in sorted(set(self.lod_only) - self.lod_set):
            for line in self._assign_lod([name], f"{self.holder(name)}.lod"):
                self.add(line)
        for index, step in enumerate(self.facts.steps):
            self._step(index, step)
        self._return()
        holders = ", ".join(self.holders.values())
        self.lines[0] = f"def bind({holders}):"
        self.lines[1] = " def run(feed, lods, ctx):"
        for i in range(body_from - 1, len(self.lines)):
            self.lines[i] = "  " + self.lines[i]
        self.lines.append(" return run")
        return "\n".join(self.lines) + "\n"

    def _load(self, name: str, op: Operator | None, slot: str) -> None:
        local, holder = self.local(name), self.holder(name)
        self.add(f"{local} = {holder}.value")
        number = len(self.missing)
        self.missing.append((name, op, slot))
        if op is None or not self._may_be_absent(op, slot):
            self.add(f"if {local} is None: missing({number})")
        if name in self.has_lod:
            self.lod_set.add(name)
            self.add(f"{self.lod_local(name)} = {holder}.lod")

    def _may_be_absent(self, op: Operator, slot: str) -> bool:
        """listen_and_serv and sums of what arrived take what is there."""
        definition = kernels.find(op.type)
        slots = {s.name: s for s in definition.ins}
        if slot in definition.unset or slot not in slots:  # what `prior` takes
            return True
        return op.type == "sum" or (
            definition.effect and slot in slots and slots[slot].duplicable
        )

    def _return(self) -> None:
        values = []
        for name in self.fetches:
            if name in self.facts.absent:
                values.append("(None, None)")
                continue
            if name not in self.locals:
                self._load(name, None, "")
            values.append(f"({self.local(name)}, {self._lod_of(name)})")
        self.add(f"return ({', '.join(values)}{',' if values else ''})")

    # ------------------------------------------------ ops

    def _step(self, index: int, step: Step) -> None:
        before = len(self.lines)
        if step.group is not None and len(step.ops) > 0:
            self._batch(index, step)
        else:
            self._op(index, step.ops[0])
        if self._checks is not None:
            self.lines += self._checks.lines(step.ops, self.locals)
        source: Operator | Step = step if step.group else step.ops[0]
        for line in range(before + 1, len(self.lines) + 1):
            self.op_at[line] = source
        self._free(index, step)

    def _input(self, definition: OpDef, op: Operator, position: int, index: int) -> str:
        """The expression for one input slot."""
        slot = definition.ins[position]
        names = op.inputs.get(slot.name, [])
        if definition.scoped and not slot.name.endswith(GRAD):
            return "None"
        none = self.unborn | {EMPTY} | self.facts.unmade.get(id(op), set())
        shown = ["None" if n in none else self.local(n) for n in names]
        if slot.duplicable:
            return f"[{', '.join(shown)}]" if names else "None"
        if not names:
            return "None"
        if slot.name in definition.inplace.values():
            return self._exclusive(definition, op, slot.name, names[0], index)
        return shown[0]

    def _exclusive(
        self, definition: OpDef, op: Operator, slot: str, name: str, index: int
    ) -> str:
        """An array that the kernel may update in place: its own, or a copy."""
        out = next(o for o, i in definition.inplace.items() if i == slot)
        target = op.outputs.get(out, [])
        local = self.local(name)
        own = (
            target == [name]
            and name in self.facts.bound
            and self.facts.only_user_after(name, index)
        )
        if not own:
            return f"{local}.copy()"
        # what came from the network or from a broadcast cannot be written to
        return f"({local} if {local}.flags.writeable else {local}.copy())"

    def _keywords(self, definition: OpDef, op: Operator, index: int) -> list[str]:
        shown = []
        for key in definition.keywords:
            if key == "ctx":
                value = "ctx"
            elif key == "wants":
                value = self._wants(definition, op)
            elif key == "lod":
                value = self._lod_dict(definition, op)
            elif key == "names":
                value = self.constant({**op.inputs, **op.outputs})
            elif key == "counts":
                value = self.constant({k: len(v) for k, v in op.outputs.items()})
            elif key == "out":
                value = self._reusable(definition, op, index)
            elif key == "prior":
                value = self._prior(definition, op)
            else:
                value = self.attribute(op.attrs.get(key, definition.defaults.get(key)))
            # an attribute may be called like a Python keyword (softshrink's lambda)
            word = f"**{{{key!r}: {value}}}" if iskeyword(key) else f"{key}={value}"
            shown.append(word)
        return shown

    def _wants(self, definition: OpDef, op: Operator) -> str:
        wanted = [
            any(n != EMPTY for n in op.outputs.get(s.name, ())) for s in definition.outs
        ]
        return f"({', '.join(map(repr, wanted))},)"

    def _lod_of(self, name: str) -> str:
        """The expression for a variable's LoD; a gradient has its variable's."""
        if name not in self.has_lod and GRAD in name:
            name = name[: name.index(GRAD)]
        return self.lod_local(name) if name in self.lod_set else "None"

    def _lod_dict(self, definition: OpDef, op: Operator) -> str:
        many = {s.name for s in definition.ins if s.duplicable}
        parts = []
        for slot, names in op.inputs.items():
            if names and not self.has_lod.isdisjoint(_bases(names)):
                shown = [self._lod_of(n) for n in names]
                lod = f"[{', '.join(shown)}]" if slot in many else shown[0]
                parts.append(f"{slot!r}: {lod}")
        return f"{{{', '.join(parts)}}}"

    def _reusable(self, definition: OpDef, op: Operator, index: int) -> str:
        """The buffer that the kernel may overwrite, or None."""
        names = op.inputs.get(definition.overwrites or "", [])
        if not names or names[0] == EMPTY:
            return "None"
        name = names[0]
        if not self.facts.is_dead_after(name, index):
            return "None"
        local = self.local(name)
        fit = f"{local}.__class__ is ndarray and {local}.flags.writeable"
        return f"({local} if {fit} else None)"

    def _prior(self, definition: OpDef, op: Operator) -> str:
        """What the first output holds so far."""
        name = op.output(definition.outs[0].name)[0]
        return self.locals.get(name, "None")

    def _targets(self, definition: OpDef, op: Operator) -> str:
        """The left side of the assignment."""
        parts = []
        for slot in definition.outs:
            names = op.outputs.get(slot.name, [])
            if definition.scoped and not slot.name.endswith(GRAD):
                continue  # read from the scope afterwards
            shown = ["_" if n == EMPTY else self.local(n) for n in names]
            if slot.duplicable and names:
                parts.append(f"({', '.join(shown)},)")
            else:
                parts.append(shown[0] if shown else "_")
        return ", ".join(parts)

    def _op(self, index: int, op: Operator) -> None:
        definition = kernels.find(op.type)
        kernel = self.constant(kernel_of(op, self.globals["xp"]), "k")
        inputs = [
            self._input(definition, op, i, index) for i in range(len(definition.ins))
        ]
        arguments = ", ".join(["xp", *inputs, *self._keywords(definition, op, index)])
        call = f"{kernel}({arguments})"
        targets = self._targets(definition, op) if definition.outs else ""
        lods = self._output_lods(definition, op)
        self.add(f"{targets} = {call}" if targets else call)
        for line in lods:
            self.add(line)
        if definition.scoped:
            self._fetch_scoped(op)
        self._store(op)

    def _fetch_scoped(self, op: Operator) -> None:
        """Take what the op, or its blocks, left in the scope."""
        names = inner_writes(op)
        for slot, args in op.outputs.items():
            if not slot.endswith(GRAD):
                names.update(args)
        for name in sorted(names & (self.facts.bound | self.facts.stored)):
            self.add(f"{self.local(name)} = {self.holder(name)}.value")
            if name in self.has_lod:
                self.lod_set.add(name)
                self.add(f"{self.lod_local(name)} = {self.holder(name)}.lod")

    def _output_lods(self, definition: OpDef, op: Operator) -> list[str]:
        """Lines that give the outputs their LoD, if any input has one."""
        carriers = any(n in self.has_lod for names in op.inputs.values() for n in names)
        if definition.lod_rule is not None and (carriers or definition.makes_lod):
            return self._ruled_lods(definition, op)
        lines, outputs = [], op.output_arg_names
        if carriers and definition.lod is not None:
            sources = op.input(definition.lod)
            if len(outputs) != len(sources):  # else each has its own
                sources = sources[:1] * len(outputs)
            for name, source in zip(outputs, sources):
                if source in self.has_lod:
                    lines += self._assign_lod([name], self._lod_of(source))
                    outputs = [n for n in outputs if n != name]
        if self.has_lod and not definition.scoped:
            # what held sequences before holds none now
            lines += self._assign_lod([n for n in outputs if n in self.has_lod], "None")
        return lines

    def _assign_lod(self, names: Sequence[str], expression: str) -> list[str]:
        made = [n for n in names if n != EMPTY]
        self.has_lod.update(made)
        self.lod_set.update(made)
        return [f"{self.lod_local(name)} = {expression}" for name in made]

    def _ruled_lods(self, definition: OpDef, op: Operator) -> list[str]:
        rule = self.constant(definition.lod_rule, "r")
        many = {s.name for s in definition.ins if s.duplicable}
        lods, values = [], []
        for slot, names in op.inputs.items():
            if not names or names[0] == EMPTY:
                continue
            shown = ["None" if n == EMPTY else self.local(n) for n in names]
            lod = map(self._lod_of, names)
            if slot in many:
                values.append(f"{slot!r}: [{', '.join(shown)}]")
                lods.append(f"{slot!r}: [{', '.join(lod)}]")
            else:
                values.append(f"{slot!r}: {shown[0]}")
                lods.append(f"{slot!r}: {next(lod)}")
        given = f"{{{', '.join(lods)}}}, {{{', '.join(values)}}}"
        attrs = self.constant({**definition.defaults, **op.attrs})
        lines = [f"lod_ = {rule}({given}, {attrs})"]
        for slot, names in op.outputs.items():
            lines += self._assign_lod(names, f"lod_.get({slot!r})")
        return lines

    def _store(self, op: Operator) -> None:
        """Write what lives in the scope back to it, at once."""
        scoped = kernels.find(op.type).scoped
        for slot, names in op.outputs.items():
            for name in names:
                if name not in self.facts.bound | self.facts.stored:
                    continue
                if not scoped or slot.endswith(GRAD):
                    self._put(name)
        for name, key in self.facts.notes.after.get(id(op), ()):
            self._keep(name, key)

    def _put(self, name: str) -> None:
        self.add(f"{self.holder(name)}.value = {self.local(name)}")
        if name in self.has_lod:
            self.add(f"{self.holder(name)}.lod = {self._lod_of(name)}")

    def _keep(self, name: str, key: str) -> None:
        """Keep a value for the gradient block under a name of its own."""
        copy = ".copy()" if name in self.facts.notes.in_place else ""
        kept, now = self.holder(key), self.holder(name)
        self.add(f"{kept}.value = {now}.value{copy}; {kept}.lod = {now}.lod")

    # ------------------------------------------------ batches

    def _batch(self, index: int, step: Step) -> None:
        batch = batch_kernel_of(step.group or "", self.globals["xp"])
        kernel = self.constant(batch, "b")
        calls, targets = [], []
        for op in step.ops:
            definition = kernels.find(op.type)
            inputs = [
                self._input(definition, op, i, index)
                for i in range(len(definition.ins))
            ]
            attrs = {**definition.defaults, **op.attrs}
            attrs = {k: kernel_attr(v) for k, v in attrs.items()}
            names = {**op.inputs, **op.outputs}
            fixed = ", ".join(
                (self.constant(definition), "[" + ", ".join(inputs) + "]")
            )
            calls.append(
                f"Call({fixed}, {self.constant(attrs)}, {self.constant(names)})"
            )
            many = self._targets(definition, op)
            targets.append(f"({many},)" if many else "_")
            self.unborn |= set(op.output_arg_names)
        self.unborn = set()
        left = ", ".join(targets)
        self.add(f"{left}, = {kernel}(xp, ctx, [{', '.join(calls)}])")
        for op in step.ops:
            self._store(op)

    # ------------------------------------------------ memory

    def _free(self, index: int, step: Step) -> None:
        """Let go of temporaries that nobody reads any more."""
        touched = {n for op in step.ops for n in op.input_arg_names}
        touched |= {n for op in step.ops for n in op.output_arg_names}
        dead = {
            self.locals[name]
            for name in touched & self.locals.keys() - set(self.fetches)
            if self.facts.last_touch.get(name, -1) <= index
        }
        if dead:
            self.add(" = ".join(sorted(dead)) + " = None")


def _bases(names: Sequence[str]) -> list[str]:
    """The variables whose LoD these names have."""
    return [*names, *(n[: n.index(GRAD)] for n in names if GRAD in n)]


def kernel_attr(value: Any) -> Any:
    """An attribute as kernels see it: blocks become their index."""
    if isinstance(value, Block):
        return value.idx
    if isinstance(value, list):
        return [kernel_attr(v) for v in value]
    return value
