"""Which names of ``paddle`` a script uses, read from its source alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Use", "Uses", "uses_of"]


@dataclass(frozen=True)
class Use:
    """A name in full (``paddle.fluid.layers.fc``), where it stands, and how.

    arguments: the keywords of a call of it; positional: how many others the call has,
    -1 if that is unknown, None where it is not called. kind: "name", "maybe" (hasattr),
    "module" (an import of paddle), "import" (of another module), "op" (a type given to
    append_op), "old" (of numpy or Python's library), "numpy" or "python".
    """

    name: str
    line: int
    kind: str = "name"
    arguments: tuple[str, ...] = ()
    positional: int | None = None


#: modules beside paddle that old scripts ask for names that are gone
_OTHERS = frozenset(
    ("numpy", "collections", "time", "inspect", "fractions", "base64")
    + ("threading", "os")
)
_BUILTINS = frozenset(
    ("xrange", "raw_input", "unicode", "basestring", "long", "unichr", "reduce")
    + ("execfile",)
)

_METHODS = frozenset(["iteritems", "itervalues", "iterkeys", "has_key"])


class Uses(ast.NodeVisitor):
    """Collects uses; names bound anywhere in the file count everywhere in it."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self.stars: list[str] = []
        self.found: list[Use] = []
        self._calls: dict[int, ast.Call] = {}
        self._root = ""
        # imported names that the script also gives to things of its own
        self.unsure: set[str] = set()

    # ------------------------------------------------ what is imported

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            if top != "paddle":
                self.found.append(Use(alias.name, node.lineno, "import"))
            if top != "paddle" and top not in _OTHERS:
                continue
            if alias.asname:
                self.bound[alias.asname] = alias.name
            else:
                self.bound[top] = top
            if top == "paddle":
                self.found.append(Use(alias.name, node.lineno, "module"))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        top = module.partition(".")[0]
        if node.level or not module:
            return
        ours = top == "paddle"
        if not ours:
            self.found.append(Use(module, node.lineno, "import"))
        if not ours and top not in _OTHERS:
            return
        for alias in node.names:
            if alias.name == "*" and not ours:
                continue
            if alias.name == "*":
                self.stars.append(module)
                self.found.append(Use(module, node.lineno, "module"))
                continue
            name = f"{module}.{alias.name}"
            self.bound[alias.asname or alias.name] = name
            self.found.append(Use(name, node.lineno, "name" if ours else "old"))

    def visit_Assign(self, node: ast.Assign) -> None:
        """``layers = fluid.layers``: a second name."""
        name = self._full(node.value)
        if name is not None and isinstance(node.value, (ast.Attribute, ast.Name)):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.bound.setdefault(target.id, name)
        self.generic_visit(node)

    def _function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    ) -> None:
        """Arguments hide what was imported."""
        kept = dict(self.bound)
        every = ast.walk(node.args)
        hidden = {a.arg for a in every if isinstance(a, ast.arg)}
        for name in hidden:
            self.bound.pop(name, None)
        self.generic_visit(node)
        self.bound.update({n: kept[n] for n in hidden if n in kept})

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    # ------------------------------------------------ what is used

    def _full(self, node: ast.expr) -> str | None:
        """``fluid.layers.fc`` as ``paddle.fluid.layers.fc``; None for other things."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id in self.bound:
            self._root = node.id
            return ".".join([self.bound[node.id], *reversed(parts)])
        return None

    def visit_Call(self, node: ast.Call) -> None:
        self._calls[id(node.func)] = node
        self._op_type(node)
        if isinstance(node.func, ast.Name):
            if node.func.id == "float":
                self._float(node)
            elif node.func.id in ("getattr", "hasattr"):
                self._getattr(node, node.func.id)
        self.generic_visit(node)

    def _float(self, node: ast.Call) -> None:
        """``float(numpy.array(x))``: NumPy takes arrays without dimensions only."""
        inner = node.args[0] if len(node.args) == 1 else None
        if isinstance(inner, ast.Call):
            name = self._full(inner.func)
            if name in ("numpy.array", "numpy.asarray"):
                self.found.append(Use(f"float({name})", node.lineno, "numpy"))

    def _getattr(self, node: ast.Call, called: str) -> None:
        """``getattr(fluid.layers, "fc")``; with a default, it need not be there."""
        if len(node.args) < 2 or node.keywords:
            return
        owner, name = self._full(node.args[0]), node.args[1]
        if owner is None or not isinstance(name, ast.Constant):
            return
        if owner.partition(".")[0] == "paddle" and isinstance(name.value, str):
            sure = called == "getattr" and len(node.args) == 2
            kind = "name" if sure else "maybe"
            self.found.append(Use(f"{owner}.{name.value}", node.lineno, kind))

    def _op_type(self, node: ast.Call) -> None:
        """The type in ``append_op(type="relu", ...)``."""
        func = node.func
        called = func.attr if isinstance(func, ast.Attribute) else ""
        if isinstance(func, ast.Name):
            called = func.id
        if called not in ("append_op", "_prepend_op", "_insert_op", "Operator"):
            return
        given = [k.value for k in node.keywords if k.arg == "type"]
        place = 1 if called == "_insert_op" else 0
        given += node.args[place : place + 1]
        for value in given[:1]:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                self.found.append(Use(value.value, node.lineno, "op"))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self._full(node)
        if name is None:
            six = isinstance(node.value, ast.Name) and node.value.id in (
                "six",
                "future",
            )
            if node.attr in _METHODS and not six:
                self.found.append(Use(f".{node.attr}", node.lineno, "python"))
            self.generic_visit(node)
            return
        self._add(name, node, "maybe" if self._root in self.unsure else "name")

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            name = self.bound.get(node.id)
            if name is not None and name != node.id:
                self._add(name, node, "maybe" if node.id in self.unsure else "name")
            elif name is None and node.id in _BUILTINS:
                self.found.append(Use(node.id, node.lineno, "python"))
            elif name is None:
                for module in self.stars:
                    self._add(f"{module}.{node.id}", node, kind="star")

    def _add(self, name: str, node: ast.expr, kind: str = "name") -> None:
        top, dot, _ = name.partition(".")
        if top in _OTHERS:
            if not dot:
                return
            kind = "old"
        call = self._calls.get(id(node))
        if call is None:
            self.found.append(Use(name, node.lineno, kind))
            return
        exact = not any(isinstance(a, ast.Starred) for a in call.args)
        keywords = tuple(k.arg for k in call.keywords if k.arg)
        positional = len(call.args) if exact else -1
        self.found.append(Use(name, node.lineno, kind, keywords, positional))


def _arguments(tree: ast.AST) -> set[str]:
    return {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def _bound_elsewhere(tree: ast.AST) -> set[str]:
    """Names that the script itself gives to functions, classes and values."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def _imports(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node


def uses_of(source: str | bytes, filename: str = "<script>") -> list[Use]:
    """All uses, in the order of lines. SyntaxError: it is not Python 3."""
    tree = ast.parse(source, filename)
    collector = Uses()
    for node in _imports(tree):
        collector.visit(node)
    collector.found.clear()
    mine = _bound_elsewhere(tree)
    collector.unsure = mine & set(collector.bound)
    collector.visit(tree)
    mine |= _arguments(tree)
    known = [
        u
        for u in collector.found
        if not (u.kind == "star" and u.name.rpartition(".")[2] in mine)
        and not (u.kind == "python" and u.name in mine)
    ]
    return sorted(known, key=lambda u: u.line)
