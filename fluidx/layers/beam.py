"""Beam search: a step of it, and the hypotheses that come of all steps."""

from __future__ import annotations

from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import INTEGERS, check_dtype, check_variable, emit

__all__ = ["beam_search", "beam_search_decode", "gather_tree"]


def beam_search(
    pre_ids: Variable,
    pre_scores: Variable,
    ids: Variable | None,
    scores: Variable,
    beam_size: int,
    end_id: int,
    level: int = 0,
    is_accumulated: bool = True,
    name: str | None = None,
    return_parent_idx: bool = False,
) -> Any:
    """The best `beam_size` candidates of each source; one step of a beam search.

    pre_ids, pre_scores: (prefixes, 1), what was selected in the step before. ids: int64
    (prefixes, candidates); None: candidates are their columns. scores: of the same
    shape, of the whole prefix with the candidate (is_accumulated) or the candidate's
    probability; its LoD tells at `level` the prefixes of each source. A prefix that
    ends in `end_id` goes on with that only; a source of which all have ended selects
    nothing. Returns the selected ids and scores (selected, 1), LoD source -> prefix ->
    selected, and with return_parent_idx the prefix of each. Mirrors
    ``fluid.layers.beam_search``.

    >>> import fluidx as fluid
    >>> ids = fluid.data("beam_ids", [None, 1], "int64", 2)
    >>> scores = fluid.data("beam_scores", [None, 1], "float32", 2)
    >>> best = fluid.data("beam_best", [None, 4], "int64")
    >>> rated = fluid.data("beam_rated", [None, 4])
    >>> chosen, score = fluid.layers.beam_search(ids, scores, best, rated, 4, end_id=0)
    >>> chosen.dtype.name, score.dtype.name
    ('INT64', 'FP32')
    """
    check_dtype(pre_ids, "pre_ids", "beam_search", (VarType.INT64,))
    check_variable(pre_scores, "pre_scores", "beam_search")
    check_variable(scores, "scores", "beam_search")
    inputs = {"pre_ids": pre_ids, "pre_scores": pre_scores, "scores": scores}
    if ids is not None:
        inputs["ids"] = check_dtype(ids, "ids", "beam_search", (VarType.INT64,))
    helper = LayerHelper("beam_search", name=name)
    best = helper.create_variable_for_type_inference(pre_scores.dtype)
    chosen = helper.create_variable_for_type_inference(pre_ids.dtype)
    parents = helper.create_variable_for_type_inference("int32")
    helper.append_op(
        "beam_search",
        inputs,
        {"selected_ids": chosen, "selected_scores": best, "parent_idx": parents},
        {
            "level": level,
            "beam_size": beam_size,
            "end_id": end_id,
            "is_accumulated": is_accumulated,
        },
    )
    return (chosen, best, parents) if return_parent_idx else (chosen, best)


def beam_search_decode(
    ids: Variable,
    scores: Variable,
    beam_size: int,
    end_id: int,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """The hypotheses of a beam search, the best of each source first.

    ids, scores: arrays of what `beam_search` selected in each step. Returns the ids
    and, for each id, the score of the prefix that ends there: (tokens,), LoD source ->
    hypothesis -> token. Mirrors ``fluid.layers.beam_search_decode``.
    """
    check_variable(ids, "ids", "beam_search_decode")
    check_variable(scores, "scores", "beam_search_decode")
    helper = LayerHelper("beam_search_decode", name=name)
    sentences = helper.create_variable_for_type_inference(ids.dtype)
    rated = helper.create_variable_for_type_inference(scores.dtype)
    helper.append_op(
        "beam_search_decode",
        {"Ids": ids, "Scores": scores},
        {"SentenceIds": sentences, "SentenceScores": rated},
        {"beam_size": beam_size, "end_id": end_id},
    )
    return sentences, rated


def gather_tree(ids: Variable, parents: Variable) -> Variable:
    """Whole beams from the ids and parents of all steps.

    ids, parents: (time, batch, beam), int32 or int64; a parent is the beam's number in
    the step before. Mirrors ``fluid.layers.gather_tree``.

    >>> import fluidx as fluid
    >>> ids = fluid.data("tree_ids", [5, 2, 2], "int64")
    >>> parents = fluid.data("tree_parents", [5, 2, 2], "int64")
    >>> fluid.layers.gather_tree(ids, parents).shape
    (5, 2, 2)
    """
    check_dtype(ids, "ids", "gather_tree", INTEGERS)
    check_dtype(parents, "parents", "gather_tree", INTEGERS)
    return emit("gather_tree", {"Ids": ids, "Parents": parents})
