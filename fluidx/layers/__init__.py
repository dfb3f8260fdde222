"""``fluid.layers``: functions that append ops to the default programs.

Each mirrors the reference's layer of that name: its signature, the ops that it
builds and their names. Importing this package gives `Variable` its operators.
"""

import types as _types

from . import math_op_patch
from .beam import *  # noqa: F403
from .branches import *  # noqa: F403
from .control_flow import *  # noqa: F403
from .conv import *  # noqa: F403
from .conv_transpose import *  # noqa: F403
from .crf import *  # noqa: F403
from .ctc import *  # noqa: F403
from .debug import *  # noqa: F403
from .distributions import *  # noqa: F403
from .dynamic_rnn import *  # noqa: F403
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
from .rnn import *  # noqa: F403
from .rnn_beam import *  # noqa: F403
from .rnn_decode import *  # noqa: F403
from .rnn_helpers import *  # noqa: F403
from .rnn_lod import *  # noqa: F403
from .row_values import *  # noqa: F403
from .sampled_softmax import *  # noqa: F403
from .sampling import *  # noqa: F403
from .sequence_images import *  # noqa: F403
from .sequence_lod import *  # noqa: F403
from .sequence_nn import *  # noqa: F403
from .similarity import *  # noqa: F403
from .static_rnn import *  # noqa: F403
from .tensor import *  # noqa: F403
from .tensor_arrays import *  # noqa: F403
from .vision import *  # noqa: F403
from .volume import *  # noqa: F403

math_op_patch.install()

# every star above, and nothing else that stands here
__all__ = [
    name
    for name, value in list(globals().items())
    if not name.startswith("_") and not isinstance(value, _types.ModuleType)
]
