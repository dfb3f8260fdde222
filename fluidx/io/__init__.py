"""Saved models: files that the reference reads, and reading those that it wrote.

`vars` saves variables, `inference` whole models, `state` a training's state; `tensors`
and `pickled` know the bytes. Nothing here runs what a file says: programs are data,
and pickles are read by a machine that knows numpy arrays and containers only
(`unpickle`). What is wrong with a file is a `ModelFileError`.

Mirrors ``fluid.io``; readers and loaders come from `fluidx.reader` and
`fluidx.dataloader`.
"""

from fluidx.dataloader import (
    BatchSampler,
    DataLoader,
    Dataset,
    PyReader,
    default_collate_fn,
)
from fluidx.reader import (
    ComposeNotAligned,
    batch,
    buffered,
    cache,
    chain,
    compose,
    firstn,
    map_readers,
    multiprocess_reader,
    shuffle,
    xmap_readers,
)

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
    "BatchSampler",
    "ComposeNotAligned",
    "DataLoader",
    "Dataset",
    "MissingFileError",
    "ModelFileError",
    "PyReader",
    "append_fetch_ops",
    "batch",
    "buffered",
    "cache",
    "chain",
    "compose",
    "default_collate_fn",
    "firstn",
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
    "map_readers",
    "multiprocess_reader",
    "prepend_feed_ops",
    "save",
    "save_inference_model",
    "save_params",
    "save_persistables",
    "save_vars",
    "set_program_state",
    "shuffle",
    "xmap_readers",
]
