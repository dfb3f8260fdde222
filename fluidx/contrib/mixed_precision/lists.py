"""Which op runs in which precision."""

from __future__ import annotations

from collections.abc import Iterable

from fluidx.kernels import VarType, as_dtype

__all__ = ["AutoMixedPrecisionLists"]

#: run in half precision
WHITE = frozenset(["conv2d", "matmul", "mul"])
#: run in float32, like every op that stands in no list
BLACK = frozenset([
    "cos_sim", "cross_entropy", "cross_entropy2", "exp", "log", "mean",
    "sigmoid_cross_entropy_with_logits", "softmax", "softmax_with_cross_entropy",
    "square", "sum",
])  # fmt: skip
#: run as what makes their inputs does
GRAY = frozenset([
    "batch_norm", "cast", "dropout", "elementwise_add", "elementwise_div",
    "elementwise_floordiv", "elementwise_max", "elementwise_min", "elementwise_mod",
    "elementwise_mul", "elementwise_pow", "elementwise_sub", "fill_constant",
    "flatten2", "gather", "gaussian_random", "gaussian_random_batch_size_like",
    "get_tensor_from_selected_rows", "leaky_relu", "lookup_table", "pool2d", "pool3d",
    "rank", "relu", "relu6", "reshape2", "scale", "sigmoid", "sign", "slice",
    "soft_relu", "stack", "tanh", "top_k", "transpose2",
    "uniform_random_batch_size_like", "unstack",
])  # fmt: skip
#: the names that the reference has
white_list, black_list, gray_list = set(WHITE), set(BLACK), set(GRAY)
_HALVES = (VarType.FP16, VarType.BF16)


class AutoMixedPrecisionLists:
    """Op types by precision: white in half, black in float32, gray as their inputs.

    custom_white_list, custom_black_list: op types to move there; ValueError if one is
    in both. custom_black_varnames: ops that read or write one of these variables run
    in float32. Mirrors ``contrib.mixed_precision.AutoMixedPrecisionLists``.

    >>> from fluidx.contrib.mixed_precision import AutoMixedPrecisionLists
    >>> lists = AutoMixedPrecisionLists(custom_white_list=["softmax"])
    >>> "softmax" in lists.white_list, "softmax" in lists.black_list
    (True, False)
    """

    def __init__(
        self,
        custom_white_list: Iterable[str] | None = None,
        custom_black_list: Iterable[str] | None = None,
        custom_black_varnames: Iterable[str] | None = None,
    ) -> None:
        white = _names(custom_white_list, "custom_white_list")
        black = _names(custom_black_list, "custom_black_list")
        both = sorted(white & black)
        if both:
            raise ValueError(
                f"AutoMixedPrecisionLists: {', '.join(both)} in the custom white list "
                "and in the custom black list"
            )
        self.white_list = (WHITE - black) | white
        self.black_list = (BLACK - white) | black
        self.gray_list = GRAY - white - black
        self.black_varnames = _names(custom_black_varnames, "custom_black_varnames")
        self._dtype = VarType.FP16

    @property
    def dtype(self) -> VarType:
        """The half precision: float16 by default; bfloat16 is an option of ours.

        >>> from fluidx.contrib.mixed_precision import AutoMixedPrecisionLists
        >>> lists = AutoMixedPrecisionLists()
        >>> lists.dtype = "bfloat16"
        >>> lists.dtype.name
        'BF16'
        """
        return self._dtype

    @dtype.setter
    def dtype(self, value: object) -> None:
        kind = as_dtype(value)
        if kind not in _HALVES:
            raise ValueError(
                "AutoMixedPrecisionLists: dtype must be float16 or bfloat16, got "
                f"{value!r}"
            )
        self._dtype = kind


def _names(given: Iterable[str] | None, what: str) -> frozenset[str]:
    if isinstance(given, str):
        raise TypeError(
            f"AutoMixedPrecisionLists: {what} must be a list of names, got {given!r}"
        )
    return frozenset(given or ())
