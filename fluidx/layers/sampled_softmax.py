"""A softmax over many classes, estimated from a few drawn ones."""

from __future__ import annotations

from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import FLOATS, check_dtype

__all__ = ["sampled_softmax_with_cross_entropy"]

_LAYER = "sampled_softmax_with_cross_entropy"


def sampled_softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    num_samples: int,
    num_true: int = 1,
    remove_accidental_hits: bool = True,
    use_customized_samples: bool = False,
    customized_samples: Variable | None = None,
    customized_probabilities: Variable | None = None,
    seed: int = 0,
) -> Variable:
    """Cross entropy of the true class against `num_samples` drawn ones, (n, 1).

    logits: (n, classes). label: int64 (n, 1); num_true is 1 (the reference refuses
    others). Classes are drawn without repetition, small numbers more often
    (log-uniform), the same for all rows; each logit loses the log of the chance of its
    class. remove_accidental_hits: a drawn class that is the true one does not count.
    use_customized_samples: `customized_samples` int64 (n, 1 + num_samples), the true
    class first, with `customized_probabilities`. seed 0: new samples in every run.
    Jean et al. (2015); mirrors ``fluid.layers.sampled_softmax_with_cross_entropy``.

    >>> import fluidx as fluid
    >>> logits = fluid.data("sampled_in", [None, 1000])
    >>> label = fluid.data("sampled_label", [None, 1], "int64")
    >>> fluid.layers.sampled_softmax_with_cross_entropy(logits, label, 25).shape
    (-1, 1)
    """
    helper = LayerHelper("sample_logits")
    check_dtype(logits, "logits", _LAYER, FLOATS)
    check_dtype(label, "label", _LAYER, (VarType.INT64,))
    if num_true != 1 or label.shape[-1] not in (1, -1):
        raise ValueError(
            f"{_LAYER}: takes one true class a row; num_true is {num_true}, label has "
            f"shape {label.shape}"
        )
    temporary = helper.create_variable_for_type_inference
    inputs = {"Logits": logits, "Labels": label}
    if use_customized_samples:
        samples = check_dtype(
            customized_samples, "customized_samples", _LAYER, (VarType.INT64,)
        )
        chances = check_dtype(
            customized_probabilities, "customized_probabilities", _LAYER, FLOATS
        )
        inputs |= {"CustomizedSamples": samples, "CustomizedProbabilities": chances}
    else:
        samples, chances = temporary("int64"), temporary(logits.dtype)
    sampled, places = temporary(logits.dtype), temporary("int64")
    soft = temporary(logits.dtype)
    outputs: dict[str, Any] = {
        "Samples": samples,
        "Probabilities": chances,
        "SampledLogits": sampled,
        "SampledLabels": places,
        "LogitsDim": temporary(logits.dtype),
        "LabelsDim": temporary(label.dtype),
    }
    attrs = {
        "use_customized_samples": use_customized_samples,
        "uniq": True,
        "remove_accidental_hits": remove_accidental_hits,
        "num_samples": num_samples,
        "seed": seed,
    }
    loss, softmax = temporary(logits.dtype), temporary(logits.dtype)
    helper.append_op("sample_logits", inputs, outputs, attrs)
    helper.append_op(
        "one_hot", {"X": places}, {"Out": soft}, {"depth": num_samples + 1}
    )
    helper.append_op(
        "softmax_with_cross_entropy",
        {"Logits": sampled, "Label": soft},
        {"Softmax": softmax, "Loss": loss},
        {"soft_label": True, "ignore_index": 0, "numeric_stable_mode": False},
    )
    return loss / num_true
