"""The pass that puts casts into a forward program.

Afterwards each op of the global block runs in the precision that the lists give it:
its float inputs are cast where they come in the other one, and what it makes is
declared in its own. A value is cast once per precision.
"""

from __future__ import annotations

from fluidx.ir import Block, Operator, Program, Variable, make_op
from fluidx.kernels import VarType

from .lists import AutoMixedPrecisionLists

__all__ = ["rewrite"]

_SUFFIX = {VarType.FP16: "fp16", VarType.BF16: "bf16", VarType.FP32: "fp32"}
#: slots that take half precision where an op's other ones stay in float32
_HALF_SLOTS = {"batch_norm": ("X", "Y")}


def rewrite(program: Program, lists: AutoMixedPrecisionLists) -> None:
    """Put casts into the global block of a program without backward ops."""
    _Rewriter(program.global_block(), lists).run()


class _Rewriter:
    """One walk over a block, from the first op to the last."""

    def __init__(self, block: Block, lists: AutoMixedPrecisionLists) -> None:
        self.block = block
        self.lists = lists
        self.half = lists.dtype
        #: variable -> precision of the op that wrote it last, if it was decided
        self.written: dict[str, VarType | None] = {}
        self.casts: dict[tuple[str, VarType], str] = {}

    def run(self) -> None:
        made: list[Operator] = []
        for op in self.block.ops:
            wanted = self._precision(op)
            if wanted is not None:
                made += self._cast_inputs(op, wanted)
                self._declare_outputs(op, wanted)
            made.append(op)
            for name in op.output_arg_names:
                self.written[name] = wanted
                for kind in _SUFFIX:  # a cast of the earlier value is stale
                    self.casts.pop((name, kind), None)
        self.block.ops = made
        self.block.program._touch()

    def _precision(self, op: Operator) -> VarType | None:
        """half, FP32, or None for gray ops of which no maker is decided."""
        lists = self.lists
        touched = (*op.input_arg_names, *op.output_arg_names)
        if not lists.black_varnames.isdisjoint(touched):
            return VarType.FP32
        if op.type in lists.black_list:
            return VarType.FP32
        if op.type in lists.white_list:
            return self.half
        if op.type not in lists.gray_list:
            return VarType.FP32
        makers = {self.written.get(n) for n in op.input_arg_names}
        if VarType.FP32 in makers:
            return VarType.FP32
        return self.half if self.half in makers else None

    def _cast_inputs(self, op: Operator, wanted: VarType) -> list[Operator]:
        """Redirect inputs of the other precision to casts; returns the new casts."""
        source = VarType.FP32 if wanted != VarType.FP32 else self.half
        made: list[Operator] = []
        for slot in sorted(op.inputs):
            if not _takes_half(op, slot):
                continue
            for name in op.input(slot):
                var = self.block._find_var_recursive(name)
                if var is None or not _is_tensor(var, source):
                    continue
                made += self._cast(op, var, wanted)
                _redirect(op, name, self.casts[name, wanted])
        self._set_dtypes(op, source, wanted)
        return made[::-1]

    def _cast(self, op: Operator, var: Variable, wanted: VarType) -> list[Operator]:
        """The cast op of a variable, unless there is one already."""
        if (var.name, wanted) in self.casts:
            return []
        name = f"{var.name}.cast_{_SUFFIX[wanted]}"
        self.block.create_var(
            name=name, shape=var.shape, dtype=wanted, stop_gradient=False
        )
        attrs = {"in_dtype": int(var.dtype), "out_dtype": int(wanted)}
        cast = make_op(
            self.block,
            "cast",
            {"X": [var.name]},
            {"Out": [name]},
            attrs,
            role=op.role,
            where=op.where,
        )
        cast.infer()
        self.casts[var.name, wanted] = name
        return [cast]

    def _set_dtypes(self, op: Operator, source: VarType, wanted: VarType) -> None:
        """Attributes that tell element types.

        The reference leaves `dtype` alone (of noise as large as a batch in half), and
        then the op makes float32 where half is declared.
        """
        # the reference changes a float64 input's too, and then loses its gradient's
        if op.has_attr("in_dtype") and op.attr("in_dtype") != VarType.FP64:
            op._set_attr("in_dtype", int(wanted))
        for name in ("out_dtype", "dtype"):
            asked = op.has_attr(name) and op.attr(name) == source
            if asked and (wanted != VarType.FP32 or op.type != "cast"):
                op._set_attr(name, int(wanted))

    def _declare_outputs(self, op: Operator, wanted: VarType) -> None:
        """The reference leaves a black op's outputs in half where X was."""
        other = VarType.FP32 if wanted != VarType.FP32 else self.half
        if other == self.half and op.type == "cast":
            return  # what the user asked for
        for slot, names in op.outputs.items():
            if not _takes_half(op, slot):
                continue
            for name in names:
                var = self.block._find_var_recursive(name)
                if var is not None and _is_tensor(var, other):
                    var.set_dtype(wanted)


def _takes_half(op: Operator, slot: str) -> bool:
    only = _HALF_SLOTS.get(op.type)
    return only is None or slot in only


def _is_tensor(var: Variable, dtype: VarType) -> bool:
    return var.type == VarType.LOD_TENSOR and var.dtype == dtype


def _redirect(op: Operator, old: str, new: str) -> None:
    """Let an op, and blocks inside it, read another variable.

    The reference renames the input of the op alone, and its blocks go on reading
    the value in the other precision.
    """
    op._rename_input(old, new)
    for block in op.sub_blocks:
        for inner in block.ops:
            _redirect(inner, old, new)
