"""`fluidx.metrics.DetectionMAP`, and what the evaluator of that name shares with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fluidx.initializer import Constant
from fluidx.ir import Program, Variable, program_guard, unique_name
from fluidx.layer_helper import LayerHelper
from fluidx.layers import cast, concat, fill_constant
from fluidx.layers.detection import detection_map
from fluidx.layers.emit import check_variable

__all__ = ["DetectionMAP", "detection_maps", "forget_batches"]


class DetectionMAP:
    """Mean average precision of detected boxes, of a batch and of all since `reset`.

    input: detections, float [N, 6] (class, score, box), a sequence for each image.
    gt_label [M, 1], gt_box [M, 4] (xmin, ymin, xmax, ymax, in parts of the image) and
    gt_difficult [M, 1] (or None): the labelled boxes, with a LoD of the same images.
    class_num: classes are below it. overlap_threshold, evaluate_difficult, ap_version:
    see `layers.detection.detection_map`; background_label changes nothing, as in the
    reference. The program counts in variables of its own from batch to batch: run the
    startup program first. TypeError: no Variables, or no class_num. Mirrors
    ``fluid.metrics.DetectionMAP``.

    >>> import fluidx as fluid, numpy as np
    >>> found = fluid.data("mean_found", [None, 6], lod_level=1)
    >>> label = fluid.data("mean_label", [None, 1], lod_level=1)
    >>> box = fluid.data("mean_box", [None, 4], lod_level=1)
    >>> metric = fluid.metrics.DetectionMAP(found, label, box, class_num=3)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> def batch(kind):  # one box of class 1, found as one of class `kind`
    ...     row = lambda *v: fluid.create_lod_tensor(np.array([v], "float32"), [[1]])
    ...     return {"mean_found": row(kind, 0.9, 0, 0, 0.5, 0.5),
    ...             "mean_label": row(1), "mean_box": row(0, 0, 0.5, 0.5)}
    >>> def step(kind):
    ...     made = exe.run(feed=batch(kind), fetch_list=metric.get_map_var())
    ...     return [v.tolist() for v in made]
    >>> step(1), step(2)  # after the second: one of two boxes found
    ([[1.0], [1.0]], [[0.0], [0.5]])
    >>> metric.reset(exe)
    >>> step(1)
    [[1.0], [1.0]]
    """

    def __init__(
        self,
        input: Variable,
        gt_label: Variable,
        gt_box: Variable,
        gt_difficult: Variable | None = None,
        class_num: int | None = None,
        background_label: int = 0,
        overlap_threshold: float = 0.5,
        evaluate_difficult: bool = True,
        ap_version: str = "integral",
    ) -> None:
        self.helper = LayerHelper("map_eval")
        self.cur_map, self.accum_map, self.has_state = detection_maps(
            self._create_state,
            lambda: self._create_state("has_state", "int32", [1]),
            [input, gt_label, gt_box, gt_difficult],
            class_num=class_num,
            background_label=background_label,
            overlap_threshold=overlap_threshold,
            evaluate_difficult=evaluate_difficult,
            ap_version=ap_version,
        )

    def _create_state(
        self, suffix: str, dtype: Any, shape: Sequence[int] = ()
    ) -> Variable:
        name = f"{unique_name.generate(self.helper.name)}_{suffix}"
        return self.helper.create_variable(
            name=name, persistable=True, dtype=dtype, shape=shape
        )

    def get_map_var(self) -> tuple[Variable, Variable]:
        """What to fetch: the value of the batch, and of all batches since `reset`."""
        return self.cur_map, self.accum_map

    def reset(self, executor: Any, reset_program: Program | None = None) -> None:
        """Forget all batches. reset_program: takes the op that does it."""
        forget_batches(self.has_state, executor, reset_program)


def detection_maps(
    create_state: Callable[..., Variable],
    create_flag: Callable[[], Variable],
    given: Sequence[Any],
    class_num: int | None,
    **attrs: Any,
) -> tuple[Variable, Variable, Variable]:
    """(value of the batch, of all batches, the flag that says there were some).

    given: input, gt_label, gt_box, and gt_difficult or None.
    """
    found, label, box, difficult = given
    for value, arg in zip(given, ("input", "gt_label", "gt_box")):
        check_variable(value, arg, "DetectionMAP")
    if class_num is None:
        raise TypeError("DetectionMAP: class_num must be given")
    parts = [cast(label, box.dtype)]
    if difficult is not None:
        check_variable(difficult, "gt_difficult", "DetectionMAP")
        parts.append(cast(difficult, box.dtype))
    true = concat([*parts, box], axis=1)
    now = detection_map(found, true, class_num, **attrs)
    states = [
        create_state("accum_pos_count", "int32", ()),
        create_state("accum_true_pos", "float32", ()),
        create_state("accum_false_pos", "float32", ()),
    ]
    flag = create_flag()
    LayerHelper("map_flag").set_variable_initializer(flag, Constant(0))
    flag.stop_gradient = True
    total = detection_map(
        found,
        true,
        class_num,
        has_state=flag,
        input_states=states,
        out_states=states,
        **attrs,
    )
    fill_constant([1], "int32", 1, out=flag)
    return now, total, flag


def forget_batches(flag: Variable, executor: Any, program: Program | None) -> None:
    """Run a program, or a fresh one, with the op that clears the flag."""
    program = Program() if program is None else program
    with program_guard(program):
        shown = program.global_block().create_var(
            name=flag.name,
            shape=flag.shape,
            dtype=flag.dtype,
            persistable=flag.persistable,
        )
        fill_constant([1], "int32", 0, out=shown)
    executor.run(program)
