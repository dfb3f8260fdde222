"""Layers that only ``fluid.layers.detection`` has, not ``fluid.layers``."""

from __future__ import annotations

from collections.abc import Sequence

from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import FLOATS, check_dtype, check_variable, one_of

__all__: list[str] = []  # as in the reference


def detection_map(
    detect_res: Variable,
    label: Variable,
    class_num: int,
    background_label: int = 0,
    overlap_threshold: float = 0.3,
    evaluate_difficult: bool = True,
    has_state: Variable | None = None,
    input_states: Sequence[Variable] | None = None,
    out_states: Sequence[Variable] | None = None,
    ap_version: str = "integral",
) -> Variable:
    """Mean average precision of detected boxes: a float tensor of shape [1].

    detect_res: float [N, 6], a sequence for each image; a row is class, score, xmin,
    ymin, xmax, ymax, coordinates in parts of the image (0 to 1). label: of the same
    dtype, [M, 6] (class, difficult or not, box) or [M, 5] (class, box). Classes are
    below class_num. A detection hits if the labelled box of its class that it overlaps
    best is covered by more than overlap_threshold (intersection over union) and was
    not hit by a better score. evaluate_difficult: whether difficult boxes count.
    ap_version: "integral" (area under precision over recall) or "11point" (VOC 2007).

    input_states, out_states: [label counts, hits, misses] of the batches before, used
    if the int32 has_state is not 0, and of all with this one. As in the reference
    background_label is not handed on: classes without a label are left out, no other.
    BuildError: shapes, ap_version or class_num that do not fit. Mirrors
    ``fluid.layers.detection.detection_map``; Everingham et al., 2010.

    >>> import fluidx as fluid, numpy as np
    >>> found = fluid.data("map_found", [None, 6], lod_level=1)
    >>> true = fluid.data("map_true", [None, 6], lod_level=1)
    >>> average = fluid.layers.detection.detection_map(found, true, class_num=2)
    >>> rows = np.array([[1, 0.9, 0, 0, 0.5, 0.5],       # hits the first box
    ...                  [1, 0.7, 0, 0.6, 0.2, 0.9]])    # hits nothing
    >>> boxes = np.array([[1, 0, 0, 0, 0.5, 0.5], [1, 0, 0.8, 0.8, 1, 1]])
    >>> image = lambda rows: fluid.create_lod_tensor(rows.astype("float32"), [[2]])
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> feed = {"map_found": image(rows), "map_true": image(boxes)}
    >>> exe.run(feed=feed, fetch_list=[average])[0].tolist()  # 1 of 2 found, first
    [0.5]
    """
    check_dtype(detect_res, "detect_res", "detection_map", FLOATS)
    check_variable(label, "label", "detection_map")
    one_of(ap_version, "ap_version", "detection_map", ("integral", "11point"))
    helper = LayerHelper("detection_map")
    average = helper.create_variable_for_type_inference(VarType.FP32)
    if out_states is None:
        kinds = (VarType.INT32, VarType.FP32, VarType.FP32)
        out_states = [helper.create_variable_for_type_inference(k) for k in kinds]
    inputs = {"DetectRes": detect_res, "Label": label}
    if has_state is not None:
        inputs["HasState"] = has_state
    inputs.update(zip(("PosCount", "TruePos", "FalsePos"), input_states or ()))
    slots = ("AccumPosCount", "AccumTruePos", "AccumFalsePos")
    helper.append_op(
        "detection_map",
        inputs,
        {**dict(zip(slots, out_states)), "MAP": average},
        {
            "class_num": class_num,
            "overlap_threshold": overlap_threshold,
            "evaluate_difficult": evaluate_difficult,
            "ap_type": ap_version,
        },
    )
    return average
