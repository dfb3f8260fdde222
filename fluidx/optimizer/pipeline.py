"""PipelineOptimizer: a training step cut into sections that follow each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fluidx.ir import Operator, Program, Variable
from fluidx.kernels import EMPTY, grad_name

from .base import Optimizer

__all__ = ["PipelineOptimizer", "Section"]


@dataclass(frozen=True)
class Section:
    """A part of a step: a program, what it takes from before and hands on.

    input_set: variables that it reads and does not make first. output_set: what
    later sections read of that which it makes.
    """

    program: Program
    input_set: frozenset[str]
    output_set: frozenset[str]


class PipelineOptimizer:
    """Cuts the training step that an optimizer builds into sections.

    cut_list: lists of Variables; the last one holds the loss. n lists give n forward
    sections, of which the last goes on with its own backward ops, and n - 1 more for
    the rest of the backward pass. Each update stands in the section that finishes its
    gradient. place_list, concurrency_list, queue_size, sync_steps and
    start_cpu_core_id are kept for who runs the sections at the same time.

    `minimize` leaves the sections in ``program._pipeline_opt`` and the whole step in
    the program: `Executor.train_from_dataset` runs them one after the other, a batch
    of the dataset at a time. Every batch makes an update, as in the reference.
    Mirrors ``fluid.optimizer.PipelineOptimizer``.

    >>> import fluidx as fluid
    >>> x = fluid.data("pipeline_x", [None, 4])
    >>> hidden = fluid.layers.fc(x, 8)
    >>> loss = fluid.layers.mean(fluid.layers.fc(hidden, 1))
    >>> sections = fluid.optimizer.PipelineOptimizer(
    ...     fluid.optimizer.SGD(0.1), cut_list=[[hidden], [loss]])
    >>> _ = sections.minimize(loss)
    >>> made = fluid.default_main_program()._pipeline_opt["section_program_list"]
    >>> [[op.type for op in s.program.global_block().ops][-2:] for s in made]
    [['mul', 'elementwise_add'], ['sgd', 'sgd'], ['sgd', 'sgd']]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        cut_list: Sequence[Sequence[Variable]] | None = None,
        place_list: Sequence[Any] | None = None,
        concurrency_list: Sequence[int] | None = None,
        queue_size: int = 30,
        sync_steps: int = 1,
        start_cpu_core_id: int = 0,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"PipelineOptimizer: not an optimizer: {optimizer!r:.60}")
        self._optimizer = optimizer
        self._cut_list = [list(cut) for cut in cut_list or ()]
        count = max(2 * len(self._cut_list) - 1, 1)
        for what, given in (
            ("place_list", place_list),
            ("concurrency_list", concurrency_list),
        ):
            if given and len(given) != count:
                raise ValueError(
                    f"PipelineOptimizer: {len(self._cut_list)} cuts make {count} "
                    f"sections, but {what} has {len(given)} entries"
                )
        self._options = {
            "place_list": list(place_list or ()),
            "concurrency_list": list(concurrency_list or ()),
            "queue_size": queue_size,
            "start_cpu_core_id": start_cpu_core_id,
            "sync_steps": sync_steps,
        }

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Iterable[Any] | None = None,
        no_grad_set: Any = None,
    ) -> None:
        """Append a training step of `loss` and cut it; see the class."""
        if self._cut_list and all(v.name != loss.name for v in self._cut_list[-1]):
            raise ValueError(
                "PipelineOptimizer: the last of cut_list must hold the loss "
                f"{loss.name}"
            )
        self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)
        program = loss.block.program
        options: Any = {
            "trainer": "PipelineTrainer",
            "device_worker": "Section",
            "section_program_list": cut(program, self._cut_list),
            **self._options,
        }
        program._pipeline_opt = options  # type: ignore[attr-defined]


def cut(program: Program, cut_list: Sequence[Sequence[Variable]]) -> list[Section]:
    """The sections of a training step, in the order in which they run."""
    ops = program.global_block().ops
    for op in ops:
        if op.sub_blocks:
            raise ValueError(
                f"PipelineOptimizer: op {op.type} has blocks of its own and cannot be "
                "put into a section"
            )
    borders = {v.name for vars_ in cut_list[:-1] for v in vars_}
    borders |= {grad_name(n) for n in borders}
    numbers = _numbers(ops, borders)
    parts: list[list[Operator]] = [[] for _ in range(max(2 * len(cut_list) - 1, 1))]
    for op, number in zip(ops, numbers):
        if number >= len(parts):
            raise ValueError(
                f"PipelineOptimizer: op {op.type} comes behind {number} cuts, but "
                f"cut_list makes {len(parts)} sections; of the variables of one cut "
                "none may be computed from another"
            )
        parts[number].append(op)
    return [_section(program, parts, i) for i in range(len(parts))]


def _numbers(ops: Sequence[Operator], borders: set[str]) -> list[int]:
    """The section of each op: the first in which all that it reads is there.

    What is computed at a border is there from the next section on. No op overtakes
    one that reads or writes what it writes.
    """
    there: dict[str, int] = {}
    touched: dict[str, int] = {}
    numbers = []
    for op in ops:
        reads, writes = op.input_arg_names, op.output_arg_names
        number = max(
            0,
            *(there.get(n, 0) for n in reads),
            *(touched.get(n, 0) for n in writes if n != EMPTY),
        )
        numbers.append(number)
        for name in (*reads, *writes):
            touched[name] = max(number, touched.get(name, 0))
        for name in writes:
            there[name] = number + (name in borders)
    return _postponed(ops, numbers, set(there))


def _postponed(
    ops: Sequence[Operator], numbers: list[int], made: set[str]
) -> list[int]:
    """Ops that read nothing made here go to where they are needed first."""
    needed: dict[str, int] = {}
    for i in range(len(ops) - 1, -1, -1):
        op = ops[i]
        if made.isdisjoint(op.input_arg_names):
            users = [needed[n] for n in op.output_arg_names if n in needed]
            numbers[i] = min(users, default=numbers[i])
        for name in op.input_arg_names:
            needed[name] = min(numbers[i], needed.get(name, numbers[i]))
    return numbers


def _section(
    program: Program, parts: Sequence[Sequence[Operator]], index: int
) -> Section:
    """A section's own program, and how it hangs together with the others."""
    source, part = program.global_block(), Program()
    part.random_seed = program.random_seed
    block = part.global_block()
    reads: set[str] = set()
    made: set[str] = set()
    for op in parts[index]:
        reads.update(n for n in op.input_arg_names if n not in made)
        made.update(op.output_arg_names)
        for name in (*op.input_arg_names, *op.output_arg_names):
            var = source._find_var_recursive(name)
            if var is not None and not block.has_var(name):
                block.vars[name] = var.copy_to(block)
        block._adopt(op.copy_to(block))
    later = {n for ops in parts[index + 1 :] for op in ops for n in op.input_arg_names}
    persistable = {v.name for v in source.vars.values() if v.persistable}
    return Section(
        part,
        frozenset(reads - {EMPTY}),
        frozenset((made & later) - persistable - {EMPTY}),
    )
