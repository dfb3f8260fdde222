"""Layers beside `fluid.layers` (``fluid.contrib.layers``)."""

from typing import Any

from . import metric_op, rnn_impl
from .metric_op import ctr_metric_bundle
from .rnn_impl import BasicGRUUnit, BasicLSTMUnit, basic_gru, basic_lstm
from .small import (
    fused_elemwise_activation,
    fused_embedding_seq_pool,
    partial_concat,
    partial_sum,
    shuffle_batch,
)

__all__ = [
    "BasicGRUUnit",
    "BasicLSTMUnit",
    "basic_gru",
    "basic_lstm",
    "ctr_metric_bundle",
    "fused_elemwise_activation",
    "fused_embedding_seq_pool",
    "metric_op",
    "partial_concat",
    "partial_sum",
    "rnn_impl",
    "shuffle_batch",
]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"fluid.contrib.layers has no {name!r} in fluidx")
