"""Sums, means, extremes over dimensions, and where extremes are."""

from __future__ import annotations

from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import check_dtype, check_variable, emit, int_list

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "mean",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "sum",
    "sums",
]


def _reduce(
    type: str, input: Variable, dim: Any, keep_dim: bool, name: str | None
) -> Variable:
    check_variable(input, "input", type)
    everything = dim is None or dim == []
    attrs = {
        "dim": [0] if everything else int_list(dim, "dim", type),
        "keep_dim": keep_dim,
        "reduce_all": everything,
    }
    return emit(type, {"X": input}, attrs, name=name)


def reduce_sum(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Sum over dimensions `dim`: an integer, several, or None for all.

    keep_dim: they stay, with size 1; else they go, and the sum of everything has
    shape [1]. Mirrors ``fluid.layers.reduce_sum``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> kinds = [fluid.layers.reduce_sum(x),
    ...          fluid.layers.reduce_sum(x, dim=0),
    ...          fluid.layers.reduce_sum(x, dim=-1, keep_dim=True)]
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=kinds)
    >>> [v.tolist() for v in made]
    [[10.0], [4.0, 6.0], [[3.0], [7.0]]]
    """
    return _reduce("reduce_sum", input, dim, keep_dim, name)


def reduce_mean(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Mean over dimensions, as in `reduce_sum`. ``fluid.layers.reduce_mean``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 3], [4, 6]], "float32"))
    >>> kinds = [fluid.layers.reduce_mean(x),
    ...          fluid.layers.reduce_mean(x, dim=0),
    ...          fluid.layers.reduce_mean(x, dim=1, keep_dim=True)]
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=kinds)
    >>> [v.tolist() for v in made]
    [[3.5], [2.5, 4.5], [[2.0], [5.0]]]
    """
    return _reduce("reduce_mean", input, dim, keep_dim, name)


def reduce_max(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Maximum over dimensions, as in `reduce_sum`. ``fluid.layers.reduce_max``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 3], [4, 6]], "float32"))
    >>> kinds = [fluid.layers.reduce_max(x),
    ...          fluid.layers.reduce_max(x, dim=0),
    ...          fluid.layers.reduce_max(x, dim=1, keep_dim=True)]
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=kinds)
    >>> [v.tolist() for v in made]
    [[6.0], [4.0, 6.0], [[3.0], [6.0]]]
    """
    return _reduce("reduce_max", input, dim, keep_dim, name)


def reduce_min(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Minimum over dimensions, as in `reduce_sum`. ``fluid.layers.reduce_min``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 3], [4, 6]], "float32"))
    >>> kinds = [fluid.layers.reduce_min(x),
    ...          fluid.layers.reduce_min(x, dim=0),
    ...          fluid.layers.reduce_min(x, dim=1, keep_dim=True)]
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=kinds)
    >>> [v.tolist() for v in made]
    [[1.0], [1.0, 3.0], [[1.0], [4.0]]]
    """
    return _reduce("reduce_min", input, dim, keep_dim, name)


def reduce_prod(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Product over dimensions, as in `reduce_sum`. ``fluid.layers.reduce_prod``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 3], [4, 6]], "float32"))
    >>> kinds = [fluid.layers.reduce_prod(x),
    ...          fluid.layers.reduce_prod(x, dim=0),
    ...          fluid.layers.reduce_prod(x, dim=1, keep_dim=True)]
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=kinds)
    >>> [v.tolist() for v in made]
    [[72.0], [4.0, 18.0], [[3.0], [24.0]]]
    """
    return _reduce("reduce_prod", input, dim, keep_dim, name)


def reduce_all(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Whether all elements of a bool tensor are true. ``fluid.layers.reduce_all``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[True, False], [True, True]]))
    >>> kinds = [fluid.layers.reduce_all(x), fluid.layers.reduce_all(x, dim=0)]
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=kinds)
    >>> [v.tolist() for v in made]
    [[False], [True, False]]
    """
    check_dtype(input, "input", "reduce_all", (VarType.BOOL,))
    return _reduce("reduce_all", input, dim, keep_dim, name)


def reduce_any(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Whether any element of a bool tensor is true. ``fluid.layers.reduce_any``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[True, False], [True, True]]))
    >>> kinds = [fluid.layers.reduce_any(x), fluid.layers.reduce_any(x, dim=0)]
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=kinds)
    >>> [v.tolist() for v in made]
    [[True], [True, True]]
    """
    check_dtype(input, "input", "reduce_any", (VarType.BOOL,))
    return _reduce("reduce_any", input, dim, keep_dim, name)


def mean(x: Variable, name: str | None = None) -> Variable:
    """Mean of all elements, shape [1]. Mirrors ``fluid.layers.mean``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 6]], "float32"))
    >>> y = fluid.layers.mean(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [3.0]
    """
    return emit("mean", {"X": x}, name=name)


def sum(x: Any) -> Variable:
    """Sum of several tensors of one shape. Mirrors ``fluid.layers.sum``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.sum([x, x, x])
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [3.0, 6.0]
    """
    return emit("sum", {"X": list(x) if isinstance(x, (list, tuple)) else [x]})


def sums(input: Any, out: Variable | None = None) -> Variable:
    """Sum of several tensors, into `out` if given. Mirrors ``fluid.layers.sums``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.sums([x, x])
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [2.0, 4.0]
    """
    many = list(input) if isinstance(input, (list, tuple)) else [input]
    return emit("sum", {"X": many}, out=out)


def argmax(x: Variable, axis: int = 0) -> Variable:
    """Where along `axis` the maximum is (int64). Mirrors ``fluid.layers.argmax``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[5, 9, 7], [3, 1, 2]], "float32"))
    >>> y = fluid.layers.argmax(x, axis=1)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [1, 0]
    """
    return emit("arg_max", {"X": x}, {"axis": axis}, dtype="int64", stop_gradient=True)


def argmin(x: Variable, axis: int = 0) -> Variable:
    """Where along `axis` the minimum is (int64). Mirrors ``fluid.layers.argmin``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[5, 9, 7], [3, 1, 2]], "float32"))
    >>> y = fluid.layers.argmin(x, axis=1)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [0, 1]
    """
    return emit("arg_min", {"X": x}, {"axis": axis}, dtype="int64", stop_gradient=True)


def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """Sorted along `axis`, and the int64 indices that sort.

    Mirrors ``fluid.layers.argsort``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[5, 9, 7]], "float32"))
    >>> ordered, places = fluid.layers.argsort(x, axis=-1)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[ordered, places])
    >>> [v.tolist() for v in made]
    [[[5.0, 7.0, 9.0]], [[0, 2, 1]]]
    """
    check_variable(input, "input", "argsort")
    helper = LayerHelper("argsort", name=name)
    out = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True)
    ids = helper.create_variable_for_type_inference(VarType.INT64, stop_gradient=True)
    attrs = {"axis": axis, "descending": descending}
    helper.append_op("argsort", {"X": input}, {"Out": out, "Indices": ids}, attrs)
    return out, ids
