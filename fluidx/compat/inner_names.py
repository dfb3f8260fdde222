"""Names that modules of the reference import for themselves, and scripts reach for.

``from paddle.fluid.layers import LayerHelper`` works there because `layers` imports it.
Modules here answer with the same objects once `install_as_paddle` has been called; it
changes nothing of what they define themselves.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from fluidx.ir.roles import NAMESCOPE, ROLE, ROLE_VAR, OpRole
from fluidx.kernels import VarType

from .submodules import layers_module

__all__ = ["answer", "answer_all"]

_COMPARE = ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"]
_FLOWS = "fluidx.compat.control_flow"
_MAP_STYLE = "fluidx.dataloader.map_style"

#: where names are: a module, or "module:name"
_HOMES: dict[str, str] = {
    **{
        name: f"fluidx.{name}"
        for name in ("core", "compiler", "framework", "initializer", "io")
    },
    "fluid": "fluidx",
    "paddle": "fluidx.compat.root",
    "collective": "fluidx.transpiler.collective",
    "dist_transpiler": "fluidx.transpiler.distribute_transpiler",
    "unique_name": "fluidx.ir.names",
    "fp16_lists": "fluidx.contrib.mixed_precision.lists",
    "fp16_utils": "fluidx.contrib.mixed_precision.fp16_utils",
    "mode": "fluidx.incubate.fleet.base.fleet_base",
    "batch_sampler": _MAP_STYLE,
    "dataloader_iter": _MAP_STYLE,
    "dataset": _MAP_STYLE,
    "distributed_reader": "fluidx.contrib.reader",
    "DistributedMode": "fluidx.transpiler.distribute_transpiler:DistributedMode",
    "LayerHelper": "fluidx.layer_helper:LayerHelper",
    "MPISymetricRoleMaker": (
        "fluidx.incubate.fleet.base.role_maker:MPISymetricRoleMaker"
    ),
    "Optimizer": "fluidx.optimizer:Optimizer",
    "OriginTranspiler": "fluidx.transpiler:DistributeTranspiler",
    "PSDispatcher": "fluidx.transpiler.ps_dispatcher:PSDispatcher",
    "ParallelExecutor": "fluidx.executor:ParallelExecutor",
    "Parameter": "fluidx.ir:Parameter",
    "REMAINDER": "argparse:REMAINDER",
    "RoundRobin": "fluidx.transpiler.ps_dispatcher:RoundRobin",
    "Variable": "fluidx.ir:Variable",
    "check_feed_shape_type": "fluidx.compat.feed_checks:check_feed_shape_type",
    "cross_entropy2": f"{_FLOWS}:cross_entropy2",
    "default_main_program": "fluidx.ir:default_main_program",
    "default_startup_program": "fluidx.ir:default_startup_program",
    "dimension_is_compatible_with": (
        "fluidx.compat.feed_checks:dimension_is_compatible_with"
    ),
    "dtype_is_compatible_with": "fluidx.compat.feed_checks:dtype_is_compatible_with",
    "dtype_is_floating": "fluidx.compat.feed_checks:dtype_is_floating",
    "generate_with_ignorable_key": "fluidx.ir.names:generate",
    "generator": "fluidx.ir.names:_generator",
    "get_logger": "fluidx.compat.log:get_logger",
    "grad_var_name": "fluidx.framework:grad_var_name",
    "in_dygraph_mode": "fluidx.framework:in_dygraph_mode",
    "same_or_split_var": "fluidx.transpiler.distribute_transpiler:same_or_split_var",
    "slice_variable": "fluidx.transpiler.distribute_transpiler:slice_variable",
}
_CONTROL_FLOW = (
    *("BlockGuard", "ConditionalBlock", "ConditionalBlockGuard", "WhileGuard"),
    *("StaticRNNMemoryLink", "copy_var_to_parent_block", "merge_lod_tensor"),
    *("select_input", "select_output", "split_lod_tensor"),
)
_HOMES.update((name, f"{_FLOWS}:{name}") for name in _CONTROL_FLOW)

_VALUES: dict[str, Any] = {
    "CLIP_OP_NAME_SCOPE": "@CLIP",
    "DEBUG": False,
    "DIST_OP_ROLE_ATTR_VALUE": OpRole.Dist,
    "LOOKUP_TABLE_GRAD_TYPE": ["lookup_table_grad", "lookup_table_v2_grad"],
    "LOOKUP_TABLE_TYPE": ["lookup_table", "lookup_table_v2"],
    "LR_SCHED_OP_ROLE_ATTR_VALUE": OpRole.LRSched,
    "OPT_OP_ROLE_ATTR_VALUE": OpRole.Optimize,
    "OP_NAME_SCOPE": NAMESCOPE,
    "OP_ROLE_VAR_ATTR_NAME": ROLE_VAR,
    "RPC_OP_ROLE_ATTR_NAME": ROLE,
    "RPC_OP_ROLE_ATTR_VALUE": OpRole.RPC,
    "compare_ops": _COMPARE,
    "dtype_to_size": {
        VarType.FP16: 2,
        VarType.FP32: 4,
        VarType.FP64: 8,
        VarType.INT16: 2,
        VarType.INT32: 4,
        VarType.INT64: 8,
        VarType.BOOL: 1,
        VarType.UINT8: 1,
    },
    "kIgnoreIndex": -100,
    "op_role_attr_name": ROLE,
}

#: module below fluidx -> the names that it answers with
_NAMES: dict[str, tuple[str, ...]] = {
    "contrib.memory_usage_calc": ("DEBUG", "dtype_to_size"),
    "contrib.mixed_precision": ("fp16_lists", "fp16_utils"),
    "contrib.reader": ("distributed_reader",),
    "dataloader": ("batch_sampler", "dataloader_iter", "dataset"),
    "dataloader.map_style": ("core", "in_dygraph_mode"),
    "dataset": ("paddle",),
    "debugger": ("LayerHelper", "core", "default_main_program", "io", "unique_name"),
    "distributed.cloud_utils": ("paddle",),
    "distributed.fs_wrapper": ("fluid",),
    "distributed.launch": ("REMAINDER", "fluid", "paddle"),
    "distributed.launch_ps": ("REMAINDER",),
    "executor": (
        *("check_feed_shape_type", "dimension_is_compatible_with"),
        "dtype_is_compatible_with",
    ),
    "incubate.fleet.base": ("mode",),
    "incubate.fleet.collective": (
        *("ParallelExecutor", "compiler", "dist_transpiler", "fluid"),
    ),
    "incubate.fleet.parameter_server.distribute_transpiler": (
        *("MPISymetricRoleMaker", "Optimizer", "OriginTranspiler"),
        *("ParallelExecutor", "default_main_program"),
    ),
    "ir.names": ("generate_with_ignorable_key", "generator"),
    "layer_helper": ("core", "dtype_is_floating", "in_dygraph_mode"),
    "layers": (*("LayerHelper", "Variable", "compare_ops", "core", "unique_name"),),
    "layers.control_flow": _CONTROL_FLOW,
    "layers.loss": ("cross_entropy2", "kIgnoreIndex"),
    "layers.math_op_patch": ("compare_ops", "core"),
    "layers.utils": ("LayerHelper", "Variable"),
    "net_drawer": ("core", "get_logger"),
    "op": ("core",),
    "transpiler.distribute_transpiler": (
        *("CLIP_OP_NAME_SCOPE", "DIST_OP_ROLE_ATTR_VALUE"),
        *("LOOKUP_TABLE_GRAD_TYPE", "LOOKUP_TABLE_TYPE", "OPT_OP_ROLE_ATTR_VALUE"),
        *("LR_SCHED_OP_ROLE_ATTR_VALUE", "OP_NAME_SCOPE", "OP_ROLE_VAR_ATTR_NAME"),
        *("Parameter", "RPC_OP_ROLE_ATTR_NAME", "RPC_OP_ROLE_ATTR_VALUE"),
        *("collective", "core", "framework", "grad_var_name", "initializer"),
        *("op_role_attr_name", "unique_name"),
    ),
    "transpiler.geo_sgd_transpiler": (
        *("DistributedMode", "PSDispatcher", "Parameter", "RPC_OP_ROLE_ATTR_NAME"),
        *("RPC_OP_ROLE_ATTR_VALUE", "RoundRobin", "core", "default_main_program"),
        *("default_startup_program", "framework", "op_role_attr_name"),
        *("same_or_split_var", "slice_variable"),
    ),
}


def _found(name: str) -> Any:
    if name in _VALUES:
        return _VALUES[name]
    module, _, attribute = _HOMES[name].partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def answer(module: ModuleType) -> ModuleType:
    """Let a module answer with its further names; returns it."""
    names = _NAMES.get(module.__name__.removeprefix("fluidx."))
    if names is None or hasattr(module, "__fluidx_inner_names__"):
        return module
    layers_module(module.__name__)  # theirs comes first
    before = module.__dict__.get("__getattr__")

    def __getattr__(name: str) -> Any:
        if name in names:
            return _found(name)
        if before is not None:
            return before(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    module.__dict__.update(__getattr__=__getattr__, __fluidx_inner_names__=True)
    return module


def answer_all() -> None:
    """`answer` for the modules that are imported already."""
    for name in _NAMES:
        module = sys.modules.get(f"fluidx.{name}")
        if module is not None:
            answer(module)
