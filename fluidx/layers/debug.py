"""Python in the middle of a program: printing values, calling functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fluidx.ir import Variable
from fluidx.kernels.debug import register_callable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import check_variable, check_variables, one_of

__all__ = ["Print", "py_func"]


def Print(
    input: Variable,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:
    """input, written to the standard output whenever it is computed.

    Use what it returns: its gradient passes through here. first_n: in the first runs
    only. summarize: so many elements (-1: all). print_phase: "forward" (values),
    "backward" (gradients) or "both". Mirrors ``fluid.layers.Print``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.data("print_x", [2])
    >>> y = fluid.layers.Print(x, message="here")
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(feed={"print_x": np.ones(2, "float32")}, fetch_list=[y])
    here
    Tensor[print_x]
        shape: [2]
        dtype: float32
        data: [1.0, 1.0]
    """
    check_variable(input, "input", "Print")
    phase = one_of(
        str(print_phase).lower(),
        "print_phase",
        "Print",
        ("forward", "backward", "both"),
    )
    helper = LayerHelper(f"print_{input.name}")
    made = helper.create_variable_for_type_inference(input.dtype)
    attrs = {
        "first_n": first_n,
        "summarize": summarize,
        "message": message or "",
        "print_tensor_name": print_tensor_name,
        "print_tensor_type": print_tensor_type,
        "print_tensor_shape": print_tensor_shape,
        "print_tensor_lod": print_tensor_lod,
        "print_phase": phase.upper(),
    }
    helper.append_op("print", {"In": input}, {"Out": made}, attrs)
    return made


def _listed(value: Any, arg: str) -> list[Variable]:
    if value is None or (isinstance(value, (list, tuple)) and not value):
        return []
    return check_variables(value, arg, "py_func")


def py_func(
    func: Callable[..., Any],
    x: Any,
    out: Any,
    backward_func: Callable[..., Any] | None = None,
    skip_vars_in_backward_input: Any = None,
) -> Any:
    """Calls a Python function in the middle of a program.

    func gets the values of x (a Variable, a list or None) as numpy arrays and returns
    those of out, Variables of known shape that you made. backward_func gets the values
    of x, of out (but those of skip_vars_in_backward_input) and the gradients of out,
    and returns the gradients of x; without it none flow. Such a program runs only in
    the process that built it. Returns out. Mirrors ``fluid.layers.py_func``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.data("py_x", [2])
    >>> y = fluid.default_main_program().current_block().create_var(
    ...     name="py_y", dtype="float32", shape=[2])
    >>> _ = fluid.layers.py_func(np.cbrt, x, y)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> exe.run(feed={"py_x": np.array([8, 27], "float32")}, fetch_list=[y])[0]
    array([2., 3.], dtype=float32)
    """
    ins, outs = _listed(x, "x"), _listed(out, "out")
    for function, arg in ((func, "func"), (backward_func, "backward_func")):
        if not (callable(function) or (arg == "backward_func" and function is None)):
            raise TypeError(f"py_func: {arg} must be a function, got {function!r:.60}")
    for var in outs:
        if len(var.shape) == 0:
            raise ValueError(f"py_func: give the output {var.name} its shape")
    skipped = {v.name for v in _listed(skip_vars_in_backward_input, "skip_vars")}
    unknown = skipped - {v.name for v in ins + outs}
    if unknown:
        raise ValueError(
            f"py_func: skip_vars_in_backward_input {sorted(unknown)} are neither in x "
            "nor in out"
        )
    attrs: dict[str, Any] = {"forward_callable_id": register_callable(func)}
    attrs["backward_callable_id"] = -1
    if backward_func is not None:
        attrs["backward_callable_id"] = register_callable(backward_func)
    attrs["backward_skip_vars"] = sorted(skipped) if backward_func else []
    LayerHelper("py_func").append_op("py_func", {"X": ins}, {"Out": outs}, attrs)
    return out
