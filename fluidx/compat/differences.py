"""Names that work, but not quite as in the reference; and how they differ."""

from __future__ import annotations

__all__ = ["DIFFERENCES", "difference"]

_PLACE = "runs on CuPy (extra cuda13); without a device it raises"
_ONE = "within a process programs run on one device; use several processes for more"
_KEPT = "kept and read back; the executor needs none of its options but for trainers"
_FLAGS = "flags are kept; all but FLAGS_check_nan_inf change nothing"

#: below paddle.fluid
DIFFERENCES = {
    "CUDAPlace": _PLACE,
    "core.CUDAPlace": _PLACE,
    "cuda_places": _PLACE,
    "is_compiled_with_cuda": "tells whether a CUDA device can be used now",
    "core.is_compiled_with_cuda": "tells whether a CUDA device can be used now",
    "ParallelExecutor": _ONE,
    "CompiledProgram": _ONE,
    "compiler.CompiledProgram": _ONE,
    "BuildStrategy": _KEPT,
    "ExecutionStrategy": _KEPT,
    "set_flags": _FLAGS,
    "core.globals": _FLAGS,
    "memory_optimize": "does nothing, as in 1.8: the executor frees what it can",
    "release_memory": "does nothing, as in 1.8: the executor frees what it can",
    "load_op_library": "always refuses: declare ops in Python (fluidx.kernels.op)",
    "load": "unpickles numpy arrays and plain containers only",
    "io.load": "unpickles numpy arrays and plain containers only",
    "contrib.summary": "counts grouped convolutions and layers with biases right",
    "contrib.model_stat.summary": "counts grouped convolutions right",
    "contrib.op_freq_statistic": "works (on Python 3 the reference's fails)",
    "contrib.layers.fused_elemwise_activation": (
        "the gradient of a smaller y is right where nothing is saved"
    ),
    "contrib.layers.partial_sum": "a negative start_index counts from the end",
    "contrib.layers.shuffle_batch": "other random numbers from the same seed",
    "layers.dynamic_decode": "right gradients for a loss of several outputs",
    "layers.softmax_with_cross_entropy": "rows of ignore_index have no gradient",
    "layers.group_norm": "without a scale, gradients include the mean's part",
    "layers.spectral_norm": "gradients are those of the formula, u and v held",
    "clip.set_gradient_clip": (
        "param_list may name a part of the parameters (the reference then clips none)"
    ),
    "optimizer.ExponentialMovingAverage": (
        "thres_steps may be an integer; apply may be called again and again"
    ),
    "optimizer.RecomputeOptimizer": "batch_norm's statistics move once in a step",
    "layers.uniform_random": "other random numbers from the same seed",
    "layers.gaussian_random": "other random numbers from the same seed",
    "layers.dropout": "other random numbers from the same seed",
    "initializer.Uniform": "other random numbers from the same seed",
    "initializer.Normal": "other random numbers from the same seed",
    "initializer.Xavier": "other random numbers from the same seed",
    "initializer.MSRA": "other random numbers from the same seed",
    "initializer.TruncatedNormal": "other random numbers from the same seed",
}


def difference(name: str) -> str:
    """How a name below ``paddle.fluid`` differs; "" if it does not."""
    name = name.replace("Initializer", "") if name.startswith("initializer.") else name
    return DIFFERENCES.get(name, "")
