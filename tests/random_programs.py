"""Random programs with odd names and values, for tests of properties."""

from __future__ import annotations

import math
import random
from typing import Any

from fluidx.ir import Block, Operator, Parameter, Program, Variable, Where
from fluidx.kernels import VarType

_LETTERS = 'abXY09_@.-/+ ,:#"()[]{}=|\\\n\té\u4e2d'
_ELEMENTS = [t for t in VarType if t <= VarType.FP64 or t >= VarType.SIZE_T]
_KINDS = [t for t in VarType if VarType.LOD_TENSOR <= t <= VarType.TUPLE]
_FLOATS = [
    0.0,
    -0.0,
    1.5,
    0.1,
    1 / 3,
    -1e-8,
    1e30,
    1e300,
    math.inf,
    -math.inf,
    math.nan,
]
_INTS = [0, 1, -1, 7, 2**31 - 1, -(2**31), 2**40]


class Maker:
    """Draws the parts of a program from one seeded generator."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)

    def name(self) -> str:
        if self.r.random() < 0.7:
            return (
                f"{self.r.choice(['fc', 'in', 'var', 'block'])}_{self.r.randrange(9)}"
            )
        return "".join(self.r.choices(_LETTERS, k=self.r.randint(1, 6)))

    def program(self) -> Program:
        program = Program()
        if self.r.random() < 0.5:
            program.random_seed = self.r.randrange(1, 100)
        for index in range(1, self.r.randint(1, 4)):
            block = Block(program, index, self.r.randrange(index))
            block.forward_block_idx = self.r.choice([-1, -1, self.r.randrange(index)])
            program.blocks.append(block)
        for block in program.blocks:
            for _ in range(self.r.randrange(6)):
                self.variable(block)
            for _ in range(self.r.randrange(6)):
                block._adopt(self.op(block))
        return program

    def flag(self) -> bool:
        return self.r.random() < 0.3

    def variable(self, block: Block) -> None:
        facts: dict[str, Any] = {
            "name": self.name(),
            "dtype": self.r.choice(_ELEMENTS),
            "shape": self.r.choices([-1, 1, 2, 1000], k=self.r.randrange(4)),
            "lod_level": self.r.choice([0, 0, 2]),
            "stop_gradient": self.flag(),
            "need_check_feed": self.flag(),
        }
        if self.flag():
            facts |= {"shape": [3, 2], "trainable": self.flag()}
            var: Variable = Parameter(block, is_distributed=self.flag(), **facts)
        else:
            kind = self.r.choice([VarType.LOD_TENSOR, self.r.choice(_KINDS)])
            facts |= {"persistable": self.flag(), "is_data": self.flag()}
            var = Variable(block, kind, **facts)
        block.vars[var.name] = var

    def value(self, program: Program) -> Any:
        r = self.r
        one = r.choice(
            [
                lambda: r.choice(_INTS),
                lambda: r.choice(_FLOATS),
                lambda: self.name(),
                lambda: bool(r.randrange(2)),
                lambda: r.choice(program.blocks),
            ]
        )
        return [one() for _ in range(r.randrange(4))] if r.random() < 0.5 else one()

    def slots(self) -> dict[str, list[str]]:
        return {
            f"{self.r.choice('XYZ')}{self.r.choice(['', '@GRAD'])}": [
                self.name() for _ in range(self.r.randrange(3))
            ]
            for _ in range(self.r.randrange(3))
        }

    def op(self, block: Block) -> Operator:
        where = Where("net.py", self.r.randrange(1, 99), "net") if self.flag() else None
        kind = self.r.choice(["mul", "scale", "concat", "no_such_op", "data", "of"])
        op = Operator(block, kind, self.slots(), self.slots(), where=where)
        op.attrs["op_role"] = self.r.choice([0, 0, 1, 2, 18, 257, 4096, 77])
        if self.flag():
            op.attrs["op_role_var"] = [self.name(), self.name()]
        if self.flag():
            op.attrs["op_namescope"] = "/" + self.name() + "/"
        for _ in range(self.r.randrange(4)):
            op.attrs[f"a_{self.name()}"] = self.value(block.program)
        if kind == "concat":
            op.attrs["axis"] = self.r.randrange(-2, 3)
        return op
