"""What a layer object of dygraph is to a static program: parameters made once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from fluidx.ir import Parameter, Variable, default_main_program, unique_name
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper

__all__ = ["StaticLayer"]

_DYGRAPH = "is for dygraph, which is not part of fluidx"


class _Hook:
    """Takes a hook off again, by remove()."""

    def __init__(self, hooks: dict[int, Any]) -> None:
        self._hooks = hooks
        self._number = max(hooks, default=-1) + 1

    def remove(self) -> None:
        self._hooks.pop(self._number, None)

    def _add(self, hook: Callable[..., Any]) -> _Hook:
        self._hooks[self._number] = hook
        return self


class StaticLayer:
    """A callable that appends ops with parameters of its own.

    So much of ``fluid.dygraph.Layer`` as the reference lets static programs use; the
    rest raises RuntimeError, where the reference fails too.
    """

    def __init__(self, full_name: str, dtype: Any = "float32") -> None:
        self._full_name = full_name
        self._dtype = dtype
        self.training = True
        self._parameters: OrderedDict[str, Any] = OrderedDict()
        self._sub_layers: OrderedDict[str, StaticLayer] = OrderedDict()
        self._before: dict[int, Callable[..., Any]] = {}
        self._after: dict[int, Callable[..., Any]] = {}

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What a call gives."""
        raise NotImplementedError

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        for hook in self._before.values():
            other = hook(self, inputs)
            if other is not None:
                inputs = other if isinstance(other, tuple) else (other,)
        outputs = self.forward(*inputs, **kwargs)
        for hook in self._after.values():
            other = hook(self, inputs, outputs)
            outputs = outputs if other is None else other
        return outputs

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._parameters[name] = value
        elif isinstance(value, StaticLayer):
            self._sub_layers[name] = value
        super().__setattr__(name, value)

    def full_name(self) -> str:
        """The name that its parameters' names begin with."""
        return self._full_name

    # ------------------------------------------------ parameters

    def create_parameter(
        self,
        shape: Any,
        attr: Any = None,
        dtype: Any = "float32",
        is_bias: bool = False,
        default_initializer: Any = None,
    ) -> Parameter:
        """A new parameter, which is the layer's once it is set as an attribute."""
        helper = LayerHelper(self._full_name, name=self._full_name)
        return helper.create_parameter(attr, shape, dtype, is_bias, default_initializer)

    def create_variable(
        self,
        name: str | None = None,
        persistable: bool | None = None,
        dtype: Any = None,
        type: VarType = VarType.LOD_TENSOR,
    ) -> Variable:
        """A new variable of the current block, its name behind the layer's."""
        last = unique_name.generate("_generated_var") if name is None else name
        return (
            default_main_program()
            .current_block()
            .create_var(
                name=f"{self._full_name}.{last}",
                persistable=bool(persistable),
                dtype=self._dtype if dtype is None else dtype,
                type=type,
            )
        )

    def add_parameter(self, name: str, parameter: Parameter | None) -> Any:
        """Make a parameter the layer's; the parameter."""
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(
                f"add_parameter: takes a Parameter or None, got {parameter!r:.60}"
            )
        self._parameters[name] = parameter
        super().__setattr__(name, parameter)
        return parameter

    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter) of all, behind ``prefix.``."""
        before = f"{prefix}." if prefix else ""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                yield before + name, parameter
        if include_sublayers:
            for name, layer in self._sub_layers.items():
                yield from layer.named_parameters(before + name)

    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        """All that calls have made so far."""
        named = self.named_parameters(include_sublayers=include_sublayers)
        return [parameter for _, parameter in named]

    def state_dict(
        self,
        destination: Any = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
    ) -> Any:
        """The parameters by name, in `destination` if given."""
        found = OrderedDict() if destination is None else destination
        for name, parameter in self.named_parameters("", include_sublayers):
            found[structured_name_prefix + name] = parameter
        return found

    # ------------------------------------------------ layers inside

    def add_sublayer(self, name: str, sublayer: StaticLayer) -> StaticLayer:
        """Make another layer a part of this one; the other."""
        if not isinstance(sublayer, StaticLayer):
            raise TypeError(f"add_sublayer: takes a layer, got {sublayer!r:.60}")
        setattr(self, name, sublayer)
        return sublayer

    def named_sublayers(
        self,
        prefix: str = "",
        include_sublayers: bool = True,
        include_self: bool = False,
        layers_set: Any = None,
    ) -> Iterator[tuple[str, StaticLayer]]:
        """(name, layer) of all inside. layers_set: those not to be given again."""
        seen = set() if layers_set is None else layers_set
        if include_self and self not in seen:
            seen.add(self)
            yield prefix, self
        for name, layer in self._sub_layers.items():
            if layer in seen:
                continue
            where = f"{prefix}.{name}" if prefix else name
            if include_sublayers:
                yield from layer.named_sublayers(where, True, True, seen)
            else:
                seen.add(layer)
                yield where, layer

    def sublayers(self, include_sublayers: bool = True) -> list[StaticLayer]:
        named = self.named_sublayers(include_sublayers=include_sublayers)
        return [layer for _, layer in named]

    # ------------------------------------------------ hooks

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> _Hook:
        """hook(layer, inputs) before each call; what it returns are the inputs."""
        return _Hook(self._before)._add(hook)

    def register_forward_post_hook(self, hook: Callable[..., Any]) -> _Hook:
        """hook(layer, inputs, outputs) after each; what it returns are the outputs."""
        return _Hook(self._after)._add(hook)

    # ------------------------------------------------ of dygraph only

    def _refuse(self, method: str) -> NoReturn:
        raise RuntimeError(f"{type(self).__name__}.{method}() {_DYGRAPH}")

    def train(self) -> None:
        self._refuse("train")

    def eval(self) -> None:
        self._refuse("eval")

    def clear_gradients(self) -> None:
        self._refuse("clear_gradients")

    def set_dict(
        self,
        stat_dict: Any,
        include_sublayers: bool = True,
        use_structured_name: bool = True,
    ) -> None:
        self._refuse("set_dict")

    def load_dict(
        self,
        stat_dict: Any,
        include_sublayers: bool = True,
        use_structured_name: bool = True,
    ) -> None:
        self._refuse("load_dict")

    def backward(self, *inputs: Any) -> NoReturn:
        raise ValueError("a layer has no backward(): gradients come of its ops")
