"""Deployment: saved models behind the inference API of ``paddle.fluid.core``.

    from paddle.fluid.core import AnalysisConfig, PaddleTensor, create_paddle_predictor

    config = AnalysisConfig("model")
    predictor = create_paddle_predictor(config)
    (out,) = predictor.run([PaddleTensor(x)])
    print(out.as_ndarray())

A predictor holds its model's program and parameters in a scope of its own, and runs it
with plans of the `Executor`.
"""

from .config import (
    AnalysisConfig,
    MkldnnQuantizerConfig,
    NativeConfig,
    PredictorConfig,
)
from .predictor import (
    AnalysisPredictor,
    NativePaddlePredictor,
    PaddlePredictor,
    create_paddle_predictor,
)
from .tensors import ZeroCopyTensor
from .values import (
    PaddleBuf,
    PaddleDType,
    PaddlePlace,
    PaddleTensor,
    paddle_dtype_size,
    paddle_tensor_to_bytes,
)

__all__ = [
    "AnalysisConfig",
    "AnalysisPredictor",
    "MkldnnQuantizerConfig",
    "NativeConfig",
    "NativePaddlePredictor",
    "PaddleBuf",
    "PaddleDType",
    "PaddlePlace",
    "PaddlePredictor",
    "PaddleTensor",
    "PredictorConfig",
    "ZeroCopyTensor",
    "create_paddle_predictor",
    "paddle_dtype_size",
    "paddle_tensor_to_bytes",
]
