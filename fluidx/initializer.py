"""First values of parameters: ops that initialisers put into the startup program.

An initialiser is called with a variable and a block and *prepends* its op, as the
reference's do: the startup program lists parameters from the last made to the first.
A seed of 0 means the program's ``random_seed``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidx.ir import Block, Operator, Variable, unique_name
from fluidx.kernels import VarType, is_floating, to_numpy

__all__ = [
    "Bilinear",
    "BilinearInitializer",
    "Constant",
    "ConstantInitializer",
    "Initializer",
    "MSRA",
    "MSRAInitializer",
    "Normal",
    "NormalInitializer",
    "NumpyArrayInitializer",
    "TruncatedNormal",
    "TruncatedNormalInitializer",
    "Uniform",
    "UniformInitializer",
    "Xavier",
    "XavierInitializer",
    "value_attrs",
]


class Initializer:
    """Base of all initialisers: ``initializer(variable, block)`` appends the op."""

    def __call__(self, param: Variable, block: Block) -> Operator:
        raise NotImplementedError(f"{self.__class__.__name__} cannot be called")

    def _check(self, param: Any, block: Any) -> None:
        if not isinstance(param, Variable) or not isinstance(block, Block):
            raise TypeError(
                f"{self.__class__.__name__} is called with a Variable and a Block, got "
                f"{param.__class__.__name__} and {block.__class__.__name__}"
            )

    @staticmethod
    def _compute_fans(var: Variable) -> tuple[int, int]:
        """Inputs and outputs of one unit: (fan_in, fan_out) by the variable's shape.

        A matrix is [in, out], a filter [out, in, height, width, ...].
        """
        shape = var.shape
        if not shape:
            return 1, 1
        if len(shape) == 1:
            return shape[0], shape[0]
        if len(shape) == 2:
            return shape[0], shape[1]
        field = math.prod(shape[2:])
        return shape[1] * field, shape[0] * field


def _emit(
    param: Variable, block: Block, type: str, attrs: dict[str, Any], key: str
) -> Operator:
    """Prepend the op; float16 is filled as float32 and cast at the end."""
    out, dtype = param, param.dtype
    if dtype in (VarType.FP16, VarType.BF16):
        out = block.create_var(
            name=unique_name.generate(f"{key}.{param.name}.tmp"),
            shape=param.shape,
            dtype=VarType.FP32,
            type=VarType.LOD_TENSOR,
        )
        dtype = VarType.FP32
    made = block._prepend_op(
        type,
        outputs={"Out": out},
        attrs={"shape": list(param.shape), "dtype": int(dtype), **attrs},
        stop_gradient=False,
    )
    if out is not param:
        block.append_op(
            "cast",
            inputs={"X": out},
            outputs={"Out": param},
            attrs={"in_dtype": int(dtype), "out_dtype": int(param.dtype)},
        )
    return made


def _number(value: Any, name: str, owner: Initializer) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        kind = owner.__class__.__name__
        raise TypeError(f"{kind}: {name} must be a number, got {value!r}")
    return float(value)


def _seed_attr(seed: Any, owner: Initializer) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        kind = owner.__class__.__name__
        raise TypeError(f"{kind}: seed must be an integer, got {seed!r}")
    return int(seed)


class ConstantInitializer(Initializer):
    """All elements equal `value`. Mirrors ``fluid.initializer.Constant``.

    >>> import fluidx as fluid
    >>> values = fluid.initializer.Constant(0.5)
    >>> w = fluid.layers.create_parameter([2], "float32", default_initializer=values)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=[w])[0].tolist()
    [0.5, 0.5]
    """

    def __init__(self, value: float = 0.0, force_cpu: bool = False) -> None:
        self.value = _number(value, "value", self)
        self.force_cpu = force_cpu

    def __call__(self, param: Variable, block: Block) -> Operator:
        self._check(param, block)
        attrs = {"value": self.value, "force_cpu": bool(self.force_cpu)}
        return _emit(param, block, "fill_constant", attrs, "constant_init")


class UniformInitializer(Initializer):
    """Even spread over [low, high). Mirrors ``fluid.initializer.Uniform``.

    diag_num, diag_step, diag_val: the first `diag_num` elements at distance
    `diag_step` + 1 are set to `diag_val`.

    >>> import fluidx as fluid
    >>> values = fluid.initializer.Uniform(low=1.0, high=2.0, seed=1)
    >>> w = fluid.layers.create_parameter([100], "float32", default_initializer=values)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> drawn = exe.run(fetch_list=[w])[0]
    >>> bool((drawn >= 1).all()), bool((drawn < 2).all()), len(set(drawn.tolist())) > 90
    (True, True, True)
    """

    def __init__(
        self,
        low: float = -1.0,
        high: float = 1.0,
        seed: int = 0,
        diag_num: int = 0,
        diag_step: int = 0,
        diag_val: float = 1.0,
    ) -> None:
        self.low, self.high = _number(low, "low", self), _number(high, "high", self)
        if self.high < self.low:
            raise ValueError(f"Uniform: high {high} is below low {low}")
        if diag_num > 0 and diag_step <= 0:
            raise ValueError(f"Uniform: diag_num needs a diag_step, got {diag_step}")
        self.seed = _seed_attr(seed, self)
        self.diag_num, self.diag_step = int(diag_num), int(diag_step)
        self.diag_val = _number(diag_val, "diag_val", self)

    def __call__(self, param: Variable, block: Block) -> Operator:
        self._check(param, block)
        attrs = {
            "min": self.low,
            "max": self.high,
            "seed": self.seed or block.program.random_seed,
            "diag_num": self.diag_num,
            "diag_step": self.diag_step,
            "diag_val": self.diag_val,
        }
        return _emit(param, block, "uniform_random", attrs, "uniform_random")


class NormalInitializer(Initializer):
    """Gaussian with mean `loc` and deviation `scale`. ``fluid.initializer.Normal``.

    >>> import fluidx as fluid
    >>> values = fluid.initializer.Normal(loc=5.0, scale=0.1, seed=1)
    >>> w = fluid.layers.create_parameter([1000], "float32", default_initializer=values)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> drawn = exe.run(fetch_list=[w])[0]
    >>> bool(abs(drawn.mean() - 5) < 0.02), bool(abs(drawn.std() - 0.1) < 0.02)
    (True, True)
    """

    _op, _key = "gaussian_random", "gaussian_random"

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        self.loc, self.scale = _number(loc, "loc", self), _number(scale, "scale", self)
        if self.scale < 0:
            kind = self.__class__.__name__
            raise ValueError(f"{kind}: scale must not be negative, got {scale}")
        self.seed = _seed_attr(seed, self)

    def __call__(self, param: Variable, block: Block) -> Operator:
        self._check(param, block)
        attrs = {
            "mean": self.loc,
            "std": self.scale,
            "seed": self.seed or block.program.random_seed,
        }
        return _emit(param, block, self._op, attrs, self._key)


class TruncatedNormalInitializer(NormalInitializer):
    """Gaussian, values beyond two deviations drawn anew.

    Mirrors ``fluid.initializer.TruncatedNormal``.

    >>> import fluidx as fluid
    >>> values = fluid.initializer.TruncatedNormal(0.0, 0.1)
    >>> fluid.layers.create_parameter(
    ...     [4, 2], "float32", default_initializer=values
    ... ).shape
    (4, 2)
    """

    _op, _key = "truncated_gaussian_random", "truncated_gaussian_random"


class _FanInitializer(Initializer):
    """Spread by the number of inputs and outputs of a unit."""

    _key: str

    def __init__(self, uniform: bool, seed: int) -> None:
        if not isinstance(uniform, (bool, np.bool_)):
            kind = self.__class__.__name__
            raise TypeError(f"{kind}: uniform must be a bool, got {uniform!r}")
        self.uniform, self.seed = bool(uniform), _seed_attr(seed, self)

    def _variance(self, param: Variable) -> float:
        raise NotImplementedError

    def __call__(self, param: Variable, block: Block) -> Operator:
        self._check(param, block)
        variance = self._variance(param)
        seed = self.seed or block.program.random_seed
        if self.uniform:
            limit = math.sqrt(3.0 * variance)
            attrs: dict[str, Any] = {"min": -limit, "max": limit, "seed": seed}
            return _emit(param, block, "uniform_random", attrs, self._key)
        attrs = {"mean": 0.0, "std": math.sqrt(variance), "seed": seed}
        return _emit(param, block, "gaussian_random", attrs, self._key)


class XavierInitializer(_FanInitializer):
    """Variance 2 / (fan_in + fan_out), uniform or normal.

    Glorot and Bengio (2010). The default of weights. Mirrors
    ``fluid.initializer.Xavier``.

    >>> import fluidx as fluid
    >>> values = fluid.initializer.Xavier()
    >>> w = fluid.layers.create_parameter([4, 2], "float32", default_initializer=values)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> drawn = exe.run(fetch_list=[w])[0]  # of variance 2 / (4 + 2): from -1 to 1
    >>> 0 < float(abs(drawn).max()) <= 1
    True
    """

    _key = "xavier_init"

    def __init__(
        self,
        uniform: bool = True,
        fan_in: float | None = None,
        fan_out: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(uniform, seed)
        self.fan_in = None if fan_in is None else _number(fan_in, "fan_in", self)
        self.fan_out = None if fan_out is None else _number(fan_out, "fan_out", self)

    def _variance(self, param: Variable) -> float:
        fan_in, fan_out = self._compute_fans(param)
        return 2.0 / (
            (fan_in if self.fan_in is None else self.fan_in)
            + (fan_out if self.fan_out is None else self.fan_out)
        )


class MSRAInitializer(_FanInitializer):
    """Variance 2 / fan_in, for layers before a rectifier.

    He et al., "Delving deep into rectifiers" (2015). Mirrors
    ``fluid.initializer.MSRA``.

    >>> import fluidx as fluid
    >>> values = fluid.initializer.MSRA()
    >>> fluid.layers.create_parameter(
    ...     [4, 2], "float32", default_initializer=values
    ... ).shape
    (4, 2)
    """

    _key = "masra_init"

    def __init__(
        self, uniform: bool = True, fan_in: float | None = None, seed: int = 0
    ) -> None:
        super().__init__(uniform, seed)
        self.fan_in = fan_in

    def _variance(self, param: Variable) -> float:
        return 2.0 / (
            self._compute_fans(param)[0] if self.fan_in is None else self.fan_in
        )


class BilinearInitializer(Initializer):
    """Weights with which a transposed convolution enlarges images smoothly.

    For a filter [out, in, size, size]; size = 2 * factor - factor % 2, stride factor.
    Mirrors ``fluid.initializer.Bilinear``; under Python 3 the reference's own weights
    are askew (they are not even symmetric), these are right.

    >>> import fluidx as fluid
    >>> values = fluid.initializer.Bilinear()
    >>> w = fluid.layers.create_parameter(
    ...     [1, 1, 4, 4], "float32", default_initializer=values)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=[w])[0][0, 0, 0].tolist()  # 1/4 * (1/4, 3/4, 3/4, 1/4)
    [0.0625, 0.1875, 0.1875, 0.0625]
    """

    def __init__(self) -> None:
        """Nothing to choose: the filter's size says it all."""

    def __call__(self, param: Variable, block: Block) -> Operator:
        self._check(param, block)
        shape = param.shape
        if len(shape) != 4 or shape[2] != shape[3]:
            raise ValueError(
                "Bilinear needs a filter of shape [out, in, size, size], got "
                f"{list(shape)} for {param.name}"
            )
        size = shape[3]
        factor = math.ceil(size / 2.0)
        center = (2 * factor - 1 - factor % 2) / (2.0 * factor)
        line = 1 - np.abs(np.arange(size) / factor - center)
        value = np.broadcast_to(np.outer(line, line), shape)
        return _emit_value(param, block, value, "bilinear_init")


class NumpyArrayInitializer(Initializer):
    """The values of an array, cast to the variable's dtype.

    Mirrors ``fluid.initializer.NumpyArrayInitializer``.

    >>> import fluidx as fluid, numpy as np
    >>> start = np.array([[1, 2], [3, 4]], "float32")
    >>> values = fluid.initializer.NumpyArrayInitializer(start)
    >>> w = fluid.layers.create_parameter([2, 2], "float32", default_initializer=values)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=[w])[0].tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """

    def __init__(self, value: Any) -> None:
        if not isinstance(value, np.ndarray):
            raise TypeError(
                f"NumpyArrayInitializer takes a numpy array, got {value!r:.60}"
            )
        self.value = value

    def __call__(self, param: Variable, block: Block) -> Operator:
        self._check(param, block)
        if self.value.shape != param.shape:
            raise ValueError(
                f"NumpyArrayInitializer: the array has shape {list(self.value.shape)}, "
                f"{param.name} has {list(param.shape)}"
            )
        return _emit_value(param, block, self.value, "numpy_array_init")


_VALUE_SLOTS = {
    VarType.FP32: "fp32_values",
    VarType.INT32: "int32_values",
    VarType.INT64: "int64_values",
    VarType.BOOL: "bool_values",
}


def value_attrs(value: Any, dtype: VarType, owner: str) -> dict[str, Any]:
    """Attributes with which ``assign_value`` makes this array.

    TypeError where the op has no attribute for the dtype.
    """
    slot = _VALUE_SLOTS.get(dtype)
    if slot is None:
        known = ", ".join(sorted(str(to_numpy(d)) for d in _VALUE_SLOTS))
        raise TypeError(f"{owner}: an array can be {known}, got {to_numpy(dtype)}")
    flat = np.asarray(value).astype(to_numpy(dtype)).reshape(-1)
    if dtype == VarType.BOOL:
        return {slot: [bool(v) for v in flat]}
    return {slot: flat.tolist()}


def _emit_value(param: Variable, block: Block, value: Any, key: str) -> Operator:
    half = is_floating(param.dtype) and param.dtype in (VarType.FP16, VarType.BF16)
    dtype = VarType.FP32 if half else param.dtype
    attrs = value_attrs(value, dtype, key)
    return _emit(param, block, "assign_value", attrs, key)


Constant = ConstantInitializer
Uniform = UniformInitializer
Normal = NormalInitializer
TruncatedNormal = TruncatedNormalInitializer
Xavier = XavierInitializer
MSRA = MSRAInitializer
Bilinear = BilinearInitializer
