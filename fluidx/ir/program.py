"""Programs: blocks of ops. Also the default programs and their guards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from fluidx.kernels import VarType

from .block import Block
from .operator import Operator
from .prune import prune_backward, pruned_blocks
from .roles import ROLE, ROLE_VAR, OpRole
from .variable import Parameter, Variable

__all__ = [
    "Program",
    "default_main_program",
    "default_startup_program",
    "switch_main_program",
    "switch_startup_program",
    "program_guard",
    "device_guard",
]


#: what the reference 1.8.5 writes into every saved program
DESC_VERSION = 1008005

#: the seed that new programs have (see `Program.global_seed`)
_global_seed = 0


class Program:
    """A static graph: block 0 is global, further blocks belong to control flow.

    The Python objects are the only truth. ``version`` counts changes. Mirrors
    ``fluid.Program``.

    >>> p = Program()
    >>> p.num_blocks, p.random_seed
    (1, 0)
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = [Block(self, 0)]
        self.current_block_idx = 0
        self._version = 0
        self._seed = _global_seed
        self._op_role = OpRole.Forward
        self._op_role_var: list[str] = []
        self._device = ""
        # the number that a saved program carries, and what else its bytes said
        self._desc_version: int | None = DESC_VERSION
        self.wire = b""
        # ops with op_role_var are told apart from hand-made ones by passes
        self._is_distributed = False
        self._is_chief = False
        self._endpoints: list[str] = []
        self._trainers_endpoints: list[str] = []
        self._nccl_comm_num = 1
        self._parameters_on_pservers: Any = None
        self._distributed_lookup_table: str | None = None
        self._appending_grad_times = 0

    # ------------------------------------------------ structure

    def _touch(self) -> None:
        self._version += 1

    @property
    def version(self) -> int:
        """Counts changes: a plan made for one version is not used for another."""
        return self._version

    @property
    def random_seed(self) -> int:
        """Seed of all random ops that have none of their own; 0: not seeded."""
        return self._seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise ValueError(f"random_seed must be an integer, got {seed!r}")
        self._seed = seed
        self._touch()

    def global_seed(self, seed: int = 0) -> None:
        """Set the random seed of this program and of all that are made from now on.

        ValueError: not an integer. Mirrors ``Program.global_seed``.
        """
        global _global_seed
        self.random_seed = seed
        _global_seed = seed

    @property
    def num_blocks(self) -> int:
        return len(self.blocks)

    def global_block(self) -> Block:
        return self.blocks[0]

    def block(self, index: int) -> Block:
        return self.blocks[index]

    def current_block(self) -> Block:
        return self.blocks[self.current_block_idx]

    def _create_block(self, parent_idx: int | None = None) -> Block:
        """Open a sub-block (of the current one by default) and make it current."""
        parent = self.current_block_idx if parent_idx is None else parent_idx
        block = Block(self, len(self.blocks), parent)
        self.blocks.append(block)
        self.current_block_idx = block.idx
        self._touch()
        return block

    def _rollback(self) -> None:
        """Make the parent of the current block current again."""
        self.current_block_idx = self.current_block().parent_idx

    def list_vars(self) -> Iterator[Variable]:
        """All variables of all blocks."""
        for block in self.blocks:
            yield from block.vars.values()

    def all_parameters(self) -> list[Parameter]:
        return [p for block in self.blocks for p in block.all_parameters()]

    def all_ops(self) -> Iterator[Operator]:
        """All ops of all blocks, in order."""
        for block in self.blocks:
            yield from block.ops

    # ------------------------------------------------ op roles

    @property
    def op_role(self) -> int:
        """Role of the ops being built."""
        return self._op_role

    @property
    def op_role_var(self) -> list[str]:
        return self._op_role_var

    @contextlib.contextmanager
    def _role_guard(self, role: int, role_vars: Sequence[Any] = ()) -> Iterator[None]:
        kept = self._op_role, self._op_role_var
        self._op_role = OpRole(role)
        self._op_role_var = [getattr(v, "name", v) for v in role_vars]
        try:
            yield
        finally:
            self._op_role, self._op_role_var = kept

    def _optimized_guard(
        self, param_and_grads: Sequence[Any]
    ) -> contextlib.AbstractContextManager[None]:
        """Ops built inside update these (parameter, gradient)."""
        return self._role_guard(OpRole.Optimize, param_and_grads)

    def _backward_role_guard(self) -> contextlib.AbstractContextManager[None]:
        return self._role_guard(OpRole.Backward)

    def _lr_schedule_guard(
        self, is_with_opt: bool = False
    ) -> contextlib.AbstractContextManager[None]:
        """Ops built inside compute the learning rate."""
        role = OpRole.LRSched
        return self._role_guard(role | OpRole.Optimize if is_with_opt else role)

    # ------------------------------------------------ copies

    def clone(self, for_test: bool = False) -> Program:
        """An independent copy.

        for_test: without backward and optimize ops, and with ``is_test`` set on ops
        that have it (dropout, batch_norm). Clone before `minimize` is called, as in
        the reference, or after: the result is the same.
        """
        made = Program()
        made._seed = self._seed
        made._op_role, made._op_role_var = self._op_role, list(self._op_role_var)
        made.current_block_idx = self.current_block_idx
        for extra in (
            "_is_distributed",
            "_is_chief",
            "_endpoints",
            "_trainers_endpoints",
            "_nccl_comm_num",
            "_parameters_on_pservers",
            "_distributed_lookup_table",
            "_appending_grad_times",
            "_desc_version",
            "wire",
        ):
            setattr(made, extra, getattr(self, extra))
        made.blocks = [Block(made, b.idx, b.parent_idx) for b in self.blocks]
        for old, new in zip(self.blocks, made.blocks):
            new.forward_block_idx = old.forward_block_idx
            new.wire = old.wire
            _copy_block(old, new)
        if for_test:
            prune_backward(made)
            made._set_is_test()
        made._version = 1
        return made

    def _set_is_test(self) -> None:
        for op in self.all_ops():
            if "is_test" in op.attrs:
                op.attrs["is_test"] = True

    def _inference_optimize(self, prune_read_op: bool = True) -> Program:
        """A copy with ``is_test`` set; prune_read_op: and without its readers."""
        made = self.clone()
        made._set_is_test()
        block = made.global_block()
        ends = [i for i, op in enumerate(block.ops) if op.type == "read"]
        if prune_read_op and ends:
            del block.ops[: ends[-1] + 1]
            for var in list(block.vars.values()):
                if var.type == VarType.READER:
                    block._remove_var(var.name)
        return made

    def _prune(self, targets: Sequence[Variable | str | Operator]) -> Program:
        """A copy with only the ops that `targets` depend on."""
        return self._prune_with_input((), targets)

    def _prune_with_input(
        self,
        feeded_var_names: Sequence[str],
        targets: Sequence[Variable | str | Operator],
    ) -> Program:
        """The same, taking the fed variables as given: their makers go too."""
        made = self.clone()
        pruned_blocks(made, set(feeded_var_names), _target_names(self, targets))
        return made

    def prune(
        self,
        targets: Sequence[Variable | str | Operator],
        feeds: Sequence[str] = (),
    ) -> Program:
        """A copy with only what `targets` need, given that `feeds` are fed."""
        return self._prune_with_input(feeds, targets)

    # ------------------------------------------------ other forms

    def to_text(self) -> str:
        """The whole program as text that `from_text` reads back."""
        from .text import program_text

        return program_text(self)

    @staticmethod
    def from_text(text: str) -> Program:
        """Parse what `to_text` wrote; BuildError names the line."""
        from .parse import parse_program

        return parse_program(text)

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        return self.to_text()

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        ops = sum(len(b.ops) for b in self.blocks)
        return f"<Program: {len(self.blocks)} blocks, {ops} ops>"

    def serialize_to_string(self) -> bytes:
        """The program as the reference's ProgramDesc protobuf bytes."""
        from .proto import to_bytes

        return to_bytes(self)

    @staticmethod
    def parse_from_string(binary_str: bytes) -> Program:
        """A program from ProgramDesc bytes, of fluidx or of the reference."""
        from .proto import from_bytes

        return from_bytes(binary_str)

    @property
    def desc(self) -> Any:
        """A view whose facts are calls (``program.desc.num_blocks()``); see `desc`."""
        from .desc import ProgramDesc

        return ProgramDesc(self)

    def graph(self, block: int = 0) -> Any:
        """Which op of a block must run before which, as a networkx DiGraph.

        See `fluidx.ir.views` for this and other views.
        """
        from .views import data_flow

        return data_flow(self.blocks[block])

    def fingerprint(self) -> str:
        """64 hex digits, a pure function of the program's content.

        Where an op was written and how often the program changed do not count.
        """
        from .fingerprint import fingerprint

        return fingerprint(self)


def _copy_block(old: Block, new: Block) -> None:
    for name, var in old.vars.items():
        new.vars[name] = var.copy_to(new)
    blocks = new.program.blocks
    for op in old.ops:
        made = op.copy_to(new)
        for key, value in made.attrs.items():
            if isinstance(value, Block):
                made.attrs[key] = blocks[value.idx]
            elif isinstance(value, list):
                made.attrs[key] = [
                    blocks[v.idx] if isinstance(v, Block) else v for v in value
                ]
        new._adopt(made)


def _target_names(
    program: Program, targets: Sequence[Variable | str | Operator]
) -> set[str]:
    many = targets if isinstance(targets, (list, tuple)) else [targets]
    found: set[str] = set()
    for target in many:
        if isinstance(target, Operator):
            found.update(target.output_arg_names)
        elif isinstance(target, str):
            found.add(target)
        elif isinstance(target, Variable):
            found.add(target.name)
        else:
            raise TypeError(
                f"a target is a Variable, its name or an Operator, got {target!r:.60}"
            )
    return found


# ---------------------------------------------------------------- default programs

_main = Program()
_startup = Program()


def default_main_program() -> Program:
    """The program that layers append to."""
    return _main


def default_startup_program() -> Program:
    """The program that initialisers append to."""
    return _startup


def switch_main_program(program: Program) -> Program:
    """Make another program the default; returns the former one."""
    global _main
    old, _main = _main, program
    return old


def switch_startup_program(program: Program) -> Program:
    """Make another startup program the default; returns the former one."""
    global _startup
    old, _startup = _startup, program
    return old


@contextlib.contextmanager
def program_guard(
    main_program: Program, startup_program: Program | None = None
) -> Iterator[None]:
    """Build into these programs inside the block (``fluid.program_guard``)."""
    for role, program in (("main", main_program), ("startup", startup_program)):
        if program is not None and not isinstance(program, Program):
            raise TypeError(
                f"program_guard: the {role} program must be a Program, got "
                f"{program.__class__.__name__}"
            )
    if main_program is None:
        raise TypeError("program_guard needs a main program, got None")
    old_main = switch_main_program(main_program)
    old_startup = None
    if startup_program is not None:
        old_startup = switch_startup_program(startup_program)
    try:
        yield
    finally:
        switch_main_program(old_main)
        if old_startup is not None:
            switch_startup_program(old_startup)


@contextlib.contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Mark the ops built inside with ``op_device`` ("cpu", "gpu", "gpu:N")."""
    name = (device or "").partition(":")[0]
    if name not in ("", "cpu", "gpu"):
        raise ValueError(f"device_guard takes 'cpu', 'gpu' or 'gpu:N', got {device!r}")
    program = default_main_program()
    kept, program._device = program._device, device or ""
    try:
        yield
    finally:
        program._device = kept


__all__ += ["ROLE", "ROLE_VAR"]
