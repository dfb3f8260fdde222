"""``fluidx export``: a saved inference model for another runtime."""

from __future__ import annotations

import argparse
import sys
from typing import Any

__all__ = ["add_parser"]

_ABOUT = """\
Write a model that save_inference_model of fluidx or of PaddlePaddle Fluid saved as an
ONNX file (opset 17; needs the extra onnx). Exit code: 0 if it was written, 1 if ops
cannot be exported (all are named), 2 if the model cannot be read."""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand; its parser sets ``func``."""
    parser = subparsers.add_parser(
        "export",
        help="write a saved model for another runtime",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL_DIR")
    parser.add_argument("--to", choices=["onnx"], required=True)
    parser.add_argument("output", metavar="OUT")
    parser.add_argument("--model-filename", metavar="FILE", help="default: __model__")
    parser.add_argument(
        "--params-filename", metavar="FILE", help="the file with all parameters"
    )
    parser.set_defaults(func=_export)


def _export(args: argparse.Namespace) -> int:
    from fluidx.executor import Executor
    from fluidx.export import ExportError, save_onnx
    from fluidx.io import load_inference_model
    from fluidx.tensor import CPUPlace, Scope, scope_guard

    with scope_guard(Scope()):
        program, feeds, fetches = load_inference_model(
            args.model, Executor(CPUPlace()), args.model_filename, args.params_filename
        )
        try:
            save_onnx(args.output, program, feeds, fetches)
        except ExportError as error:
            print(f"fluidx export: {error}", file=sys.stderr)
            return 1
    names = ", ".join(v.name for v in fetches)
    print(f"{args.output}: {', '.join(feeds)} -> {names}")
    return 0
