"""Programs from dumped ones, and the goldens they are compared with."""

from __future__ import annotations

import functools
import json
import lzma
import types
import zipfile
from pathlib import Path
from typing import Any

from golden.transpiler import compare, configs, dump

import fluidx.transpiler
from fluidx.ir import Operator, Parameter, Program, Variable, program_guard
from fluidx.kernels import VarType

FOLDER = Path(__file__).parent / "golden" / "transpiler"

# `dump.py` leaves name scopes out; these programs have clip ops in one
CLIPPED = ("clip_value", "clip_norm", "clip_global_norm")


EXCEPTIONS = json.loads((FOLDER / "exceptions.json").read_text())


@functools.cache
def _archive(name: str) -> dict[str, dict[str, Any]]:
    if name == "more":
        text = lzma.decompress((FOLDER / "more.json.xz").read_bytes())
        return json.loads(text)  # type: ignore[no-any-return]
    with zipfile.ZipFile(FOLDER / "out.zip") as file:
        read = {n.removesuffix(".json"): file.read(n) for n in file.namelist()}
    return {name: json.loads(text) for name, text in read.items()}


def golden(name: str) -> dict[str, Any]:
    """What the reference made: ``PROGRAM--CONFIG``, or before it ``local/PROGRAM``."""
    return _archive("out").get(name) or _archive("more")[name]


def pairs(archive: str = "out") -> list[str]:
    """All ``PROGRAM--CONFIG`` of an archive. "more" holds pairs beside the given ones,
    which the reference made in the same way; it refuses none of them."""
    return sorted(n for n in _archive(archive) if "--" in n)


def load(facts: dict[str, Any]) -> Program:
    """The program that `dump.dump` made these facts of."""
    program = Program()
    for block in facts["blocks"][1:]:
        program._create_block(block["parent"])
    program.current_block_idx = 0
    for block, made in zip(facts["blocks"], program.blocks):
        for name, var in block["vars"].items():
            made.vars[name] = _variable(made, name, dict(var))
        for op in block["ops"]:
            attrs = {k: _value(program, v) for k, v in op["attrs"].items()}
            made.ops.append(Operator(made, op["type"], op["in"], op["out"], attrs))
    return program


def _variable(block: Any, name: str, facts: dict[str, Any]) -> Variable:
    facts["type"] = VarType[facts.get("type", "LOD_TENSOR")]
    facts["dtype"] = VarType[facts.get("dtype", "FP32")]
    parameter = facts.pop("parameter", False)
    kind = Parameter if parameter else Variable
    return kind(block, name=name, **{"shape": [], **facts})


def _value(program: Program, value: Any) -> Any:
    if isinstance(value, dict):
        return program.blocks[value["block"]]
    if isinstance(value, list):
        return [_value(program, v) for v in value]
    return value


def mark_clip_ops(program: Program) -> None:
    """Give the clip ops their name scope: the first of role Optimize."""
    for op in program.global_block().ops:
        if op.role & 2:
            if op.type == "scale" or "Param" in op.inputs:
                break
            op.attrs["op_namescope"] = "/@CLIP/"


def local(name: str) -> tuple[Program, Program]:
    """Main and startup program of a network, before transpiling."""
    facts = golden(f"local/{name}")
    main, startup = load(facts["main"]), load(facts["startup"])
    _order_parameters(startup)
    if name in CLIPPED:
        mark_clip_ops(main)
    return main, startup


def _order_parameters(startup: Program) -> None:
    """As they were created: dumps sort names, but each initialiser was prepended."""
    block = startup.global_block()
    made = [n for op in reversed(block.ops) for n in op.output_arg_names]
    block.vars = {n: block.vars[n] for n in dict.fromkeys([*made, *block.vars])}


def loaded(result: dict[str, Any]) -> dict[str, dict[str, Program]]:
    """The programs of a golden."""
    return {
        role: {kind: load(facts) for kind, facts in both.items()}
        for role, both in result["roles"].items()
    }


def engine(main: Program, startup: Program) -> types.SimpleNamespace:
    """What `configs.apply` takes for ``fluid``, with these as default programs."""
    return types.SimpleNamespace(
        __name__="fluidx",
        DistributeTranspiler=fluidx.transpiler.DistributeTranspiler,
        DistributeTranspilerConfig=fluidx.transpiler.DistributeTranspilerConfig,
        default_main_program=lambda: main,
        default_startup_program=lambda: startup,
    )


def transpiler(
    main: Program, startup: Program, config: str, role: tuple[str, int]
) -> fluidx.transpiler.DistributeTranspiler:
    """The transpiler that `configs.apply` used for a role."""
    used: list[Any] = []

    def noting(kind: Any) -> Any:
        class Noting(kind):  # type: ignore[misc]
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                used.append(self)

        return Noting

    module = fluidx.transpiler.geo_sgd_transpiler
    kept = fluidx.transpiler.DistributeTranspiler, module.GeoSgdTranspiler
    fluidx.transpiler.DistributeTranspiler = noting(kept[0])  # type: ignore[misc]
    module.GeoSgdTranspiler = noting(kept[1])  # type: ignore[misc]
    try:
        with program_guard(main, startup):
            configs.apply(engine(main, startup), config, role)
    finally:
        fluidx.transpiler.DistributeTranspiler = kept[0]  # type: ignore[misc]
        module.GeoSgdTranspiler = kept[1]  # type: ignore[misc]
    return used[0]  # type: ignore[no-any-return]


def transpiled(program: str, config: str) -> dict[str, dict[str, Program]]:
    """The programs of every role of a pair: role -> {"main", "startup"}."""
    made = {}
    for role in configs.roles(config):
        main, startup = local(program)
        with program_guard(main, startup):
            made[f"{role[0]}-{role[1]}"] = configs.apply(
                engine(main, startup), config, role
            )
    return made


def dumped(program: str, config: str) -> dict[str, Any]:
    """The same as `generate.py` would write it."""
    roles = transpiled(program, config)
    return {
        "roles": {
            role: {kind: dump.dump(p) for kind, p in both.items()}
            for role, both in roles.items()
        }
    }


def differences(program: str, config: str) -> list[str]:
    """What differs from the golden of a pair."""
    wanted = golden(f"{program}--{config}")
    return compare.compare_results(wanted, dumped(program, config))
