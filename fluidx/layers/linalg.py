"""Products, norms, sums along an axis, and matrices by their diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx.arguments import as_number
from fluidx.ir import Variable
from fluidx.kernels import as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    check_variable,
    emit,
    int_list,
    is_integer,
    is_number,
)
from fluidx.layers.manipulation import stack
from fluidx.layers.tensor import assign

__all__ = [
    "addmm",
    "allclose",
    "bmm",
    "cross",
    "cumsum",
    "diag",
    "diag_embed",
    "dist",
    "dot",
    "eye",
    "kron",
    "trace",
    "tril",
    "triu",
]


def addmm(
    input: Variable,
    x: Variable,
    y: Variable,
    alpha: float = 1.0,
    beta: float = 1.0,
    name: str | None = None,
) -> Variable:
    """beta * input + alpha * x @ y, for matrices; input may have ones for sizes.

    Mirrors ``fluid.layers.addmm``.

    >>> import fluidx as fluid
    >>> x, y = fluid.data("addmm_x", [None, 4]), fluid.data("addmm_y", [4, 5])
    >>> fluid.layers.addmm(fluid.data("addmm_in", [1, 5]), x, y).shape
    (-1, 5)
    """
    inputs = {"Input": input, "X": x, "Y": y}
    return emit("addmm", inputs, {"Alpha": alpha, "Beta": beta}, name=name)


def bmm(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The product of each matrix of x [b, m, k] with one of y [b, k, n].

    Mirrors ``fluid.layers.bmm``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[[1, 2], [3, 4]]], "float32"))
    >>> y = fluid.layers.bmm(x, x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[[7.0, 10.0], [15.0, 22.0]]]
    """
    return emit("bmm", {"X": x, "Y": y}, name=name)


def dot(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Inner products of vectors [n], or row by row of matrices [b, n].

    Returns shape [1] or [b, 1]. Mirrors ``fluid.layers.dot``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> y = fluid.layers.dot(x, x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [14.0]
    """
    return emit("dot", {"X": x, "Y": y}, name=name)


def cross(input: Variable, other: Variable, dim: int | None = None) -> Variable:
    """The cross product along a dimension of size 3 (the first such one).

    Mirrors ``fluid.layers.cross``.

    >>> import fluidx as fluid
    >>> x = fluid.data("cross_x", [None, 3])
    >>> fluid.layers.cross(x, x, dim=1).shape
    (-1, 3)
    """
    attrs = {} if dim is None else {"dim": dim}
    return emit("cross", {"X": input, "Y": other}, attrs)


def kron(
    x: Variable, y: Variable, out: Variable | None = None, name: str | None = None
) -> Variable:
    """The Kronecker product: each element of x times the whole of y.

    Mirrors ``fluid.layers.kron``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> y = fluid.layers.kron(x, x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1.0, 2.0, 2.0, 4.0]]
    """
    return emit("kron", {"X": x, "Y": y}, name=name, out=out)


def dist(x: Variable, y: Variable, p: float = 2) -> Variable:
    """The p-norm of x - y, shape [1]; p may be 0 (how many differ) or infinite.

    x and y are broadcast. Mirrors ``fluid.layers.dist``.

    >>> import fluidx as fluid
    >>> x = fluid.data("dist_x", [2, 3])
    >>> fluid.layers.dist(x, fluid.data("dist_y", [3]), p=1).shape
    (1,)
    """
    if not is_number(p):
        raise TypeError(f"dist: p must be a number, got {p!r}")
    return emit("dist", {"X": x, "Y": y}, {"p": as_number(p, "p", "dist")})


def allclose(
    input: Variable,
    other: Variable,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    name: str | None = None,
) -> Variable:
    """Whether |input - other| <= atol + rtol * |other| everywhere: a bool of shape [1].

    equal_nan: NaNs are close to each other. Infinities of one sign are, too; in the
    reference they are not. Mirrors ``fluid.layers.allclose``.

    >>> import fluidx as fluid
    >>> x = fluid.data("allclose_x", [2])
    >>> fluid.layers.allclose(x, x).dtype
    <VarType.BOOL: 0>
    """
    attrs = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
    inputs = {"Input": input, "Other": other}
    return emit("allclose", inputs, attrs, name=name, dtype="bool")


def cumsum(
    x: Variable,
    axis: int | None = None,
    exclusive: bool | None = None,
    reverse: bool | None = None,
) -> Variable:
    """Sums of all elements up to each, along `axis` (the last one).

    exclusive: the element itself is not counted. reverse: from the end. Mirrors
    ``fluid.layers.cumsum``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> y = fluid.layers.cumsum(x)
    >>> z = fluid.layers.cumsum(x, exclusive=True, reverse=True)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y, z])
    >>> [v.tolist() for v in made]
    [[1.0, 3.0, 6.0], [5.0, 3.0, 0.0]]
    """
    given = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    return emit("cumsum", {"X": x}, {k: v for k, v in given.items() if v is not None})


def _variable(value: Any, arg: str, layer: str) -> Variable:
    """A Variable as it is, a numpy array as a tensor."""
    value = assign(value) if isinstance(value, np.ndarray) else value
    return check_variable(value, arg, layer)


def diag(diagonal: Any) -> Variable:
    """A square matrix with a vector (Variable or array) on its diagonal.

    Mirrors ``fluid.layers.diag``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.diag(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    given = _variable(diagonal, "diagonal", "diag")
    return emit("diag", {"Diagonal": given}, stop_gradient=True)


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Variable:
    """Matrices over dimensions dim1 and dim2 with the last dimension on a diagonal.

    offset: above (positive) or below the main one. It passes no gradient. Mirrors
    ``fluid.layers.diag_embed``.

    >>> import fluidx as fluid
    >>> fluid.layers.diag_embed(fluid.data("embed_x", [None, 3]), offset=1).shape
    (-1, 4, 4)
    """
    given = _variable(input, "input", "diag_embed")
    attrs = {"offset": offset, "dim1": dim1, "dim2": dim2}
    return emit("diag_embed", {"Input": given}, attrs, stop_gradient=True)


def eye(
    num_rows: int,
    num_columns: int | None = None,
    batch_shape: Sequence[int] | None = None,
    dtype: Any = "float32",
) -> Variable:
    """Ones on the diagonal of a matrix, repeated over `batch_shape`.

    Mirrors ``fluid.layers.eye``.

    >>> import fluidx as fluid
    >>> y = fluid.layers.eye(2, 3)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    if num_columns is None:
        num_columns = num_rows
    for arg, size in (("num_rows", num_rows), ("num_columns", num_columns)):
        if not is_integer(size) or size < 0:
            raise TypeError(f"eye: {arg} must be an integer from 0 on, got {size!r}")
    kind = as_dtype(dtype)
    attrs = {"num_rows": num_rows, "num_columns": num_columns, "dtype": int(kind)}
    made = emit("eye", {}, attrs, dtype=kind)
    made.stop_gradient = True
    sizes = [] if batch_shape is None else int_list(batch_shape, "batch_shape", "eye")
    if any(size <= 0 for size in sizes):
        raise TypeError(f"eye: batch_shape must be positive integers, got {sizes}")
    for size in reversed(sizes):
        made = stack([made] * size, axis=0)
    return made


def trace(
    input: Variable,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Sums along a diagonal of dimensions dim1 and dim2, which go.

    Returns shape [1] for a matrix. Mirrors ``fluid.layers.trace``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> y = fluid.layers.trace(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [5.0]
    """
    attrs = {"offset": offset, "dim1": dim1, "dim2": dim2}
    return emit("trace", {"Input": input}, attrs, name=name, out=out)


def _triangle(
    layer: str, input: Variable, diagonal: int, lower: bool, name: str | None
) -> Variable:
    check_variable(input, "input", layer)
    if not is_integer(diagonal):
        raise TypeError(f"{layer}: diagonal must be an integer, got {diagonal!r}")
    helper = LayerHelper(layer, name=name)
    made = helper.create_variable(name=helper.name, dtype=input.dtype)
    attrs = {"diagonal": diagonal, "lower": lower}
    helper.append_op("tril_triu", {"X": input}, {"Out": made}, attrs)
    return made


def tril(input: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """Matrices with zeros above a diagonal (0: the main one, 1: the one above).

    Mirrors ``fluid.layers.tril``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> y = fluid.layers.tril(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1.0, 0.0], [3.0, 4.0]]
    """
    return _triangle("tril", input, diagonal, True, name)


def triu(input: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """Matrices with zeros below a diagonal. Mirrors ``fluid.layers.triu``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> y = fluid.layers.triu(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1.0, 2.0], [0.0, 4.0]]
    """
    return _triangle("triu", input, diagonal, False, name)
