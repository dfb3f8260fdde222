"""``fluid.lod_tensor``."""

from fluidx.tensor import create_lod_tensor, create_random_int_lodtensor

__all__ = ["create_lod_tensor", "create_random_int_lodtensor"]
