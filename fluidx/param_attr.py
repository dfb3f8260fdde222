"""How a layer's parameter is named, initialised, trained (``fluid.ParamAttr``)."""

from __future__ import annotations

from typing import Any, ClassVar

from fluidx.initializer import Initializer

__all__ = ["ParamAttr", "WeightNormParamAttr"]


class ParamAttr:
    """Wishes for one parameter; mirrors ``fluid.ParamAttr``.

    name: parameters of one name are one parameter (shared); None: made from the
    layer's name. initializer: of `fluidx.initializer`. learning_rate: factor on the
    optimizer's rate. regularizer: overrides the optimizer's. trainable: False keeps
    it out of training. do_model_average: takes part in `ModelAverage`.

    Layers also take, in place of a ParamAttr: None (all defaults), False (no such
    parameter), True (defaults), a string (the name), an initializer, a regularizer,
    or a list of these where a layer has several parameters.

    >>> ParamAttr(name="w", learning_rate=0.5).learning_rate
    0.5
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Any = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = True,
    ) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"ParamAttr: name must be a string, got {name!r}")
        if name == "":
            raise ValueError("ParamAttr: name must not be empty")
        if initializer is not None and not isinstance(initializer, Initializer):
            raise TypeError(
                "ParamAttr: initializer must be one of fluid.initializer, got "
                f"{initializer!r}"
            )
        if isinstance(regularizer, type) or not (
            regularizer is None or callable(regularizer)
        ):
            raise TypeError(
                "ParamAttr: regularizer must be one of fluid.regularizer, got "
                f"{regularizer!r}"
            )
        if isinstance(learning_rate, bool) or not isinstance(
            learning_rate, (int, float)
        ):
            raise TypeError(
                f"ParamAttr: learning_rate must be a number, got {learning_rate!r}"
            )
        if not isinstance(trainable, bool):
            raise TypeError(f"ParamAttr: trainable must be a bool, got {trainable!r}")
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average

    def _set_default_initializer(self, initializer: Any) -> None:
        if self.initializer is None:
            self.initializer = initializer

    @staticmethod
    def _to_attr(arg: Any) -> Any:
        """A ParamAttr, a list of them, or False, from whatever a layer was given."""
        if arg is None or arg is True:
            return ParamAttr()
        if arg is False:
            return False
        if isinstance(arg, (list, tuple)):
            return [ParamAttr._to_attr(a) for a in arg]
        if isinstance(arg, ParamAttr):
            return arg
        if isinstance(arg, str):
            return ParamAttr(name=arg)
        if isinstance(arg, Initializer):
            return ParamAttr(initializer=arg)
        if _is_regularizer(arg):
            return ParamAttr(regularizer=arg)
        raise TypeError(
            "a parameter attribute must be None, a bool, a string, a ParamAttr, an "
            f"initializer, a regularizer or a list of these; got {arg!r:.60} of type "
            f"{arg.__class__.__name__}"
        )

    def _to_kwargs(self, with_initializer: bool = False) -> dict[str, Any]:
        """Keyword arguments for `Block.create_parameter`."""
        kwargs: dict[str, Any] = {
            "name": self.name,
            "optimize_attr": {"learning_rate": self.learning_rate},
            "regularizer": self.regularizer,
            "trainable": self.trainable,
            "do_model_average": self.do_model_average,
        }
        if with_initializer:
            kwargs["initializer"] = self.initializer
        return kwargs

    def __repr__(self) -> str:
        return f"<{self.__class__.__name__} {self.name or '(unnamed)'}>"


def _is_regularizer(arg: Any) -> bool:
    """Whether it is a penalty; told by its base class, which lives further up."""
    bases = {c.__name__ for c in arg.__class__.__mro__}
    return "WeightDecayRegularizer" in bases


class WeightNormParamAttr(ParamAttr):
    """A weight kept as length and direction, ``w = g * v / |v|``.

    dim: the dimension that keeps a length of its own; None: one length for all.
    Salimans and Kingma, "Weight normalization" (2016); mirrors
    ``fluid.WeightNormParamAttr``.

    >>> import fluidx as fluid, numpy as np
    >>> start = np.array([[3], [4]], "float32")  # of length 5
    >>> attr = fluid.WeightNormParamAttr(
    ...     name="w", initializer=fluid.initializer.NumpyArrayInitializer(start))
    >>> x = fluid.layers.fill_constant([1, 2], "float32", 1.0)
    >>> y = fluid.layers.fc(x, 1, param_attr=attr, bias_attr=False)
    >>> sorted(p.name for p in fluid.default_main_program().all_parameters())
    ['w_g', 'w_v']
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [v.tolist() for v in exe.run(fetch_list=[y, "w_g"])]
    [[[7.0]], [[5.0]]]
    """

    # weights made so, by those who switch the normalisation off for inference
    params_with_weight_norm: ClassVar[list[Any]] = []

    def __init__(
        self,
        dim: int | None = None,
        name: str | None = None,
        initializer: Any = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = False,
    ) -> None:
        super().__init__(
            name, initializer, learning_rate, regularizer, trainable, do_model_average
        )
        self.dim = dim
