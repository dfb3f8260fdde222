"""Optimizers: what turns gradients into updates (``fluid.optimizer``)."""

from .adam import AdamaxOptimizer, AdamOptimizer, LambOptimizer
from .adaptive import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    DecayedAdagradOptimizer,
    FtrlOptimizer,
    RMSPropOptimizer,
)
from .averaging import ExponentialMovingAverage, ModelAverage
from .base import Optimizer
from .momentum import (
    DGCMomentumOptimizer,
    LarsMomentumOptimizer,
    MomentumOptimizer,
    SGDOptimizer,
)
from .pipeline import PipelineOptimizer
from .private import DpsgdOptimizer
from .wrappers import LookaheadOptimizer, RecomputeOptimizer

SGD = SGDOptimizer
Momentum = MomentumOptimizer
LarsMomentum = LarsMomentumOptimizer
Adagrad = AdagradOptimizer
DecayedAdagrad = DecayedAdagradOptimizer
Adadelta = AdadeltaOptimizer
RMSProp = RMSPropOptimizer
Ftrl = FtrlOptimizer
Adam = AdamOptimizer
Adamax = AdamaxOptimizer
Dpsgd = DpsgdOptimizer
Lamb = LambOptimizer

__all__ = [
    "SGD",
    "Adadelta",
    "AdadeltaOptimizer",
    "Adagrad",
    "AdagradOptimizer",
    "Adam",
    "AdamOptimizer",
    "Adamax",
    "AdamaxOptimizer",
    "DGCMomentumOptimizer",
    "DecayedAdagrad",
    "DecayedAdagradOptimizer",
    "Dpsgd",
    "DpsgdOptimizer",
    "ExponentialMovingAverage",
    "Ftrl",
    "FtrlOptimizer",
    "Lamb",
    "LambOptimizer",
    "LarsMomentum",
    "LarsMomentumOptimizer",
    "LookaheadOptimizer",
    "ModelAverage",
    "Momentum",
    "MomentumOptimizer",
    "Optimizer",
    "PipelineOptimizer",
    "RMSProp",
    "RMSPropOptimizer",
    "RecomputeOptimizer",
    "SGDOptimizer",
]
