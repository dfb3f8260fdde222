"""Who imports whom, read from the sources; and how they are packaged."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:  # pytest brings it along
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
FOLDERS = {"fluidx": "fluidx", "kernels": "fluidx.kernels"}
FOLDERS["transpiler"] = "fluidx.transpiler"
MAX_LINES = 450

#: floors of the house; a module imports from its own floor and from below
FLOORS = (
    ("kernels",),
    ("ir",),
    (
        *("arguments", "average", "backward", "clip", "data_feeder", "dataloader"),
        *("detection_metrics", "evaluator"),
        *("initializer", "input", "reader", "type_checks"),
        *("layer_helper", "layers", "metrics", "nets", "optimizer", "param_attr"),
        *("regularizer", "tensor", "tensorboard", "transpiler", "wrapped_decorator"),
    ),
    (
        *("compiler", "contrib", "core", "core_parts", "dataset", "dataset_factory"),
        *("debugger", "net_drawer"),
        *("executor", "export", "flags", "framework", "graphviz", "inference"),
        "install_check",
        *("io", "lod_tensor", "op", "parallel_executor", "profiler"),
    ),
    ("communicator", "distributed"),
    ("dygraph", "incubate"),
    ("__main__", "cli", "compat"),
)
FLOOR = {part: level for level, parts in enumerate(FLOORS) for part in parts}

#: third-party packages by part; in brackets: inside functions only
OUTSIDE = {
    "kernels": ({"numpy"}, {"ml_dtypes"}),
    "kernels.compiled": ({"numpy", "numba", "llvmlite"}, set()),
    "ir": ({"numpy"}, {"networkx", "google"}),
    "transpiler": ({"numpy"}, {"networkx"}),
}
CUDA = {"cupy", "cupyx", "nvmath", "cudnn", "cuda"}


def modules() -> Iterator[tuple[str, Path]]:
    """(dotted name, file) of every module of the three folders."""
    for folder, package in FOLDERS.items():
        for file in sorted((ROOT / folder).rglob("*.py")):
            parts = file.relative_to(ROOT / folder).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
            yield ".".join([package, *parts]), file


@functools.cache
def known() -> frozenset[str]:
    return frozenset(name for name, _ in modules())


@functools.cache
def imports(module: str, file: Path) -> list[tuple[str, bool, int]]:
    """(module, is at the top, line) of all that a file imports, anywhere in it."""
    tree = ast.parse(file.read_text(), str(file))
    top = {id(node) for node in _outside_functions(tree)}
    is_package = file.name == "__init__.py"
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = _from(node, module, is_package)
        else:
            continue
        found += [(n, id(node) in top, node.lineno) for n in names]
    return found


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child
            yield from _outside_functions(child)


def _from(node: ast.ImportFrom, module: str, is_package: bool) -> list[str]:
    base = node.module or ""
    if node.level:
        parts = module.split(".")
        parts = parts[: len(parts) - node.level + is_package]
        base = ".".join([*parts, base] if base else parts)
    inner = [f"{base}.{a.name}" for a in node.names]
    return [n if n in known() else base for n in inner]


def part_of(module: str) -> str:
    """``fluidx.ir.text`` is of part ``ir``; ``fluidx`` itself is of none."""
    return (module.split(".") + [""])[1]


def _where(file: Path, line: int) -> str:
    return f"{file.relative_to(ROOT)}:{line}"


def arrows() -> Iterator[tuple[str, str, str]]:
    """(part, part that it imports, place); part "" is `fluidx` itself."""
    for module, file in modules():
        if module == "fluidx":
            continue
        for name, _, line in imports(module, file):
            if name.split(".")[0] == "fluidx":
                yield part_of(module), part_of(name), _where(file, line)


def test_every_part_has_a_floor():
    parts = {part_of(m) for m, _ in modules()} - {""}
    assert parts - set(FLOOR) == set(), "give it a place in FLOORS"


def test_imports_go_down():
    top = len(FLOORS)
    # the command line may import fluidx itself; nobody below may
    wrong = [
        f"{place}: {part} imports {other or 'fluidx itself'}"
        for part, other, place in arrows()
        if FLOOR[part] < FLOOR.get(other, top - 1)
    ]
    assert wrong == []


def test_transpiler_knows_programs_only():
    wrong = [
        place
        for part, other, place in arrows()
        if part == "transpiler" and other not in ("transpiler", "ir", "kernels")
    ]
    assert wrong == []


def _outside_part(module: str) -> str:
    inner = module.removeprefix("fluidx.")
    return next((p for p in OUTSIDE if "." in p and inner.startswith(p)), None) or (
        part_of(module)
    )


@pytest.mark.parametrize("part", OUTSIDE)
def test_outside_packages(part):
    always, lazily = OUTSIDE[part]
    wrong = []
    for module, file in modules():
        if _outside_part(module) != part:
            continue
        for name, at_top, line in imports(module, file):
            package = name.split(".")[0]
            if package == "fluidx" or package in sys.stdlib_module_names:
                continue
            typing_only = at_top and _type_checking(file, line)
            allowed = always if at_top and not typing_only else always | lazily
            if package not in allowed:
                wrong.append(f"{_where(file, line)}: {name}")
    assert wrong == []


def _type_checking(file: Path, line: int) -> bool:
    """Whether a line stands under ``if TYPE_CHECKING``."""
    return any(
        node.lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    )


def test_one_module_touches_cuda():
    touching = {
        module
        for module, file in modules()
        for name, _, _ in imports(module, file)
        if name.split(".")[0] in CUDA
    }
    assert touching == {"fluidx.executor.cuda"}


def test_no_bare_kernels_or_transpiler():
    files = [*modules(), *((f.stem, f) for f in (ROOT / "tests").rglob("test_*.py"))]
    wrong = [
        _where(file, line)
        for module, file in files
        for name, _, line in imports(module, file)
        if name.split(".")[0] in ("kernels", "transpiler")
    ]
    assert wrong == []


def test_files_are_short():
    long = {
        str(file.relative_to(ROOT)): lines
        for _, file in modules()
        if (lines := len(file.read_text().splitlines())) > MAX_LINES
    }
    assert long == {}


@functools.cache
def setuptools() -> dict[str, Any]:
    text = (ROOT / "pyproject.toml").read_text()
    return tomllib.loads(text)["tool"]["setuptools"]  # type: ignore[no-any-return]


def test_pyproject_lists_every_package():
    packages = {name for name, file in modules() if file.name == "__init__.py"}
    assert sorted(packages) == sorted(setuptools()["packages"])
    assert setuptools()["package-dir"] == {v: k for k, v in FOLDERS.items()}


def test_every_folder_is_a_package():
    folders = {file.parent for _, file in modules()}
    bare = [str(f) for f in folders if not (f / "__init__.py").exists()]
    assert bare == []


def test_the_reading_of_imports(tmp_path):
    file = tmp_path / "x.py"
    file.write_text(
        "import numpy as np\nfrom . import block\nfrom ..kernels import grad, op\n"
        "def f():\n    from fluidx import ir\n    import google.protobuf\n"
    )
    assert imports("fluidx.ir.x", file) == [
        ("numpy", True, 1),
        ("fluidx.ir.block", True, 2),
        ("fluidx.kernels.grad", True, 3),
        ("fluidx.kernels", True, 3),
        ("fluidx.ir", False, 5),
        ("google.protobuf", False, 6),
    ]
