"""Reading what `text` writes, or what a person wrote in its manner.

    program  = ["seed" number] block...
    block    = "block" number ["in" number] ["of" number] "{" (variable | op)... "}"
    variable = ("data" | "param" | "var") name ":" [kind] [dtype "[" sizes "]"] fact...
    op       = type "(" slots ")" "->" "(" slots ")" ["{" attributes "}"]
               [":" role ["(" names ")"] ["in" scope]]

A ``#`` starts a comment. Line ends count only behind a variable; attributes at their
default, role and scope may be left out. Names with odd characters stand in quotes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from fluidx import kernels
from fluidx.kernels import VarType, as_dtype

from .attrs import coerce, kind_of
from .block import Block
from .errors import BuildError, Where
from .operator import Operator
from .program import Program
from .roles import NAMESCOPE, ROLE, ROLE_VAR, OpRole
from .text import DTYPE_WORDS
from .variable import Parameter, Variable

__all__ = ["parse_program"]

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|\#[^\n]*) | (?P<line>\n) | (?P<arrow>->)
      | (?P<string>"(?:[^"\\\n]|\\.)*") | (?P<mark>[(){}\[\],:=|])
      | (?P<word>[A-Za-z0-9_@.\-/+]+)""",
    re.VERBOSE,
)
_KINDS = {word: kind for kind, word in DTYPE_WORDS.items()}
_VALUES = {
    "true": True,
    "false": False,
    "null": None,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
    "NaN": math.nan,
}
_NUMBER = re.compile(r"-?[0-9]+\Z")


class _Token(NamedTuple):
    kind: str
    text: str
    line: int

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else repr(self.text)


class _Reference(NamedTuple):
    """``block N`` in an attribute, before that block is known."""

    number: int
    line: int


def parse_program(text: str) -> Program:
    """The program that a text describes. BuildError says line and expectation."""
    return _Parser(_tokens(text)).program()


def _fail(line: int, message: str) -> NoReturn:
    raise BuildError(f"program text, line {line}: {message}")


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    line, at = 1, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            _fail(line, f"cannot read {text[at : at + 20]!r}")
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(_Token(kind, match.group(), line))
        line += kind == "line"
        at = match.end()
    return [*found, _Token("end", "", line)]


class _Parser:
    """Recursive descent over tokens; op attributes are resolved at the end."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.made = Program()

    # ------------------------------------------------ tokens

    def skip_lines(self) -> None:
        while self.tokens[self.at].kind == "line":
            self.at += 1

    def peek(self) -> _Token:
        """The next token that is not a line end."""
        self.skip_lines()
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.peek()
        self.at += token.kind != "end"
        return token

    def accept(self, text: str) -> bool:
        if self.peek().text == text and self.peek().kind != "string":
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        token = self.peek()
        if not self.accept(text):
            _fail(token.line, f"expected {text!r}, got {token}")

    def name(self, what: str) -> str:
        token = self.take()
        if token.kind == "word":
            return token.text
        if token.kind == "string":
            return str(self.string(token))
        _fail(token.line, f"expected {what}, got {token}")

    def string(self, token: _Token) -> Any:
        try:
            return json.loads(token.text)
        except ValueError as error:
            _fail(token.line, f"{token.text} is not a JSON string: {error}")

    def number(self, what: str) -> int:
        token = self.take()
        if not _NUMBER.match(token.text):
            _fail(token.line, f"expected {what}, got {token}")
        return int(token.text)

    def items(self, close: str, item: Callable[[], Any]) -> list[Any]:
        """What stands between commas up to `close`."""
        found: list[Any] = []
        while not self.accept(close):
            if found:
                self.expect(",")
            found.append(item())
        return found

    # ------------------------------------------------ program and blocks

    def program(self) -> Program:
        if self.accept("seed"):
            self.made.random_seed = self.number("the random seed")
        self.made.blocks = []
        while self.peek().kind != "end":
            self.block()
        if not self.made.blocks:
            _fail(self.peek().line, "expected a block, got the end of the text")
        for block in self.made.blocks:
            for op in block.ops:
                self.finish(op)
            ops, block.ops = block.ops, []
            for op in ops:
                block._adopt(op)
        self.made._touch()
        return self.made

    def block(self) -> None:
        line = self.peek().line
        self.expect("block")
        index = self.number("the block's number")
        count = len(self.made.blocks)
        if index != count:
            _fail(line, f"expected block {count}, got block {index}")
        parent = self.number("the enclosing block") if self.accept("in") else -1
        if not (0 <= parent < index or (parent == -1 and index == 0)):
            _fail(line, f"block {index} needs 'in' and a block before it")
        block = Block(self.made, index, parent)
        if self.accept("of"):
            block.forward_block_idx = self.number("the forward block")
        self.made.blocks.append(block)
        self.expect("{")
        while not self.accept("}"):
            self.line(block)

    def line(self, block: Block) -> None:
        token = self.peek()
        after = self.tokens[self.at + 1]
        is_op = after.text == "(" and after.kind == "mark"
        if token.text in ("data", "param", "var") and not is_op:
            self.variable(block)
        elif token.kind in ("word", "string") and is_op:
            block.ops.append(self.op(block))
        else:
            _fail(
                token.line, f"expected a variable, an op or '}}' to end it, got {token}"
            )

    # ------------------------------------------------ variables

    def variable(self, block: Block) -> None:
        word = self.take()
        facts: dict[str, Any] = {"name": self.name("the variable's name")}
        if facts["name"] in block.vars:
            _fail(word.line, f"variable {facts['name']} is declared twice")
        self.expect(":")
        self.type(facts)
        self.facts(facts)
        made = Parameter if word.text == "param" else Variable
        facts["is_data"] = word.text == "data"
        lasts = facts.pop("transient", False)
        try:
            var = made(block, **facts)
        except (TypeError, ValueError) as error:
            _fail(word.line, str(error))
        if lasts:
            var.persistable = False
        block.vars[var.name] = var

    def type(self, facts: dict[str, Any]) -> None:
        token = self.take()
        kind = _KINDS.get(token.text)
        if kind is None:
            _fail(token.line, f"expected a type such as float32[-1, 10], got {token}")
        if self.tokens[self.at].text != "[":
            facts["type"] = kind
            follows = self.tokens[self.at]
            if follows.text not in _KINDS:
                self.check_kind(kind, token, follows)
                return
            self.at += 1
            token, kind = follows, _KINDS[follows.text]
        try:
            facts["dtype"] = as_dtype(kind)
        except TypeError as error:
            _fail(token.line, str(error))
        self.expect("[")
        facts["shape"] = self.items("]", lambda: self.number("a size"))

    def check_kind(self, kind: VarType, token: _Token, follows: _Token) -> None:
        """A kind may stand alone, an element type needs its shape."""
        try:
            as_dtype(kind)
        except TypeError:
            return
        _fail(token.line, f"expected '[' and the shape behind {token}, got {follows}")

    def facts(self, facts: dict[str, Any]) -> None:
        """Words behind the type, up to the end of the line."""
        words = {
            "persistable": ("persistable", True),
            "stop_gradient": ("stop_gradient", True),
            "check_feed": ("need_check_feed", True),
            "frozen": ("trainable", False),
            "distributed": ("is_distributed", True),
            "transient": ("transient", True),
        }
        while self.tokens[self.at].kind == "word":
            token = self.take()
            if token.text == "lod_level":
                self.expect("=")
                facts["lod_level"] = self.number("the LoD level")
            elif token.text in words:
                name, value = words[token.text]
                facts[name] = value
            else:
                known = ", ".join(["lod_level=N", *words])
                _fail(token.line, f"expected one of {known}, got {token}")
        follows = self.tokens[self.at]
        if follows.kind not in ("line", "end") and follows.text != "}":
            _fail(follows.line, f"expected the end of the line, got {follows}")

    # ------------------------------------------------ ops

    def op(self, block: Block) -> Operator:
        line = self.peek().line
        type = self.name("the op's type")
        self.expect("(")
        inputs = self.slots()
        self.expect("->")
        self.expect("(")
        outputs = self.slots()
        where = Where("<program text>", line, f"block {block.idx}")
        op = Operator(block, type, inputs, outputs, where=where)
        if self.accept("{"):
            for name, value in self.items("}", self.attribute):
                if name in op.attrs:
                    _fail(line, f"attribute {name} stands twice")
                op.attrs[name] = value
        self.role(op)
        return op

    def slots(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        line = self.peek().line
        for name, args in self.items(")", self.slot):
            if name in found:
                _fail(line, f"slot {name} stands twice")
            found[name] = args
        return found

    def slot(self) -> tuple[str, list[str]]:
        name = self.name("a slot")
        self.expect("=")
        if self.accept("["):
            return name, self.items("]", lambda: self.name("a variable"))
        return name, [self.name("a variable")]

    def attribute(self) -> tuple[str, Any]:
        name = self.name("an attribute")
        self.expect(":")
        return name, self.value(name)

    def value(self, name: str = "") -> Any:
        """A JSON value without objects, ``block N``, or a dtype's name."""
        token = self.take()
        if token.text == "[":
            return self.items("]", self.value)
        if token.kind == "string":
            return self.string(token)
        if token.text in _VALUES:
            return _VALUES[token.text]
        if token.text == "block":
            return _Reference(self.number("the block's number"), token.line)
        if name.endswith("dtype") and token.text in _KINDS:
            return int(_KINDS[token.text])
        try:
            return json.loads(token.text)
        except ValueError:
            _fail(token.line, f"expected a value, got {token}")

    def role(self, op: Operator) -> None:
        op.attrs[ROLE], op.attrs[NAMESCOPE] = 0, "/"
        if not self.accept(":"):
            return
        token = self.peek()
        words = [self.name("a role")]
        while self.accept("|"):
            words.append(self.name("a role"))
        try:
            op.attrs[ROLE] = int(OpRole.from_label("|".join(words)))
        except ValueError as error:
            _fail(token.line, str(error))
        if self.accept("("):
            op.attrs[ROLE_VAR] = self.items(")", lambda: self.name("a variable"))
        if self.accept("in"):
            op.attrs[NAMESCOPE] = self.name("a name scope")

    def finish(self, op: Operator) -> None:
        """Resolve ``block N``, bring attributes in form, fill in defaults."""
        line = op.where.line if op.where else 0
        for name, value in op.attrs.items():
            value = self.resolved(value)
            try:
                op.attrs[name] = coerce(kind_of(op.type, name, value), value)
            except TypeError as error:
                _fail(line, f"op {op.type}, attribute {name}: {error}")
        if kernels.has(op.type):
            op.fill_defaults()

    def resolved(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.resolved(v) for v in value]
        if not isinstance(value, _Reference):
            return value
        if value.number >= len(self.made.blocks):
            _fail(value.line, f"there is no block {value.number}")
        return self.made.blocks[value.number]
