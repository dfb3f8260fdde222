"""`LayerHelper`: what every layer needs: names, parameters, temporaries, ops."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from fluidx import kernels
from fluidx.arguments import as_integer
from fluidx.initializer import Constant, Xavier
from fluidx.ir import (
    BuildError,
    Operator,
    Parameter,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    unique_name,
)
from fluidx.ir.errors import EnforceNotMet
from fluidx.kernels import VarType, as_dtype, is_floating
from fluidx.param_attr import ParamAttr, WeightNormParamAttr

__all__ = ["LayerHelper", "LayerHelperBase"]


class LayerHelperBase:
    """Names, parameters and variables of one layer, in the default programs.

    name: of the layer, such as ``fc_0``; layer_type: ``fc``. Mirrors
    ``fluid.layer_helper_base.LayerHelperBase``.
    """

    def __init__(self, name: str, layer_type: str) -> None:
        self.name = name
        self.layer_type = layer_type

    @property
    def main_program(self) -> Program:
        return default_main_program()

    @property
    def startup_program(self) -> Program:
        return default_startup_program()

    def to_variable(self, value: Any, name: str | None = None) -> NoReturn:
        """EnforceNotMet: it is for dygraph mode, which fluidx has not."""
        raise EnforceNotMet("to_variable could only be called in dygraph mode")

    # ------------------------------------------------ parameters

    def create_parameter(
        self,
        attr: Any,
        shape: Sequence[int],
        dtype: Any = None,
        is_bias: bool = False,
        default_initializer: Any = None,
        stop_gradient: bool = False,
        type: VarType = VarType.LOD_TENSOR,
    ) -> Parameter:
        """Declare a parameter in both programs, initialised in the startup one.

        A parameter of that name that exists already is returned as it is; BuildError
        if its shape or dtype differ. Without an initializer a weight gets Xavier and
        a bias zeros; TypeError for a dtype that is not a float.
        """
        attr = copy.copy(ParamAttr._to_attr(attr))
        if not isinstance(attr, ParamAttr):
            raise TypeError(
                f"{self.layer_type}: a parameter it cannot do without was switched off "
                f"(attr {attr!r})"
            )
        dtype = VarType.FP32 if dtype is None else as_dtype(dtype)
        self._give_initializer(attr, dtype, is_bias, default_initializer)
        if attr.name is None:
            attr.name = unique_name.generate(f"{self.name}.{'b' if is_bias else 'w'}")
        shape = [
            as_integer(d, f"a size of {attr.name}", self.layer_type) for d in shape
        ]
        if any(d <= 0 for d in shape):
            raise BuildError(
                f"{self.layer_type}: parameter {attr.name} would have shape "
                f"{shape}; its sizes must be known and positive"
            )
        if isinstance(attr, WeightNormParamAttr):
            from fluidx.layers.weight_norm import weight_norm_parameter

            made: Parameter = weight_norm_parameter(self, attr, list(shape), dtype)
            return made
        return self.declare_parameter(attr, shape, dtype, type, stop_gradient)

    def declare_parameter(
        self,
        attr: ParamAttr,
        shape: Sequence[int],
        dtype: VarType,
        type: VarType = VarType.LOD_TENSOR,
        stop_gradient: bool = False,
    ) -> Parameter:
        """The same with everything settled."""
        facts = {"shape": list(shape), "dtype": dtype, "type": type}
        startup = self.startup_program.global_block()
        startup.create_parameter(**facts, **attr._to_kwargs(with_initializer=True))
        return self.main_program.global_block().create_parameter(
            **facts, stop_gradient=stop_gradient, **attr._to_kwargs()
        )

    def _give_initializer(
        self, attr: ParamAttr, dtype: VarType, is_bias: bool, default: Any
    ) -> None:
        if default is not None:
            attr._set_default_initializer(default)
        if attr.initializer is not None:
            return
        if not is_floating(dtype):
            raise TypeError(
                f"{self.layer_type}: a parameter of {dtype} has no default "
                "initializer; give one in its ParamAttr or as default_initializer"
            )
        attr.initializer = Constant(0.0) if is_bias else Xavier()

    # ------------------------------------------------ variables

    def create_variable_for_type_inference(
        self, dtype: Any, stop_gradient: bool = False
    ) -> Variable:
        """A temporary of the current block; the op that makes it sets its facts."""
        return self.main_program.current_block().create_var(
            name=unique_name.generate(f"{self.name}.tmp"),
            dtype=dtype,
            persistable=False,
            stop_gradient=stop_gradient,
        )

    create_tmp_variable = create_variable_for_type_inference

    def create_variable(self, *args: Any, **kwargs: Any) -> Variable:
        return self.main_program.current_block().create_var(*args, **kwargs)

    def create_global_variable(
        self, persistable: bool = False, *args: Any, **kwargs: Any
    ) -> Variable:
        """A variable of the global block."""
        return self.main_program.global_block().create_var(
            *args, persistable=persistable, **kwargs
        )

    def create_global_data(
        self,
        name: str,
        shape: Sequence[int],
        dtype: VarType,
        lod_level: int,
        type: VarType,
        stop_gradient: bool,
        need_check_feed: bool,
    ) -> Variable:
        """An input of the program."""
        return self.main_program.global_block().create_var(
            name=name,
            shape=shape,
            dtype=dtype,
            type=type,
            stop_gradient=stop_gradient,
            lod_level=lod_level,
            is_data=True,
            need_check_feed=need_check_feed,
        )

    def create_or_get_global_variable(
        self, name: str, *args: Any, **kwargs: Any
    ) -> tuple[Variable, bool]:
        """The global variable of this name, and whether it was just made."""
        block = self.main_program.global_block()
        if block.has_var(name):
            return block.var(name), False
        return self.create_global_variable(*args, name=name, **kwargs), True

    def set_variable_initializer(self, var: Variable, initializer: Any) -> Variable:
        """Declare the variable in the startup program too, and fill it there."""
        return self.startup_program.global_block().create_var(
            name=var.name,
            type=var.type,
            dtype=var.dtype,
            shape=var.shape,
            persistable=True,
            initializer=initializer,
        )


class LayerHelper(LayerHelperBase):
    """Builds one layer into the default programs.

    layer_type: prefix of generated names. kwargs: the layer's own arguments; known
    are name, param_attr, bias_attr, act, input, dtype, use_cudnn. A layer without a
    name takes ``<layer_type>_<n>``; its parameters are ``<name>.w_<n>`` and
    ``<name>.b_<n>``, its temporaries ``<name>.tmp_<n>``. Mirrors
    ``fluid.layer_helper.LayerHelper``.
    """

    def __init__(self, layer_type: str, **kwargs: Any) -> None:
        self.kwargs = kwargs
        name = kwargs.get("name")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"{layer_type}: name must be a string, got {name!r}")
        made = unique_name.generate(layer_type) if name is None else name
        super().__init__(made, layer_type)

    # ------------------------------------------------ inputs

    def multiple_input(self, input_param_name: str = "input") -> list[Variable]:
        """The input argument as a list; TypeError for anything but Variables."""
        given: Any = self.kwargs.get(input_param_name)
        many: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
        for item in many:
            if not isinstance(item, Variable):
                raise TypeError(
                    f"{self.layer_type}: {input_param_name} must be a Variable or a "
                    f"list of them, got {item.__class__.__name__} {item!r:.60}"
                )
        return many

    def input(self, input_param_name: str = "input") -> Variable:
        """The only input."""
        many = self.multiple_input(input_param_name)
        if len(many) != 1:
            raise ValueError(
                f"{self.layer_type}: takes one {input_param_name}, got {len(many)}"
            )
        return many[0]

    def input_dtype(self, input_param_name: str = "input") -> VarType:
        """The dtype that all inputs share; ValueError if they differ."""
        found = {v.dtype for v in self.multiple_input(input_param_name)}
        if len(found) > 1:
            names = sorted(str(d) for d in found)
            raise ValueError(f"{self.layer_type}: inputs of several dtypes: {names}")
        return found.pop()

    def is_instance(self, param_name: str, cls: type) -> None:
        """TypeError unless this argument is of that class."""
        given = self.kwargs.get(param_name)
        if not isinstance(given, cls):
            raise TypeError(
                f"{self.layer_type}: {param_name} must be a {cls.__name__}, got "
                f"{given!r:.60}"
            )

    # ------------------------------------------------ parameters

    @property
    def param_attr(self) -> Any:
        return self._attr("param_attr")

    @property
    def bias_attr(self) -> Any:
        return self._attr("bias_attr")

    def _attr(self, which: str) -> Any:
        try:
            return ParamAttr._to_attr(self.kwargs.get(which))
        except TypeError as error:
            raise TypeError(f"{self.layer_type}: {which}: {error}") from None

    def multiple_param_attr(self, length: int) -> list[Any]:
        """One attribute per input; a single one is copied for each."""
        given = self.param_attr
        many = given if isinstance(given, list) else [given]
        if len(many) == 1:
            return [copy.copy(many[0]) for _ in range(length)]
        if len(many) != length:
            raise ValueError(
                f"{self.layer_type}: {length} inputs, but {len(many)} param_attr"
            )
        return many

    def iter_inputs_and_params(
        self, input_param_name: str = "input"
    ) -> Iterator[tuple[Variable, Any]]:
        inputs = self.multiple_input(input_param_name)
        yield from zip(inputs, self.multiple_param_attr(len(inputs)))

    def get_parameter(self, name: str) -> Parameter:
        found = self.main_program.global_block().var(name)
        if not isinstance(found, Parameter):
            raise ValueError(f"{self.layer_type}: {name} is no parameter")
        return found

    # ------------------------------------------------ ops

    def append_op(self, *args: Any, **kwargs: Any) -> Operator:
        """An op in the current block; see `Block.append_op`."""
        return self.main_program.current_block().append_op(*args, **kwargs)

    def append_bias_op(
        self, input_var: Variable, dim_start: int = 1, dim_end: int | None = None
    ) -> Variable:
        """Add a bias over dimensions [dim_start, dim_end), if the layer has one."""
        attr = self.bias_attr
        if not attr:
            return input_var
        size = list(input_var.shape[dim_start:dim_end])
        bias = self.create_parameter(attr, size, input_var.dtype, is_bias=True)
        made = self.create_variable_for_type_inference(input_var.dtype)
        self.append_op(
            "elementwise_add",
            {"X": input_var, "Y": bias},
            {"Out": made},
            {"axis": dim_start},
        )
        return made

    def append_activation(self, input_var: Variable) -> Variable:
        """Apply the activation that the layer was asked for, if any."""
        act = self.kwargs.get("act")
        if act is None:
            return input_var
        if not isinstance(act, str):
            raise TypeError(
                f"{self.layer_type}: act must be the name of an activation, got {act!r}"
            )
        if not kernels.has(act):
            raise ValueError(f"{self.layer_type}: there is no activation {act!r}")
        attrs = {}
        if self.kwargs.get("use_cudnn") and "use_cudnn" in kernels.find(act).attrs:
            attrs["use_cudnn"] = True
        made = self.create_variable_for_type_inference(input_var.dtype)
        self.append_op(act, {"X": input_var}, {"Out": made}, attrs)
        return made
