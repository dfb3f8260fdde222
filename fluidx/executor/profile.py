"""Plans that note when each of their ops ran.

While a profile is taken, a plan runs a variant of its source in which every op stands
between two looks at the clock, on the same lines (errors find their op by its line).
It is made at the first profiled run; the plan itself has no trace of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidx.ir import Operator
from fluidx.kernels import EMPTY

from . import tracing
from .analysis import Step

if TYPE_CHECKING:
    from .plan import Plan

__all__ = ["timed"]

Bind = Callable[..., Callable[..., tuple[Any, ...]]]


def timed(plan: Plan) -> Bind:
    """The plan's `bind`, of the variant that takes times."""
    if plan._timed is None:
        plan._timed = _whole(plan, _instrumented(plan))
    return plan._timed


def _whole(plan: Plan, bind: Bind) -> Bind:
    """Note the run of the block, too."""
    label = tracing.Label(f"block {plan.block.idx}", category="block")

    def bind_whole(*holders: Any) -> Callable[..., tuple[Any, ...]]:
        inner = bind(*holders)

        def run(feed: Any, lods: Any, ctx: Any) -> tuple[Any, ...]:
            recorder = tracing.active
            if recorder is None:  # stopped meanwhile, by another thread
                return inner(feed, lods, ctx)
            depth, begin = recorder.enter(), tracing.now()
            try:
                return inner(feed, lods, ctx)
            finally:
                recorder.leave(label, begin, depth)

        return run

    return bind_whole


def _instrumented(plan: Plan) -> Bind:
    lines = plan.source.splitlines()
    labels: list[tracing.Label] = []
    at = plan._op_at
    for number in sorted(at):
        source, text = at[number], lines[number - 1]
        indent = text[: len(text) - len(text.lstrip())]
        if at.get(number - 1) is not source:
            text = f"{indent}t_ = now_(); {text.lstrip()}"
        if at.get(number + 1) is not source:
            text = f"{text}; note_({len(labels)}, t_, now_())"
            labels.append(_label(source))
        lines[number - 1] = text
    namespace = dict(plan._bind.__globals__)
    namespace["now_"] = _clock(namespace["xp"])
    namespace["note_"] = _noter(labels)
    exec(compile("\n".join(lines) + "\n", plan._file, "exec"), namespace)
    bind: Bind = namespace["bind"]
    return bind


def _noter(labels: list[tracing.Label]) -> Callable[[int, int, int], None]:
    def note(number: int, begin: int, end: int) -> None:
        recorder = tracing.active
        if recorder is not None:
            recorder.op(labels[number], begin, end)

    return note


def _clock(xp: Any) -> Callable[[], int]:
    """The time; on a device, once it has done what it was given."""
    if xp is np:
        return tracing.now

    def now() -> int:
        if tracing.active is not None and tracing.active.state != "CPU":
            xp.cuda.get_current_stream().synchronize()
        return tracing.now()

    return now


def _label(source: Operator | Step) -> tracing.Label:
    ops = source.ops if isinstance(source, Step) else [source]
    types = list(dict.fromkeys(op.type for op in ops))
    outputs = [n for op in ops for n in op.output_arg_names if n != EMPTY]
    args: dict[str, object] = {"outputs": outputs[:8]}
    if len(ops) > 1:  # one kernel runs them together
        args["ops"] = len(ops)
    where = next((op.where for op in ops if op.where), None)
    if where is not None:
        args["built at"] = f"{where.file}:{where.line}"
    detail = outputs[0] if outputs else ""
    return tracing.Label("+".join(types), detail, "op", args)
