"""Training in mixed precision (``fluid.contrib.mixed_precision``).

`decorate` wraps an optimizer: products and convolutions then run in half precision,
what needs range or exactness stays in float32, parameters and their updates too. The
loss is scaled so that small gradients do not vanish (Micikevicius et al., 2018).
"""

from . import decorator
from .decorator import OptimizerWithMixedPrecision, decorate
from .lists import AutoMixedPrecisionLists

__all__ = [
    "AutoMixedPrecisionLists",
    "OptimizerWithMixedPrecision",
    "decorate",
    "decorator",
]
