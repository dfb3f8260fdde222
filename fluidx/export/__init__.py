"""Programs for other runtimes: inference programs as ONNX models (extra ``onnx``)."""

from .errors import ExportError, Problem
from .model import OPSET, exportable_ops, save_onnx, to_onnx, unexportable

__all__ = [
    "OPSET",
    "ExportError",
    "Problem",
    "exportable_ops",
    "save_onnx",
    "to_onnx",
    "unexportable",
]
