"""What an op is: schema, inference, gradient and array code, in one place.

Families of ops live in the modules beside this one. They know arrays (`xp`, numpy
or CuPy) and nothing of programs, sockets or files.
"""

from .dtypes import VarType, as_dtype, is_floating, to_numpy
from .grad import EMPTY, GRAD, GradContext, OpSpec, grad_name, grad_op
from .infer import InferContext, InferError, Meta, same_as
from .registry import Call, OpDef, all_types, batch_kernel, batch_of, find, has, op
from .schema import Attr, AttrType, In, Out
from .selected_rows import SelectedRows

__all__ = [
    "Attr",
    "AttrType",
    "Call",
    "EMPTY",
    "GRAD",
    "GradContext",
    "In",
    "InferContext",
    "InferError",
    "Meta",
    "OpDef",
    "OpSpec",
    "Out",
    "SelectedRows",
    "VarType",
    "all_types",
    "as_dtype",
    "batch_kernel",
    "batch_of",
    "find",
    "grad_name",
    "grad_op",
    "has",
    "is_floating",
    "op",
    "same_as",
    "to_numpy",
]
