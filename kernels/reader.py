"""Readers in programs.

An executor takes a batch before it runs a program and feeds what `read` gives; so these
ops are part of a program's signature, like `feed` and `fetch`, and are not run there.
The kernels say what they mean: a reader is an object with ``take()``, which gives the
arrays of the next batch.
"""

from __future__ import annotations

from typing import Any

from .infer import no_outputs
from .registry import op
from .schema import Attr, AttrType, In, Out

__all__: list[str] = []

create_py_reader = op(
    "create_py_reader",
    ins=[In("blocking_queue")],
    outs=[Out("Out", duplicable=True)],
    attrs=[
        Attr("device_count", int, 1),
        Attr("device_index", int, 0),
        Attr("dtypes", AttrType.INTS),
        Attr("lod_levels", AttrType.INTS),
        Attr("need_check_feed", AttrType.INTS),
        Attr("ranks", AttrType.INTS),
        Attr("shape_concat", AttrType.INTS),
        Attr("use_data_config", bool, True),
    ],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@create_py_reader.kernel
def _(xp: Any, queue: Any) -> list[Any]:
    return [queue]


create_double_buffer_reader = op(
    "create_double_buffer_reader",
    ins=[In("UnderlyingReader")],
    outs=[Out("Out")],
    attrs=[Attr("place", str, "AUTO")],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@create_double_buffer_reader.kernel
def _(xp: Any, reader: Any) -> Any:
    return reader


read = op(
    "read",
    ins=[In("Reader")],
    outs=[Out("Out", duplicable=True)],
    attrs=[
        Attr("drop_last", bool, True),
        Attr("infer_out", bool, True),
        Attr("throw_eof_exp", bool, True),
    ],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@read.kernel
def _(xp: Any, reader: Any) -> list[Any]:
    return [xp.asarray(value) for value in reader.take()]
