"""Values outside of programs: places, tensors with LoD, scopes."""

from fluidx.kernels import SelectedRows

from .lod_tensor import Cell, LoDTensor, create_lod_tensor, create_random_int_lodtensor
from .places import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place, cpu_places
from .scope import Scope, ScopeVar, global_scope, scope_guard
from .selected_rows import HeldRows

LoDTensorArray = list

__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "Cell",
    "HeldRows",
    "LoDTensor",
    "LoDTensorArray",
    "Place",
    "Scope",
    "ScopeVar",
    "SelectedRows",
    "cpu_places",
    "create_lod_tensor",
    "create_random_int_lodtensor",
    "global_scope",
    "scope_guard",
]
