"""A dumped program without what carries no information; runs under both systems.

Attributes at the default that `ops_spec.json` states and hints to an engine are left
out, float attributes are rounded as `dump` rounds them.
"""

import json
import os

HINTS = {
    "use_mkldnn", "use_cudnn", "use_quantizer", "mkldnn_data_type", "x_data_format",
    "y_data_format", "workspace_size_MB", "exhaustive_search", "fuse_relu",
    "fuse_activation", "fuse_relu_before_depthwise_conv", "fuse_alpha", "fuse_beta",
    "fuse_residual_connection", "fuse_with_relu", "fuse_brelu", "fuse_brelu_threshold",
    "Scale_in", "Scale_out", "Scale_in_eltwise", "Scale_weights", "Scale_x", "Scale_y",
    "scale_x", "scale_y", "scale_out", "force_fp32_output", "fused_reshape_Out",
    "fused_transpose_Out", "head_number", "reshape_Out", "transpose_Out",
    "@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@", "op_device",
}  # fmt: skip

_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
with open(os.path.join(_PATH, "ops_spec.json")) as _file:
    SPEC = json.load(_file)


def _plain(value):
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value


def _attrs(op):
    type = op["type"]
    # a gradient op has the attributes of its forward op
    of = {"cross_entropy_grad2": "cross_entropy2"}.get(type, type)
    known = SPEC[of if of in SPEC else of[: -len("_grad")]]["attrs"]
    kept = {}
    for name, value in op["attrs"].items():
        if name in HINTS or (name == "op_role" and value == 0):
            continue
        value = _plain(value)
        if name in known and _plain(known[name].get("default")) == value:
            continue
        kept[name] = value
    return kept


def _facts(var):
    """The reference multiplies unknown sizes: -4 is as unknown as -1."""
    if "shape" not in var:
        return var
    return dict(var, shape=[max(size, -1) for size in var["shape"]])


def compact(dumped):
    """[[op, ...], {variable: facts}] of each block; an op is [type, in, out, attrs]."""
    return [
        [
            [[op["type"], op["in"], op["out"], _attrs(op)] for op in block["ops"]],
            {name: _facts(var) for name, var in block["vars"].items()},
        ]
        for block in dumped["blocks"]
    ]
