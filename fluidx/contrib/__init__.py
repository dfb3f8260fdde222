"""Additions beside the core names (``fluid.contrib``)."""

from typing import Any

from . import (
    decoder,
    extend_optimizer,
    layers,
    memory_usage_calc,
    mixed_precision,
    model_stat,
    op_frequence,
    reader,
    utils,
)
from .decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder
from .extend_optimizer import extend_with_decoupled_weight_decay
from .layers import (
    BasicGRUUnit,
    BasicLSTMUnit,
    basic_gru,
    basic_lstm,
    ctr_metric_bundle,
    fused_elemwise_activation,
    fused_embedding_seq_pool,
    partial_concat,
    partial_sum,
    shuffle_batch,
)
from .memory_usage_calc import memory_usage
from .mixed_precision import *  # noqa: F403
from .mixed_precision import __all__ as _mixed
from .model_stat import summary
from .op_frequence import op_freq_statistic
from .reader import distributed_batch_reader
from .utils import (
    HDFSClient,
    convert_dist_to_sparse_program,
    load_persistables_for_increment,
    load_persistables_for_inference,
    multi_download,
    multi_upload,
)

__all__ = [
    "BasicGRUUnit",
    "BasicLSTMUnit",
    "BeamSearchDecoder",
    "HDFSClient",
    "InitState",
    "StateCell",
    "TrainingDecoder",
    "basic_gru",
    "basic_lstm",
    "convert_dist_to_sparse_program",
    "ctr_metric_bundle",
    "decoder",
    "distributed_batch_reader",
    "extend_optimizer",
    "extend_with_decoupled_weight_decay",
    "fused_elemwise_activation",
    "fused_embedding_seq_pool",
    "layers",
    "load_persistables_for_increment",
    "load_persistables_for_inference",
    "memory_usage",
    "memory_usage_calc",
    "mixed_precision",
    "model_stat",
    "multi_download",
    "multi_upload",
    "op_freq_statistic",
    "op_frequence",
    "partial_concat",
    "partial_sum",
    "reader",
    "shuffle_batch",
    "summary",
    "utils",
]
__all__ += _mixed


_SLIM = ": model compression (slim) is not part of fluidx"
_ABSENT = {
    **dict.fromkeys(["Compressor", "QuantizeTranspiler", "quantize", "slim"], _SLIM),
}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    why = _ABSENT.get(name, "")
    raise AttributeError(f"fluid.contrib has no {name!r} in fluidx{why}")
