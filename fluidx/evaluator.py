"""Metrics that a program accumulates in variables of its own (``fluid.evaluator``).

Deprecated in the reference, as here: they add ops and persistable variables to the
main program. `fluidx.metrics` does the same in Python. ``reset`` starts a pass,
``metrics`` are the batch's values to fetch, ``eval`` gives the value so far.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx.detection_metrics import detection_maps, forget_batches
from fluidx.ir import Program, Variable, program_guard, unique_name
from fluidx.layer_helper import LayerHelper
from fluidx.layers import (
    cast,
    chunk_eval,
    edit_distance,
    elementwise_div,
    elementwise_sub,
    equal,
    fill_constant,
    reduce_sum,
    sums,
)

__all__ = ["ChunkEvaluator", "DetectionMAP", "EditDistance", "Evaluator"]


class Evaluator:
    """Base: variables that keep counts from batch to batch.

    name: prefix of their names. states: these variables. metrics: the values of a
    batch. Warns that `fluidx.metrics` is the way now. Mirrors
    ``fluid.evaluator.Evaluator``.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        kind = type(self).__name__
        warnings.warn(
            f"fluid.evaluator.{kind} is deprecated, as in the reference: it changes "
            f"the main program; fluid.metrics.{kind} does not",
            DeprecationWarning,
            stacklevel=3,
        )
        self.states: list[Variable] = []
        self.metrics: list[Variable] = []
        self.helper = LayerHelper(name, **kwargs)

    def reset(self, executor: Any, reset_program: Program | None = None) -> None:
        """Zero all states: run this at the start of each pass.

        reset_program: takes the ops that do it; a fresh one if None.
        """
        program = Program() if reset_program is None else reset_program
        with program_guard(program):
            for state in self.states:
                fill_constant(
                    state.shape, state.dtype, 0, out=_shown_in(program, state)
                )
        executor.run(program)

    def eval(self, executor: Any, eval_program: Program | None = None) -> Any:
        """The value of all batches since `reset`."""
        raise NotImplementedError(f"{type(self).__name__} has no eval")

    def _create_state(self, suffix: str, dtype: Any, shape: Sequence[int]) -> Variable:
        """A persistable variable of the main program, one of `states`."""
        name = f"{unique_name.generate(self.helper.name)}_{suffix}"
        state = self.helper.create_variable(
            name=name, persistable=True, dtype=dtype, shape=shape
        )
        self.states.append(state)
        return state


def _shown_in(program: Program, state: Variable) -> Variable:
    """The variable of that name and kind in another program."""
    return program.global_block().create_var(
        name=state.name,
        shape=state.shape,
        dtype=state.dtype,
        persistable=state.persistable,
    )


def _add_to(state: Variable, amount: Variable) -> None:
    sums([state, amount], out=state)


class ChunkEvaluator(Evaluator):
    """Precision, recall and F1 of the chunks that a tagger found, over batches.

    Arguments are those of `layers.chunk_eval`: int64 labels, found and true, with a
    LoD of one level. ``metrics`` are the batch's three values, float32 [1]. Mirrors
    ``fluid.evaluator.ChunkEvaluator``.

    >>> import warnings
    >>> import fluidx as fluid
    >>> found = fluid.data("eval_found", [None, 1], "int64", lod_level=1)
    >>> true = fluid.data("eval_true", [None, 1], "int64", lod_level=1)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     scores = fluid.evaluator.ChunkEvaluator(found, true, "IOB", 3)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> scores.reset(exe)
    >>> labels = np.array([[0], [1], [6], [2]])
    >>> both = fluid.create_lod_tensor(labels, [[4]])
    >>> feed = {"eval_found": both, "eval_true": both}
    >>> _ = exe.run(feed=feed, fetch_list=scores.metrics)
    >>> [float(v[0]) for v in scores.eval(exe)]
    [1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        input: Variable,
        label: Variable,
        chunk_scheme: str,
        num_chunk_types: int,
        excluded_chunk_types: Sequence[int] | None = None,
    ) -> None:
        super().__init__("chunk_eval")
        self.num_infer_chunks = self._create_state("num_infer_chunks", "int64", [1])
        self.num_label_chunks = self._create_state("num_label_chunks", "int64", [1])
        self.num_correct_chunks = self._create_state("num_correct_chunks", "int64", [1])
        made = chunk_eval(
            input, label, chunk_scheme, num_chunk_types, excluded_chunk_types
        )
        self.metrics.extend(made[:3])
        for state, amount in zip(self.states, made[3:]):
            _add_to(state, amount)

    def eval(self, executor: Any, eval_program: Program | None = None) -> Any:
        """(precision, recall, F1) since `reset`: float32 arrays of shape [1]."""
        program = Program() if eval_program is None else eval_program
        shown = [_shown_in(program, s) for s in self.states]
        counts = executor.run(program, fetch_list=shown)
        found, true, right = (int(c[0]) for c in counts)
        precision = right / found if found else 0.0
        recall = right / true if true else 0.0
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        return tuple(np.array([v], "float32") for v in (precision, recall, f1))


class EditDistance(Evaluator):
    """Mean normalized edit distance and share of wrong sequences, over batches.

    input, label: int64 tokens, found and true, with a LoD of one level. ignored_tokens
    are dropped from both first. ``metrics``: the batch's summed distance and its
    number of wrong sequences. Mirrors ``fluid.evaluator.EditDistance``.

    >>> import warnings
    >>> import fluidx as fluid
    >>> found = fluid.data("edit_found", [None, 1], "int64", lod_level=1)
    >>> true = fluid.data("edit_true", [None, 1], "int64", lod_level=1)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     scores = fluid.evaluator.EditDistance(found, true)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> scores.reset(exe)
    >>> ids = lambda v: fluid.create_lod_tensor(np.array(v).reshape(-1, 1), [[2, 2]])
    >>> feed = {"edit_found": ids([1, 2, 3, 4]), "edit_true": ids([1, 2, 3, 5])}
    >>> _ = exe.run(feed=feed, fetch_list=scores.metrics)
    >>> [float(v[0]) for v in scores.eval(exe)]  # (0 + 1/2) / 2, one of two is wrong
    [0.25, 0.5]
    """

    def __init__(
        self,
        input: Variable,
        label: Variable,
        ignored_tokens: Sequence[int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__("edit_distance", **kwargs)
        self.total_distance = self._create_state("total_distance", "float32", [1])
        self.seq_num = self._create_state("seq_num", "int64", [1])
        self.instance_error = self._create_state("instance_error", "int64", [1])
        distances, count = edit_distance(input, label, ignored_tokens=ignored_tokens)
        zero = fill_constant([1], "float32", 0.0)
        right = reduce_sum(cast(equal(distances, zero), "int64"))
        wrong = elementwise_sub(count, right)
        total = reduce_sum(distances)
        for state, amount in zip(self.states, (total, count, wrong)):
            _add_to(state, amount)
        self.metrics.extend([total, wrong])

    def eval(self, executor: Any, eval_program: Program | None = None) -> Any:
        """(mean distance, share of wrong sequences): float32 arrays of shape [1]."""
        program = Program() if eval_program is None else eval_program
        with program_guard(program):
            total, count, wrong = (_shown_in(program, s) for s in self.states)
            among = cast(count, "float32")
            share = cast(wrong, "float32")
            mean = elementwise_div(total, among)
            share = elementwise_div(share, among)
            made = executor.run(program, fetch_list=[mean, share])
        return tuple(np.array(v) for v in made)


class DetectionMAP(Evaluator):
    """Mean average precision of detected boxes, of a batch and of all since `reset`.

    Arguments are those of `fluidx.metrics.DetectionMAP`. It has no ``eval``: fetch
    `get_map_var`. Mirrors ``fluid.evaluator.DetectionMAP``.

    >>> import warnings
    >>> import fluidx as fluid
    >>> found = fluid.data("det_found", [None, 6], lod_level=1)
    >>> label = fluid.data("det_label", [None, 1], lod_level=1)
    >>> box = fluid.data("det_box", [None, 4], lod_level=1)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     scores = fluid.evaluator.DetectionMAP(found, label, box, class_num=2)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> scores.reset(exe)
    >>> row = lambda *v: fluid.create_lod_tensor(np.array([v], "float32"), [[1]])
    >>> feed = {"det_found": row(1, 0.9, 0, 0, 0.5, 0.5),
    ...         "det_label": row(1), "det_box": row(0, 0, 0.5, 0.5)}
    >>> made = exe.run(feed=feed, fetch_list=scores.get_map_var())
    >>> [float(v[0]) for v in made]
    [1.0, 1.0]
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
        super().__init__("map_eval")
        self.cur_map, self.accum_map, self.has_state = detection_maps(
            self._create_state,
            lambda: self.helper.create_variable(
                persistable=True, dtype="int32", shape=[1]
            ),
            [input, gt_label, gt_box, gt_difficult],
            class_num=class_num,
            background_label=background_label,
            overlap_threshold=overlap_threshold,
            evaluate_difficult=evaluate_difficult,
            ap_version=ap_version,
        )

    def get_map_var(self) -> tuple[Variable, Variable]:
        """What to fetch: the value of the batch, and of all batches since `reset`."""
        return self.cur_map, self.accum_map

    def reset(self, executor: Any, reset_program: Program | None = None) -> None:
        """Forget all batches. reset_program: takes the op that does it."""
        forget_batches(self.has_state, executor, reset_program)
