"""Variables of a program: names with a shape, a dtype and a home block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from fluidx.kernels import GRAD, Meta, VarType, as_dtype

if TYPE_CHECKING:
    from .block import Block
    from .operator import Operator

__all__ = ["Variable", "Parameter"]

_FETCH = "; a run that fetches it gives its value"
_SCOPE = "; set the tensor: fluid.global_scope().find_var(name).get_tensor().set(...)"
#: what a static program does in place of dygraph's methods
_INSTEAD = {
    "numpy": _FETCH,
    "gradient": "; a run that fetches <name>@GRAD gives its gradient",
    "set_value": _SCOPE,
    "backward": "; use fluid.append_backward(loss)",
}


def _sizes(shape: Sequence[int] | None, name: str) -> tuple[int, ...]:
    try:
        return tuple(int(d) for d in shape or ())
    except (TypeError, ValueError) as error:
        raise error.__class__(
            f"variable {name}: shape must be a list of integers, got {shape!r:.60}"
        ) from None


class Variable:
    """A value of a program, known by name; arithmetic on it appends ops.

    shape: sizes, -1 where unknown. dtype: `VarType`. lod_level: nested sequence
    levels. persistable: it stays in the scope between runs. stop_gradient: no
    gradient flows through it. Made by layers and by `Block.create_var`.
    """

    # numpy must leave `array + variable` to us
    __array_ufunc__ = None

    def __init__(
        self,
        block: Block,
        type: VarType = VarType.LOD_TENSOR,
        name: str | None = None,
        shape: Sequence[int] | None = None,
        dtype: Any = None,
        lod_level: int | None = None,
        capacity: int | None = None,
        persistable: bool | None = None,
        error_clip: Any = None,
        stop_gradient: bool = False,
        is_data: bool = False,
        need_check_feed: bool = False,
        **_ignored: Any,
    ) -> None:
        if not name:
            raise ValueError("a variable needs a name")
        self.block = block
        self.name = name
        self.type = VarType(type)
        self._shape = _sizes(shape, name)
        self._dtype = as_dtype(dtype) if dtype is not None else VarType.FP32
        self._lod_level = int(lod_level or 0)
        self._persistable = bool(persistable)
        self._stop_gradient = bool(stop_gradient)
        self.error_clip = error_clip
        self.is_data = is_data
        self.need_check_feed = need_check_feed
        self.op: Operator | None = None
        self.wire = b""

    def _changed(self) -> None:
        self.block.program._touch()

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> VarType:
        return self._dtype

    @property
    def lod_level(self) -> int:
        return self._lod_level

    @property
    def persistable(self) -> bool:
        return self._persistable

    @persistable.setter
    def persistable(self, value: bool) -> None:
        self._persistable = bool(value)
        self._changed()

    @property
    def stop_gradient(self) -> bool:
        return self._stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self._stop_gradient = bool(value)
        self._changed()

    @property
    def meta(self) -> Meta:
        """Shape, dtype, LoD level and kind as inference rules see them."""
        return Meta(self._shape, self._dtype, self._lod_level, self.type)

    def set_meta(self, meta: Meta) -> None:
        """Take the facts that inference found."""
        self._shape, self._dtype = meta.shape, meta.dtype
        self._lod_level, self.type = meta.lod_level, meta.kind
        self._changed()

    def set_shape(self, shape: Sequence[int]) -> None:
        self._shape = tuple(int(d) for d in shape)
        self._changed()

    def set_dtype(self, dtype: Any) -> None:
        self._dtype = as_dtype(dtype)
        self._changed()

    def copy_to(self, block: Block) -> Variable:
        """An equal variable for another block (not declared there)."""
        made = object.__new__(self.__class__)
        made.__dict__.update(self.__dict__)
        made.block, made.op = block, None
        return made

    def facts(self) -> dict[str, Any]:
        """The keyword arguments that make an equal variable in another block."""
        return {
            "name": self.name,
            "type": self.type,
            "shape": self._shape,
            "dtype": self._dtype,
            "lod_level": self._lod_level,
            "persistable": self._persistable,
            "stop_gradient": self._stop_gradient,
            "is_data": self.is_data,
            "need_check_feed": self.need_check_feed,
            "error_clip": self.error_clip,
        }

    def set_error_clip(self, error_clip: Any) -> None:
        """Clip this variable's gradient while it flows backward."""
        self.error_clip = error_clip

    _set_error_clip = set_error_clip

    def detach(self) -> None:
        self._dygraph_only("detach")

    def numpy(self) -> None:
        """Its value exists while a program runs: fetch it; `core.Scope` holds it."""
        self._dygraph_only("numpy")

    def set_value(self, value: Any) -> None:
        self._dygraph_only("set_value")

    def backward(self, backward_strategy: Any = None) -> None:
        self._dygraph_only("backward")

    def gradient(self) -> None:
        self._dygraph_only("gradient")

    def clear_gradient(self) -> None:
        self._dygraph_only("clear_gradient")

    def _dygraph_only(self, method: str) -> None:
        hint = _INSTEAD.get(method, "")
        raise TypeError(f"{self.name}: {method}() exists in dygraph mode only{hint}")

    @property
    def grad_name(self) -> str:
        """The name that its gradient has."""
        return self.name + GRAD

    @property
    def desc(self) -> Any:
        """A view in which facts are calls (``var.desc.shape()``); see `desc`."""
        from .desc import VarDesc

        return VarDesc(self)

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """One line that names the variable and its facts."""
        from .text import var_line

        return var_line(self)

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f"<{self.to_string()}>"

    def __bool__(self) -> bool:
        """True: a variable is there (``if bias:``), whatever it will hold."""
        return True

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError(f"variable {self.name} has no dimensions")
        if self._shape[0] < 0:
            raise TypeError(
                f"variable {self.name} of shape {list(self._shape)} has no length "
                "before it runs; layers.shape gives its sizes then"
            )
        return self._shape[0]

    def __iter__(self) -> Iterator[Variable]:
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            f"variable {self.name} is part of a program and holds no numbers: numpy "
            "cannot take it; a run that fetches it gives its value"
        )

    __hash__ = object.__hash__

    if TYPE_CHECKING:
        # installed by fluidx.layers.math_op_patch: each appends an op
        def __add__(self, other: Any) -> Variable: ...
        def __radd__(self, other: Any) -> Variable: ...
        def __sub__(self, other: Any) -> Variable: ...
        def __rsub__(self, other: Any) -> Variable: ...
        def __mul__(self, other: Any) -> Variable: ...
        def __rmul__(self, other: Any) -> Variable: ...
        def __truediv__(self, other: Any) -> Variable: ...
        def __rtruediv__(self, other: Any) -> Variable: ...
        def __pow__(self, other: Any) -> Variable: ...
        def __rpow__(self, other: Any) -> Variable: ...
        def __floordiv__(self, other: Any) -> Variable: ...
        def __mod__(self, other: Any) -> Variable: ...
        def __lt__(self, other: Any) -> Variable: ...
        def __le__(self, other: Any) -> Variable: ...
        def __gt__(self, other: Any) -> Variable: ...
        def __ge__(self, other: Any) -> Variable: ...
        def __neg__(self) -> Variable: ...
        def __getitem__(self, item: Any) -> Variable: ...
        def astype(self, dtype: Any) -> Variable: ...


class Parameter(Variable):
    """A persistable variable that training changes.

    trainable: whether the optimizer updates it. optimize_attr: ``learning_rate``
    factor. regularizer, gradient_clip_attr, do_model_average: as in `ParamAttr`.
    """

    def __init__(
        self,
        block: Block,
        shape: Sequence[int],
        dtype: Any,
        type: VarType = VarType.LOD_TENSOR,
        **kwargs: Any,
    ) -> None:
        name = kwargs.get("name")
        if not shape:
            raise ValueError(
                f"parameter {name} needs a shape of at least one dimension"
            )
        if any(int(d) <= 0 for d in shape):
            raise ValueError(f"parameter {name}: sizes must be positive, got {shape}")
        self.trainable: bool = kwargs.pop("trainable", True)
        self.optimize_attr = kwargs.pop("optimize_attr", {"learning_rate": 1.0})
        self.regularizer = kwargs.pop("regularizer", None)
        self.gradient_clip_attr = kwargs.pop("gradient_clip_attr", None)
        self.do_model_average = kwargs.pop("do_model_average", None)
        self.is_distributed = bool(kwargs.pop("is_distributed", False))
        kwargs["persistable"] = True
        super().__init__(block, type=type, shape=shape, dtype=dtype, **kwargs)

    def facts(self) -> dict[str, Any]:
        return {
            **super().facts(),
            "trainable": self.trainable,
            "optimize_attr": self.optimize_attr,
            "regularizer": self.regularizer,
            "gradient_clip_attr": self.gradient_clip_attr,
            "do_model_average": self.do_model_average,
            "is_distributed": self.is_distributed,
        }
