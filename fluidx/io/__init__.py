"""Saved models: files that the reference reads, and reading those that it wrote.

`vars` saves variables, `inference` whole models, `state` a training's state; `tensors`
and `pickled` know the bytes. Nothing here runs what a file says: programs are data,
and pickles are read by a machine that knows numpy arrays and containers only
(`unpickle`). What is wrong with a file is a `ModelFileError`.

Mirrors ``fluid.io``, without its readers.
"""

from .errors import MissingFileError, ModelFileError
from .inference import (
    append_fetch_ops,
    load_inference_model,
    prepend_feed_ops,
    save_inference_model,
)
from .state import load, load_program_state, save, set_program_state
from .values import (
    get_parameter_value,
    get_parameter_value_by_name,
    get_program_parameter,
    get_program_persistable_vars,
    is_belong_to_optimizer,
    is_parameter,
    is_persistable,
)
from .vars import (
    load_params,
    load_persistables,
    load_vars,
    save_params,
    save_persistables,
    save_vars,
)

__all__ = [
    "MissingFileError",
    "ModelFileError",
    "append_fetch_ops",
    "get_parameter_value",
    "get_parameter_value_by_name",
    "get_program_parameter",
    "get_program_persistable_vars",
    "is_belong_to_optimizer",
    "is_parameter",
    "is_persistable",
    "load",
    "load_inference_model",
    "load_params",
    "load_persistables",
    "load_program_state",
    "load_vars",
    "prepend_feed_ops",
    "save",
    "save_inference_model",
    "save_params",
    "save_persistables",
    "save_vars",
    "set_program_state",
]
