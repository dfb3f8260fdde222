"""Layers over ragged sequences (LoD tensors)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import Variable
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    FLOATS,
    INTEGERS,
    check_dtype,
    check_variable,
    check_variables,
    emit,
    is_integer,
    one_of,
)

__all__ = [
    "sequence_concat",
    "sequence_conv",
    "sequence_enumerate",
    "sequence_expand",
    "sequence_expand_as",
    "sequence_first_step",
    "sequence_last_step",
    "sequence_mask",
    "sequence_pad",
    "sequence_pool",
    "sequence_reshape",
    "sequence_reverse",
    "sequence_scatter",
    "sequence_slice",
    "sequence_softmax",
    "sequence_unpad",
]

_NUMBERS = (VarType.FP32, VarType.FP64, VarType.INT32, VarType.INT64)

_KINDS = ("SUM", "AVERAGE", "SQRT", "MAX", "LAST", "FIRST")


def sequence_pool(
    input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0
) -> Variable:
    """One row for each sequence: of its last LoD level, that level goes.

    pool_type: sum, average, sqrt (sum over the root of the length), max, last or
    first. pad_value: the row of an empty sequence. BuildError if input has no LoD.
    Mirrors ``fluid.layers.sequence_pool``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[1], [2], [7]], "float32"))
    >>> x = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> kinds = [fluid.layers.sequence_pool(x, k) for k in ("sum", "average", "max")]
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=kinds)
    >>> [v.tolist() for v in made]
    [[[3.0], [7.0]], [[1.5], [7.0]], [[2.0], [7.0]]]
    """
    check_dtype(input, "input", "sequence_pool", FLOATS)
    if not isinstance(pool_type, str):
        raise TypeError(f"sequence_pool: pool_type must be a string, got {pool_type!r}")
    kind = one_of(pool_type.upper(), "pool_type", "sequence_pool", _KINDS)
    helper = LayerHelper("sequence_pool")
    made = helper.create_variable_for_type_inference(input.dtype)
    index = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "sequence_pool",
        {"X": input},
        {"Out": made, "MaxIndex": index},
        {
            "pooltype": kind,
            "is_test": is_test,
            "pad_value": as_number(pad_value, "pad_value", "sequence_pool"),
        },
    )
    if kind == "MAX":
        index.stop_gradient = True
    return made


def sequence_first_step(input: Variable) -> Variable:
    """The first row of each sequence. Mirrors ``fluid.layers.sequence_first_step``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> x = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> y = fluid.layers.sequence_first_step(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1.0], [3.0]]
    """
    return sequence_pool(input, "first")


def sequence_last_step(input: Variable) -> Variable:
    """The last row of each sequence. Mirrors ``fluid.layers.sequence_last_step``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> x = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> y = fluid.layers.sequence_last_step(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[2.0], [3.0]]
    """
    return sequence_pool(input, "last")


def sequence_conv(
    input: Variable,
    num_filters: int,
    filter_size: int = 3,
    filter_stride: int = 1,
    padding: bool = True,
    padding_start: int | None = None,
    bias_attr: Any = None,
    param_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Convolution along sequences: act(windows of `filter_size` rows * filter + b).

    input: [rows, width] of one LoD level. The filter is [filter_size * width,
    num_filters]. A row's window starts `padding_start` rows from it (None:
    -(filter_size // 2)); what is outside of the sequence counts as zero, whatever
    `padding` is. filter_stride: 1. Mirrors ``fluid.layers.sequence_conv``.

    >>> import fluidx as fluid
    >>> words = fluid.data("seq_conv_in", [None, 8], lod_level=1)
    >>> fluid.layers.sequence_conv(words, 16, 5).shape
    (-1, 16)
    """
    check_dtype(input, "input", "sequence_conv", (VarType.FP32, VarType.FP64))
    helper = LayerHelper(
        "sequence_conv",
        input=input,
        param_attr=param_attr,
        bias_attr=bias_attr,
        act=act,
        name=name,
    )
    shape = [filter_size * input.shape[1], num_filters]
    weight = helper.create_parameter(helper.param_attr, shape, input.dtype)
    made = helper.create_variable_for_type_inference(input.dtype)
    start = -int(filter_size // 2) if padding_start is None else padding_start
    helper.append_op(
        "sequence_conv",
        {"X": input, "Filter": weight},
        {"Out": made},
        {
            "contextStride": filter_stride,
            "contextStart": start,
            "contextLength": filter_size,
        },
    )
    return helper.append_activation(helper.append_bias_op(made))


def sequence_softmax(
    input: Variable, use_cudnn: bool = False, name: str | None = None
) -> Variable:
    """Softmax inside each sequence of the last level; input: [rows, 1] or [rows].

    Mirrors ``fluid.layers.sequence_softmax``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[5], [5], [3]], "float32"))
    >>> x = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> y = fluid.layers.sequence_softmax(x)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> made, = exe.run(fetch_list=[y], return_numpy=False)
    >>> np.array(made).tolist(), made.lod()
    ([[0.5], [0.5], [1.0]], [[0, 2, 3]])
    """
    check_dtype(input, "input", "sequence_softmax", (VarType.FP32, VarType.FP64))
    attrs = {"use_cudnn": use_cudnn}
    return emit("sequence_softmax", {"X": input}, attrs, name=name)


def sequence_expand(
    x: Variable, y: Variable, ref_level: int = -1, name: str | None = None
) -> Variable:
    """Each sequence (without LoD: row) of x as often as y's of that number is long.

    ref_level: the level of y whose lengths count (-1: the last). Mirrors
    ``fluid.layers.sequence_expand``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[10], [20]], "float32"))
    >>> rows = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> like = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> y = fluid.layers.sequence_expand(x, like)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[10.0], [10.0], [20.0]]
    """
    check_dtype(x, "x", "sequence_expand", _NUMBERS)
    if not is_integer(ref_level):
        raise TypeError(
            f"sequence_expand: ref_level must be an integer, got {ref_level!r}"
        )
    attrs = {"ref_level": ref_level}
    return emit("sequence_expand", {"X": x, "Y": y}, attrs, name=name)


def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Each row of x as often as the sequence of y of that number is long.

    The result has the LoD of y, which has one level. Mirrors
    ``fluid.layers.sequence_expand_as``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[10], [20]], "float32"))
    >>> rows = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> like = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> y = fluid.layers.sequence_expand_as(x, like)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> made, = exe.run(fetch_list=[y], return_numpy=False)
    >>> np.array(made).tolist(), made.lod()
    ([[10.0], [10.0], [20.0]], [[0, 2, 3]])
    """
    check_dtype(x, "x", "sequence_expand_as", _NUMBERS)
    return emit("sequence_expand_as", {"X": x, "Y": y}, name=name)


def sequence_concat(input: Sequence[Variable], name: str | None = None) -> Variable:
    """The first sequences of all inputs laid end to end, then the second ones, ...

    All have one level and as many sequences. Mirrors ``fluid.layers.sequence_concat``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> x = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> y = fluid.layers.sequence_concat([x, x])
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> made, = exe.run(fetch_list=[y], return_numpy=False)
    >>> np.array(made).tolist(), made.lod()
    ([[1.0], [2.0], [1.0], [2.0], [3.0], [3.0]], [[0, 4, 6]])
    """
    if not isinstance(input, (list, tuple)):
        raise TypeError(f"sequence_concat: input must be a list, got {input!r:.60}")
    for each in check_variables(input, "input", "sequence_concat"):
        check_dtype(each, "input", "sequence_concat", _NUMBERS)
    return emit("sequence_concat", {"X": list(input)}, name=name)


def sequence_slice(
    input: Variable, offset: Variable, length: Variable, name: str | None = None
) -> Variable:
    """`length` rows from `offset` on, of each sequence; both are [sequences, 1].

    Mirrors ``fluid.layers.sequence_slice``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> x = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> start = fluid.layers.assign(np.array([[1], [0]], "int64"))
    >>> length = fluid.layers.assign(np.array([[1], [1]], "int64"))
    >>> y = fluid.layers.sequence_slice(x, start, length)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> made, = exe.run(fetch_list=[y], return_numpy=False)
    >>> np.array(made).tolist(), made.lod()
    ([[2.0], [3.0]], [[0, 1, 2]])
    """
    check_dtype(input, "input", "sequence_slice", _NUMBERS)
    check_dtype(offset, "offset", "sequence_slice", INTEGERS)
    check_dtype(length, "length", "sequence_slice", INTEGERS)
    offset.stop_gradient = length.stop_gradient = True
    given = {"X": input, "Offset": offset, "Length": length}
    return emit("sequence_slice", given, name=name)


def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """Each sequence's rows from the last to the first; x has one level.

    Mirrors ``fluid.layers.sequence_reverse``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> x = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> y = fluid.layers.sequence_reverse(x)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> made, = exe.run(fetch_list=[y], return_numpy=False)
    >>> np.array(made).tolist(), made.lod()
    ([[2.0], [1.0], [3.0]], [[0, 2, 3]])
    """
    check_variable(x, "x", "sequence_reverse")
    return emit("sequence_reverse", {"X": x}, name=name, slot="Y")


def sequence_reshape(input: Variable, new_dim: int) -> Variable:
    """Rows of `new_dim` elements; each sequence's elements stay its own.

    input: [rows, width] of one level. Mirrors ``fluid.layers.sequence_reshape``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[1, 2], [3, 4], [5, 6]], "float32"))
    >>> x = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> y = fluid.layers.sequence_reshape(x, new_dim=1)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> made, = exe.run(fetch_list=[y], return_numpy=False)
    >>> np.array(made).tolist(), made.lod()
    ([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], [[0, 4, 6]])
    """
    check_dtype(input, "input", "sequence_reshape", _NUMBERS)
    if not is_integer(new_dim):
        raise TypeError(f"sequence_reshape: new_dim must be an integer, got {new_dim}")
    return emit("sequence_reshape", {"X": input}, {"new_dim": new_dim})


def sequence_scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None
) -> Variable:
    """input with the updates of sequence i added to its row i, where index says.

    input: [rows, width]; index (int64) and updates: [n, 1] of one level, with a
    sequence for each row. Mirrors ``fluid.layers.sequence_scatter``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[0], [2], [1]], "int64"))
    >>> places = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> rows = fluid.layers.assign(np.array([[7], [8], [9]], "float32"))
    >>> more = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> x = fluid.layers.zeros([2, 3], "float32")
    >>> y = fluid.layers.sequence_scatter(x, places, more)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[7.0, 0.0, 8.0], [0.0, 9.0, 0.0]]
    """
    check_dtype(input, "input", "sequence_scatter", _NUMBERS)
    check_dtype(index, "index", "sequence_scatter", INTEGERS)
    check_dtype(updates, "updates", "sequence_scatter", _NUMBERS)
    given = {"X": input, "Ids": index, "Updates": updates}
    return emit("sequence_scatter", given, name=name)


def sequence_pad(
    x: Variable, pad_value: Variable, maxlen: int | None = None, name: str | None = None
) -> tuple[Variable, Variable]:
    """Sequences as [sequences, maxlen, ...], and their lengths (int64).

    pad_value: what they are filled up with: one element, or a row of x. maxlen: None
    for the longest one's length. Mirrors ``fluid.layers.sequence_pad``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> x = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> zero = fluid.layers.assign(np.array([0], "float32"))
    >>> padded, lengths = fluid.layers.sequence_pad(x, zero)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[padded, lengths])
    >>> [v.tolist() for v in made]
    [[[[1.0], [2.0]], [[3.0], [0.0]]], [2, 1]]
    """
    check_dtype(x, "x", "sequence_pad", _NUMBERS)
    check_dtype(pad_value, "pad_value", "sequence_pad", _NUMBERS)
    helper = LayerHelper("sequence_pad", name=name)
    made = helper.create_variable_for_type_inference(x.dtype)
    length = helper.create_variable_for_type_inference(VarType.INT64)
    pad_value.stop_gradient = length.stop_gradient = True
    helper.append_op(
        "sequence_pad",
        {"X": x, "PadValue": pad_value},
        {"Out": made, "Length": length},
        {"padded_length": -1 if maxlen is None else maxlen},
    )
    return made, length


def sequence_unpad(x: Variable, length: Variable, name: str | None = None) -> Variable:
    """The first `length` rows of each padded sequence, with their LoD.

    x: [sequences, longest, ...]. length: int64 [sequences]. Mirrors
    ``fluid.layers.sequence_unpad``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 0]], "float32"))
    >>> length = fluid.layers.assign(np.array([2, 1], "int64"))
    >>> y = fluid.layers.sequence_unpad(x, length)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> made, = exe.run(fetch_list=[y], return_numpy=False)
    >>> np.array(made).tolist(), made.lod()
    ([[1.0], [2.0], [3.0]], [[0, 2, 3]])
    """
    check_dtype(x, "x", "sequence_unpad", _NUMBERS)
    check_dtype(length, "length", "sequence_unpad", (VarType.INT64,))
    length.stop_gradient = True
    return emit("sequence_unpad", {"X": x, "Length": length}, name=name)


def sequence_mask(
    x: Variable, maxlen: Any = None, dtype: Any = "int64", name: str | None = None
) -> Variable:
    """[..., maxlen] with 1 in the first `x` places of the last axis, else 0.

    x: lengths. maxlen: an integer, a Variable, or None for the greatest length.
    Mirrors ``fluid.layers.sequence_mask``.

    >>> import fluidx as fluid, numpy as np
    >>> lengths = fluid.layers.assign(np.array([1, 3], "int64"))
    >>> y = fluid.layers.sequence_mask(lengths, maxlen=3)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    given = {"X": check_variable(x, "x", "sequence_mask")}
    attrs = {"out_dtype": int(as_dtype(dtype))}
    if isinstance(maxlen, Variable):
        given["MaxLenTensor"] = maxlen
    elif maxlen is not None:
        if not is_integer(maxlen):
            raise TypeError(
                f"sequence_mask: maxlen must be an integer or a Variable, got {maxlen}"
            )
        attrs["maxlen"] = int(maxlen)
    made = emit("sequence_mask", given, attrs, name=name, dtype=dtype, slot="Y")
    made.stop_gradient = True
    return made


def sequence_enumerate(
    input: Variable, win_size: int, pad_value: int = 0, name: str | None = None
) -> Variable:
    """[ids, win_size]: each id with those that follow it in its sequence.

    input: int32 or int64 [ids, 1] of one level. pad_value: stands behind the end of a
    sequence. Mirrors ``fluid.layers.sequence_enumerate``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[1], [2], [3]], "int64"))
    >>> x = fluid.layers.lod_reset(rows, target_lod=[0, 2, 3])
    >>> y = fluid.layers.sequence_enumerate(x, win_size=2, pad_value=0)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> made, = exe.run(fetch_list=[y], return_numpy=False)
    >>> np.array(made).tolist(), made.lod()
    ([[1, 2], [2, 0], [3, 0]], [[0, 2, 3]])
    """
    check_dtype(input, "input", "sequence_enumerate", INTEGERS)
    attrs = {"win_size": win_size, "pad_value": pad_value}
    return emit(
        "sequence_enumerate", {"X": input}, attrs, name=name, stop_gradient=True
    )
