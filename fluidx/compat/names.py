"""Which module of fluidx stands behind a name of ``paddle``; and what is absent."""

from __future__ import annotations

__all__ = ["ABSENT", "absent", "own_module", "real_name"]

#: names that do not follow from the rule "paddle.fluid.X is fluidx.X"
_REAL = {
    "paddle": "fluidx.compat.root",
    "paddle.batch": "fluidx.compat.batch",
    "paddle.compat": "fluidx.compat.text",
    "paddle.version": "fluidx.compat.version",
    "paddle.reader.decorator": "fluidx.reader",
    "paddle.fluid.dataset": "fluidx.dataset_factory",
    "paddle.fluid.data_feed_desc": "fluidx.dataset_factory",
    "paddle.fluid.reader": "fluidx.dataloader",
    "paddle.fluid.unique_name": "fluidx.ir.names",
    "paddle.fluid.layer_helper_base": "fluidx.layer_helper",
    "paddle.utils": "fluidx.compat.utils",
    "paddle.utils.plot": "fluidx.compat.plot",
    "paddle.fluid.annotations": "fluidx.compat.annotations",
    "paddle.fluid.core_avx": "fluidx.core",
    "paddle.fluid.data": "fluidx.compat.data",
    "paddle.fluid.dataloader.batch_sampler": "fluidx.dataloader.map_style",
    "paddle.fluid.dataloader.dataloader_iter": "fluidx.dataloader.map_style",
    "paddle.fluid.dataloader.dataset": "fluidx.dataloader.map_style",
    "paddle.fluid.default_scope_funcs": "fluidx.compat.scope_funcs",
    "paddle.fluid.log_helper": "fluidx.compat.log",
    "paddle.fluid.contrib.mixed_precision.fp16_lists": (
        "fluidx.contrib.mixed_precision.lists"
    ),
    "paddle.fluid.contrib.reader.distributed_reader": "fluidx.contrib.reader",
    "paddle.fluid.incubate.fleet.base.mode": "fluidx.incubate.fleet.base.fleet_base",
}

_DYGRAPH = "dygraph (imperative) mode is not part of fluidx; it runs static programs"
_CPP = "fluidx has no headers and no library to build C++ against"
_SERVERS = "the parameter servers of the PSLib, which is not open source"
_IMAGES = "see paddle.dataset.image"
_INNER = "a part of the reference's inside, which has no counterpart in fluidx"
_SLIM = "model compression (slim) is not part of fluidx"

_DYGRAPH_CLASSES = (
    *("BCELoss", "BatchNorm", "BilinearTensorProduct", "Conv2D", "Conv2DTranspose"),
    *("Conv3D", "Conv3DTranspose", "Dropout", "Embedding", "GRUUnit", "GroupNorm"),
    *("InstanceNorm", "L1Loss", "Layer", "LayerNorm", "Linear", "MSELoss", "NCE"),
    *("NLLLoss", "PRelu", "Pool2D", "SpectralNorm", "TreeConv"),
)

#: what scripts may ask for that is not there, and why, by name below paddle.fluid
ABSENT = {
    "dygraph": _DYGRAPH,
    "enable_dygraph": _DYGRAPH,
    "enable_imperative": _DYGRAPH,
    "load_dygraph": _DYGRAPH,
    "save_dygraph": _DYGRAPH,
    "dygraph_utils": _DYGRAPH,
    "contrib.slim": _SLIM,
    "contrib.quantize": _SLIM,
    "proto": "program.desc.serialize_to_string() gives the bytes of a program",
    "hapi": "the high-level API of paddle.incubate is not part of fluidx",
    **dict.fromkeys(_DYGRAPH_CLASSES, f"a class of dygraph; {_DYGRAPH}"),
    "complex": _DYGRAPH,
    "incubate.hapi": "the high-level API of paddle.incubate is not part of fluidx",
    "incubate.complex": _DYGRAPH,
    "sysconfig": _CPP,
    "check_import_scipy": "it looks for a fault of SciPy on Windows",
    "common_ops_import": "import what it imports: fluid.layer_helper, ...",
    "incubate.fleet.parameter_server.version": _SERVERS,
    "distributed.fleet": _SERVERS,
    "distributed.helper": _SERVERS,
    "distributed.ps_instance": _SERVERS,
    "distributed.ps_pb2": _SERVERS,
    "distribute_lookup_table": "see fluidx.transpiler",
    "transpiler.details": "see fluidx.transpiler",
    "device_worker": _INNER,
    "trainer_desc": _INNER,
    "trainer_factory": _INNER,
    "multiprocess_utils": _INNER,
    "utils.image_util": _IMAGES,
    "utils.preprocess_img": _IMAGES,
    "utils.preprocess_util": _IMAGES,
    "utils.plotcurve": "it reads logs of PaddlePaddle before Fluid",
    "XPUPlace": "no such device in 1.8",
    "is_compiled_with_xpu": "no such device in 1.8",
    "ComplexVariable": _DYGRAPH,
}


def real_name(name: str) -> str:
    """The module behind a name of ``paddle``.

    >>> real_name("paddle.fluid.layers.nn"), real_name("paddle.dataset.mnist")
    ('fluidx.layers.nn', 'fluidx.dataset.mnist')
    """
    if name in _REAL:
        return _REAL[name]
    rest = name.removeprefix("paddle.")
    if rest == "fluid":
        return "fluidx"
    return f"fluidx.{rest.removeprefix('fluid.')}"


def own_module(name: str) -> str | None:
    """The module behind an attribute of ``fluid``, where that follows from no rule."""
    return _REAL.get(f"paddle.fluid.{name}")


def absent(name: str) -> str:
    """Why a name is not there: ": reason", or "" where none is known.

    name: below ``paddle.fluid``.
    """
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        why = ABSENT.get(".".join(parts[:length]))
        if why:
            return f": {why}"
    return ""
