"""Blocks: ops in order, and the variables declared there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import names
from .errors import BuildError
from .operator import Operator, user_line
from .variable import Parameter, Variable

if TYPE_CHECKING:
    from .program import Program

__all__ = ["Block"]


class Block:
    """A list of ops over variables of its own and of the blocks around it.

    idx: position in the program. parent_idx: the enclosing block, -1 for none.
    forward_block_idx: of a gradient block, the block that it differentiates.
    """

    def __init__(self, program: Program, idx: int, parent_idx: int = -1) -> None:
        self.program = program
        self.idx = idx
        self.parent_idx = parent_idx
        self.forward_block_idx = -1
        self.vars: dict[str, Variable] = {}
        self.ops: list[Operator] = []
        self.wire = b""

    @property
    def desc(self) -> Any:
        """A view in which facts are calls (``block.desc.op_size()``); see `desc`."""
        from .desc import BlockDesc

        return BlockDesc(self)

    @property
    def backward_block_idx(self) -> int:
        """The block that differentiates this one; -1: none."""
        return next(
            (b.idx for b in self.program.blocks if b.forward_block_idx == self.idx), -1
        )

    # ------------------------------------------------ variables

    @property
    def parent(self) -> Block | None:
        return self.program.blocks[self.parent_idx] if self.parent_idx >= 0 else None

    def has_var(self, name: str) -> bool:
        return name in self.vars

    def var(self, name: str) -> Variable:
        """A variable of this block; ValueError if it has none of that name."""
        if not isinstance(name, str):
            raise TypeError(f"a variable's name is a string, got {name!r}")
        found = self.vars.get(name)
        if found is None:
            raise ValueError(f"block {self.idx} has no variable {name!r}")
        return found

    def _find_var_recursive(self, name: str) -> Variable | None:
        block: Block | None = self
        while block is not None:
            if name in block.vars:
                return block.vars[name]
            if block.forward_block_idx >= 0:  # a gradient block sees what it derives
                forward = block.program.blocks[block.forward_block_idx]
                if name in forward.vars:
                    return forward.vars[name]
            block = block.parent
        return None

    def _var_recursive(self, name: str) -> Variable:
        found = self._find_var_recursive(name)
        if found is None:
            raise ValueError(f"no variable {name!r} in block {self.idx} or around it")
        return found

    def create_var(self, *args: Any, **kwargs: Any) -> Variable:
        """Declare a variable (arguments of `Variable`); an existing one is returned.

        BuildError: it exists with another shape, dtype, LoD level, kind or
        persistability than now given.
        """
        if not kwargs.get("name"):
            kwargs["name"] = names.generate("_generated_var")
        name = kwargs["name"]
        if name in self.vars:
            return self._redeclared(self.vars[name], args, kwargs)
        var = Variable(self, *args, **kwargs)
        self.vars[name] = var
        self.program._touch()
        if "initializer" in kwargs:
            kwargs["initializer"](var, self)
        return var

    def _redeclared(
        self, known: Variable, args: tuple[Any, ...], facts: dict[str, Any]
    ) -> Variable:
        wanted = Variable(self, *args, **facts)
        given = {**facts, **({"type": args[0]} if args else {})}
        for fact in ("type", "shape", "dtype", "lod_level", "persistable"):
            old, new = getattr(known, fact), getattr(wanted, fact)
            if given.get(fact) is not None and old != new:
                raise BuildError(
                    f"variable {known.name} has been created before, with {fact} "
                    f"{old}; now it is to have {new}"
                )
        if "stop_gradient" in facts:
            known.stop_gradient = wanted.stop_gradient
        return known

    def create_parameter(self, *args: Any, **kwargs: Any) -> Parameter:
        """Declare a parameter in the global block (arguments of `Parameter`)."""
        home = self.program.global_block()
        param = Parameter(home, *args, **kwargs)
        known = home.vars.get(param.name)
        if isinstance(known, Parameter):
            if known.shape != param.shape or known.dtype != param.dtype:
                raise BuildError(
                    f"parameter {param.name} exists with shape {list(known.shape)} "
                    f"{known.dtype}, now asked for {list(param.shape)} {param.dtype}"
                )
            return known
        home.vars[param.name] = param
        self.program._touch()
        initializer = kwargs.get("initializer")
        if initializer is not None:
            initializer(param, self)
        return param

    def all_parameters(self) -> list[Parameter]:
        return [v for v in self.vars.values() if isinstance(v, Parameter)]

    def iter_parameters(self) -> Iterator[Parameter]:
        return iter(self.all_parameters())

    def _remove_var(self, name: str) -> None:
        del self.vars[name]
        self.program._touch()

    def _rename_var(self, old: str, new: str) -> Variable:
        """Rename a variable of this block, in its ops too."""
        var = self.var(old)
        del self.vars[old]
        var.name = new
        self.vars[new] = var
        for op in self.ops:
            op._rename_input(old, new)
            op._rename_output(old, new)
        return var

    def _clone_variable(
        self, var: Variable, force_persistable: bool = True
    ) -> Variable:
        """Declare an equal plain variable here (parameters lose their nature)."""
        facts = Variable.facts(var)
        if force_persistable:
            facts["persistable"] = True
        return self.create_var(**facts)

    # ------------------------------------------------ ops

    def append_op(
        self,
        type: str,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        stop_gradient: bool = False,
    ) -> Operator:
        """Build an op at the end of this block: checked, inferred, remembered.

        Slots take a Variable, a name or a list of them. BuildError names the op, the
        slot or attribute, and the user's line.
        """
        op = self._build(type, inputs, outputs, attrs, stop_gradient)
        self.ops.append(op)
        return op

    def _prepend_op(self, *args: Any, **kwargs: Any) -> Operator:
        return self._insert_op(0, *args, **kwargs)

    def _insert_op(self, index: int, *args: Any, **kwargs: Any) -> Operator:
        op = self._build(*args, **kwargs)
        self.ops.insert(index, op)
        return op

    def _remove_op(self, index: int) -> None:
        del self.ops[index]
        self.program._touch()

    def _build(
        self,
        type: str,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        stop_gradient: bool = False,
    ) -> Operator:
        op = Operator(self, type, inputs, outputs, attrs, user_line())
        op.fill_common()
        op.check_slots()
        op.infer()
        for var in self._outputs(op):
            var.op = op
            if stop_gradient:
                var.stop_gradient = True
        self.program._touch()
        return op

    def _outputs(self, op: Operator) -> Iterator[Variable]:
        for name in op.output_arg_names:
            var = self._find_var_recursive(name)
            if var is not None:
                yield var

    def _adopt(self, op: Operator) -> None:
        """Append a finished op as it is: not checked, not inferred."""
        self.ops.append(op)
        for var in self._outputs(op):
            var.op = op

    def _sync_with_cpp(self) -> None:
        """Nothing to do: the Python objects are the program."""

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        from .text import block_text

        return block_text(self)

    __str__ = to_string

    def __repr__(self) -> str:
        return f"<block {self.idx}: {len(self.ops)} ops, {len(self.vars)} variables>"
