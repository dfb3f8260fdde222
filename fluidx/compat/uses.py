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
    -1 if that is unknown, None where it is not called. kind: "name", "module" (an
    import), "op" (a type given to append_op), "numpy" or "python".
    """

    name: str
    line: int
    kind: str = "name"
    arguments: tuple[str, ...] = ()
    positional: int | None = None


class Uses(ast.NodeVisitor):
    """Collects uses; names bound anywhere in the file count everywhere in it."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self.stars: list[str] = []
        self.found: list[Use] = []
        self._calls: dict[int, ast.Call] = {}

    # ------------------------------------------------ what is imported

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            if top not in ("paddle", "numpy"):
                continue
            if alias.asname:
                self.bound[alias.asname] = alias.name
            else:
                self.bound[top] = top
            if top == "paddle":
                self.found.append(Use(alias.name, node.lineno, "module"))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level or module.partition(".")[0] not in ("paddle", "numpy"):
            return
        ours = module.startswith("paddle")
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
                self.found.append(Use(module, node.lineno, "module"))
                continue
            name = f"{module}.{alias.name}"
            self.bound[alias.asname or alias.name] = name
            if ours:
                self.found.append(Use(name, node.lineno))

    def visit_Assign(self, node: ast.Assign) -> None:
        """``layers = fluid.layers``: a second name."""
        name = self._full(node.value)
        if name is not None and isinstance(node.value, (ast.Attribute, ast.Name)):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.bound.setdefault(target.id, name)
        self.generic_visit(node)

    # ------------------------------------------------ what is used

    def _full(self, node: ast.expr) -> str | None:
        """``fluid.layers.fc`` as ``paddle.fluid.layers.fc``; None for other things."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id in self.bound:
            return ".".join([self.bound[node.id], *reversed(parts)])
        return None

    def visit_Call(self, node: ast.Call) -> None:
        self._calls[id(node.func)] = node
        self._op_type(node)
        if isinstance(node.func, ast.Name) and node.func.id == "float":
            self._float(node)
        self.generic_visit(node)

    def _float(self, node: ast.Call) -> None:
        """``float(numpy.array(x))``: NumPy takes arrays without dimensions only."""
        inner = node.args[0] if len(node.args) == 1 else None
        if isinstance(inner, ast.Call):
            name = self._full(inner.func)
            if name in ("numpy.array", "numpy.asarray"):
                self.found.append(Use(f"float({name})", node.lineno, "numpy"))

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
            if node.attr in ("iteritems", "itervalues", "iterkeys", "has_key"):
                self.found.append(Use(f".{node.attr}", node.lineno, "python"))
            self.generic_visit(node)
            return
        self._add(name, node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            name = self.bound.get(node.id)
            if name is not None and node.id not in ("paddle", "numpy"):
                self._add(name, node)
            elif node.id in ("xrange", "raw_input", "unicode", "basestring"):
                self.found.append(Use(node.id, node.lineno, "python"))
            elif name is None:
                for module in self.stars:
                    self._add(f"{module}.{node.id}", node, kind="star")

    def _add(self, name: str, node: ast.expr, kind: str = "name") -> None:
        if name.startswith("numpy."):
            kind = "numpy"
        elif name.partition(".")[0] == "numpy":
            return
        call = self._calls.get(id(node))
        if call is None:
            self.found.append(Use(name, node.lineno, kind))
            return
        exact = not any(isinstance(a, ast.Starred) for a in call.args)
        keywords = tuple(k.arg for k in call.keywords if k.arg)
        positional = len(call.args) if exact else -1
        self.found.append(Use(name, node.lineno, kind, keywords, positional))


def _bound_elsewhere(tree: ast.AST) -> set[str]:
    """Names that the script itself defines: functions, classes, arguments, targets."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
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
    collector.visit(tree)
    known = [
        u
        for u in collector.found
        if not (u.kind == "star" and u.name.rpartition(".")[2] in mine)
        and not (u.kind == "python" and u.name in mine)
    ]
    return sorted(known, key=lambda u: u.line)
