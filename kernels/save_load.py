"""Ops that read and write files, and those that stand for feeding and fetching.

`save`, `load` and their combined forms hand over to ``ctx.files`` (`Files`), which
knows the format. `feed` and `fetch` stand in saved inference programs; an executor
takes them as the program's signature and does not run them.
"""

from __future__ import annotations

from typing import Any

from .infer import no_outputs
from .registry import op
from .schema import Attr, AttrType, In, Out

__all__: list[str] = []

_PATH = Attr("file_path", str)
_OVERWRITE = Attr("overwrite", bool, True)
_SAVE_FP16 = Attr("save_as_fp16", bool, False)
_LOAD_FP16 = Attr("load_as_fp16", bool, False)

save = op(
    "save",
    ins=[In("X")],
    outs=[Out("kLookupTablePath", dispensable=True)],
    attrs=[_PATH, _OVERWRITE, _SAVE_FP16],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@save.kernel
def _(
    xp: Any,
    x: Any,
    *,
    ctx: Any,
    names: Any,
    lod: Any,
    file_path: str,
    overwrite: bool,
    save_as_fp16: bool,
) -> None:
    ctx.files.save(file_path, names["X"], [x], lod.get("X"), overwrite, save_as_fp16)


save_combine = op(
    "save_combine",
    ins=[In("X", duplicable=True)],
    outs=[Out("Y", dispensable=True)],
    attrs=[_PATH, _OVERWRITE, _SAVE_FP16, Attr("save_to_memory", bool, False)],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@save_combine.kernel
def _(
    xp: Any,
    x: list[Any],
    *,
    ctx: Any,
    names: Any,
    file_path: str,
    overwrite: bool,
    save_as_fp16: bool,
    save_to_memory: bool,
) -> None:
    if save_to_memory:
        raise ValueError(
            "save_combine: save_to_memory is not there; save_vars with dirname None "
            "returns the bytes"
        )
    ctx.files.save(file_path, names["X"], x, None, overwrite, save_as_fp16)


load = op(
    "load",
    outs=[Out("Out")],
    attrs=[
        _PATH,
        _LOAD_FP16,
        Attr("seek", AttrType.LONG, -1),
        Attr("shape", AttrType.LONGS, []),
    ],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@load.kernel
def _(
    xp: Any,
    *,
    ctx: Any,
    names: Any,
    file_path: str,
    load_as_fp16: bool,
    seek: int,
    shape: list[int],
) -> Any:
    part = None if seek < 0 else (seek, tuple(shape))
    return ctx.files.load(file_path, names["Out"], load_as_fp16, part)[0]


load_combine = op(
    "load_combine",
    outs=[Out("Out", duplicable=True)],
    attrs=[_PATH, _LOAD_FP16, Attr("model_from_memory", bool, False)],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@load_combine.kernel
def _(
    xp: Any,
    *,
    ctx: Any,
    names: Any,
    file_path: str,
    load_as_fp16: bool,
    model_from_memory: bool,
) -> Any:
    # the path is then the content, each byte a letter
    source = file_path.encode(errors="surrogateescape") if model_from_memory else None
    where = file_path if source is None else source
    return ctx.files.load(where, names["Out"], load_as_fp16, None)


feed = op(
    "feed",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("col", int)],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@feed.kernel
def _(xp: Any, x: list[Any], *, col: int) -> Any:
    return x[col]


fetch = op(
    "fetch",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("col", int)],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@fetch.kernel
def _(xp: Any, x: Any, *, col: int) -> list[Any]:
    return [None] * col + [x]
