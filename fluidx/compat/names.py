"""Which module of fluidx stands behind a name of ``paddle``; and what is absent."""

from __future__ import annotations

__all__ = ["ABSENT", "absent", "real_name"]

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
}

_DYGRAPH = "dygraph (imperative) mode is not part of fluidx; it runs static programs"
_SLIM = "model compression (slim) is not part of fluidx"

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
    "contrib.decoder": "use fluid.layers.beam_search and fluid.layers.While",
    "incubate.fleet.parameter_server.pslib": "the PSLib servers are not open source",
    "proto": "program.desc.serialize_to_string() gives the bytes of a program",
    "hapi": "the high-level API of paddle.incubate is not part of fluidx",
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
