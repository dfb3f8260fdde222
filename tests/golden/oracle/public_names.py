"""Every public name of the reference below ``paddle``: run under it.

Writes public_names.json.xz: {module: {name: what}}, where what is a signature, "" for
a function without one, "module" or "value", and {member: signature} for a class. What
begins with "_" is left out, and so are names that a module only imports: all from
outside ``paddle``, and those from inside where ``__all__`` does not list them (packages
keep these).
"""

import importlib
import inspect
import json
import lzma
import pkgutil
import re
import sys
import types
from pathlib import Path

import paddle

HERE = Path(__file__).parent
#: dygraph and slim have names by the hundred; whether their modules are there is enough
CLOSED = ("paddle.fluid.dygraph", "paddle.fluid.contrib.slim", "paddle.fluid.proto")
#: fluid.core is this one or its twin for older processors; fluid_core is the C++ half
TWINS = ("paddle.fluid.core_avx", "paddle.fluid.core_noavx")


def modules():
    yield paddle
    seen = {"paddle"}
    for _, name, _ in pkgutil.walk_packages(paddle.__path__, "paddle.", lambda n: None):
        parts = name.split(".")
        if any(p.startswith("_") or p == "tests" or p == "test" for p in parts):
            continue
        if name in seen or name in TWINS:
            continue
        seen.add(name)
        try:
            yield importlib.import_module(name)
        except BaseException as error:
            print("not importable:", name, type(error).__name__, file=sys.stderr)


def signature(value):
    try:
        shown = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    return re.sub(r"<([\w.]+)[^<>]*>", r"<\1>", shown)


def members(value):
    found = {}
    for name in dir(value):
        if name.startswith("_"):
            continue
        held = inspect.getattr_static(value, name)
        if isinstance(held, (staticmethod, classmethod)):
            held = held.__func__
        found[name] = signature(held) if inspect.isroutine(held) else ""
    return found


def is_theirs(value):
    module = value.__name__ if isinstance(value, types.ModuleType) else None
    module = module or getattr(value, "__module__", None)
    return module is None or str(module).partition(".")[0] == "paddle"


def is_imported(module, value):
    """Whether a module that says what it exports only uses this."""
    if not hasattr(module, "__all__") or hasattr(module, "__path__"):
        return False
    home = getattr(value, "__module__", None)
    return isinstance(value, types.ModuleType) or home not in (None, module.__name__)


def names_of(module):
    listed = set(getattr(module, "__all__", ()))
    found = {}
    for name in sorted(listed | set(dir(module))):
        if name.startswith("_") or not hasattr(module, name):
            continue
        value = getattr(module, name)
        if name not in listed and (not is_theirs(value) or is_imported(module, value)):
            continue
        if isinstance(value, types.ModuleType):
            found[name] = "module"
        elif inspect.isclass(value):
            found[name] = {"init": signature(value.__init__), **members(value)}
        elif callable(value):
            found[name] = signature(value)
        else:
            found[name] = "value"
    return found


def main():
    found = {}
    for module in modules():
        name = module.__name__
        if name in TWINS:
            continue
        closed = name.startswith(tuple(c + "." for c in CLOSED)) or name in CLOSED
        found[name] = {} if closed else names_of(module)
    core = paddle.fluid.core
    found["paddle.fluid.core"] = names_of(core)
    text = json.dumps(found, indent=0, sort_keys=True)
    (HERE / "public_names.json.xz").write_bytes(lzma.compress(text.encode()))


main()
