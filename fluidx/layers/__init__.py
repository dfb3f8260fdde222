"""``fluid.layers``: functions that append ops to the default programs.

Each mirrors the reference's layer of that name: its signature, the ops that it
builds and their names. Importing this package gives `Variable` its operators.
"""

from . import (
    branches,
    control_flow,
    conv,
    conv_transpose,
    debug,
    distributions,
    elementwise,
    if_else,
    io,
    learning_rate_scheduler,
    linalg,
    lookup,
    loops,
    loss,
    loss_composed,
    manipulation,
    math,
    math_op_patch,
    metric_op,
    nn,
    norm,
    norm_others,
    norm_weights,
    ops,
    padding,
    picking,
    picking_nd,
    random,
    ranking,
    reader,
    rearrange,
    reduce,
    resize,
    sampling,
    sequence_lod,
    sequence_nn,
    similarity,
    static_rnn,
    tensor,
    tensor_arrays,
    vision,
    volume,
)
from .branches import *  # noqa: F403
from .control_flow import *  # noqa: F403
from .conv import *  # noqa: F403
from .conv_transpose import *  # noqa: F403
from .debug import *  # noqa: F403
from .distributions import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .if_else import *  # noqa: F403
from .io import *  # noqa: F403
from .learning_rate_scheduler import *  # noqa: F403
from .linalg import *  # noqa: F403
from .lookup import *  # noqa: F403
from .loops import *  # noqa: F403
from .loss import *  # noqa: F403
from .loss_composed import *  # noqa: F403
from .manipulation import *  # noqa: F403
from .math import *  # noqa: F403
from .metric_op import *  # noqa: F403
from .nn import *  # noqa: F403
from .norm import *  # noqa: F403
from .norm_others import *  # noqa: F403
from .norm_weights import *  # noqa: F403
from .ops import *  # noqa: F403
from .padding import *  # noqa: F403
from .picking import *  # noqa: F403
from .picking_nd import *  # noqa: F403
from .random import *  # noqa: F403
from .ranking import *  # noqa: F403
from .reader import *  # noqa: F403
from .rearrange import *  # noqa: F403
from .reduce import *  # noqa: F403
from .resize import *  # noqa: F403
from .sampling import *  # noqa: F403
from .sequence_lod import *  # noqa: F403
from .sequence_nn import *  # noqa: F403
from .similarity import *  # noqa: F403
from .static_rnn import *  # noqa: F403
from .tensor import *  # noqa: F403
from .tensor_arrays import *  # noqa: F403
from .vision import *  # noqa: F403
from .volume import *  # noqa: F403

math_op_patch.install()

__all__: list[str] = []
for _module in (
    branches,
    control_flow,
    conv,
    conv_transpose,
    debug,
    distributions,
    elementwise,
    if_else,
    io,
    learning_rate_scheduler,
    linalg,
    lookup,
    loops,
    loss,
    loss_composed,
    manipulation,
    math,
    metric_op,
    nn,
    norm,
    norm_others,
    norm_weights,
    ops,
    padding,
    picking,
    picking_nd,
    random,
    ranking,
    reader,
    rearrange,
    reduce,
    resize,
    sampling,
    sequence_lod,
    sequence_nn,
    similarity,
    static_rnn,
    tensor,
    tensor_arrays,
    vision,
    volume,
):
    __all__ += _module.__all__
