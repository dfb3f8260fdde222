"""Decoders over sequences with LoD, the older way (``fluid.contrib.decoder``)."""

from . import beam_search_decoder
from .beam_search_decoder import (
    BeamSearchDecoder,
    InitState,
    StateCell,
    TrainingDecoder,
)

__all__ = [
    "BeamSearchDecoder",
    "InitState",
    "StateCell",
    "TrainingDecoder",
    "beam_search_decoder",
]
