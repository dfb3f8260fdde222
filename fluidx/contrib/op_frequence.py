"""Which ops a program has, and which follow which."""

from __future__ import annotations

from collections import Counter, OrderedDict

from fluidx.ir import Program

__all__ = ["op_freq_statistic"]


def op_freq_statistic(
    program: Program,
) -> tuple[OrderedDict[str, int], OrderedDict[str, int]]:
    """(op type -> count, "first->second" -> count), the most frequent first.

    The second counts pairs of which the second op reads what the first wrote. TypeError
    if it is no Program. Mirrors ``fluid.contrib.op_freq_statistic`` (which fails on
    Python 3).
    """
    if not isinstance(program, Program):
        kind = program.__class__.__name__
        raise TypeError(f"op_freq_statistic takes a Program, got {kind}")
    single: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    parameters = {p.name for p in program.all_parameters()}
    writer: dict[str, str] = {}
    for op in program.global_block().ops:
        single[op.type] += 1
        for name in dict.fromkeys(op.input_arg_names):
            if name in writer and name not in parameters:
                pairs[f"{writer[name]}->{op.type}"] += 1
        writer.update((n, op.type) for n in op.output_arg_names)
    return OrderedDict(single.most_common()), OrderedDict(pairs.most_common())
