"""Wrong arguments of Executor.run, CompiledProgram and LoD tensors: what is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidx as fluid

Case = tuple[Callable[[], Any], type[Exception], str]
CPU = fluid.CPUPlace()


def _run(feed: Any = None, **kwargs: Any) -> Any:
    x = fluid.data("x", [None, 2])
    feed = {"x": np.ones((1, 2), "float32")} if feed is None else feed
    out = fluid.layers.scale(x, 2.0)
    return fluid.Executor(CPU).run(feed=feed, fetch_list=[out], **kwargs)


def _parallel(**kwargs: Any) -> Any:
    program = fluid.CompiledProgram(fluid.default_main_program())
    return program.with_data_parallel(**kwargs)


def _wide() -> Any:
    seq = fluid.data("seq", [None, 8], lod_level=1)
    out = fluid.layers.sequence_pool(seq, "sum")
    came = fluid.create_lod_tensor(np.ones((3, 7), "float32"), [[1, 2]], CPU)
    return fluid.Executor(CPU).run(feed={"seq": came}, fetch_list=[out])


def _together(layer: Callable[[Any, Any], Any]) -> Any:
    x, z = fluid.data("x", [None, None]), fluid.data("z", [None, None])
    feed = {"x": np.ones((2, 3), "float32"), "z": np.ones((4, 3), "float32")}
    return fluid.Executor(CPU).run(feed=feed, fetch_list=[layer(x, z)])


def _small_picture() -> Any:
    picture = fluid.data("picture", [None, 1, None, None])
    out = fluid.layers.pool2d(picture, 5)
    feed = {"picture": np.ones((1, 1, 3, 3), "float32")}
    return fluid.Executor(CPU).run(feed=feed, fetch_list=[out])


def _inside() -> Any:
    i = fluid.layers.fill_constant([1], "int64", 0)
    n = fluid.layers.fill_constant([1], "int64", 3)
    cond = fluid.layers.less_than(i, n)
    with fluid.layers.While(cond).block():
        made = fluid.layers.scale(i, 2.0)
        fluid.layers.increment(i)
        fluid.layers.less_than(i, n, cond=cond)
    return fluid.Executor(CPU).run(fetch_list=[made])


CASES: dict[str, Case] = {
    "scope": (
        lambda: _run(scope=3),
        TypeError,
        "Executor.run takes a Scope as scope, got 3",
    ),
    "name of a feed": (
        lambda: _run({3: np.ones((1, 2), "float32")}),
        TypeError,
        "feed: names are strings, got 3",
    ),
    "width of sequences": (
        _wide,
        ValueError,
        r"feed seq: dimension 1 must be 8 \(declared \[any, 8\]\), came \[3, 7\]",
    ),
    "shape of a variable": (
        lambda: (
            fluid.default_main_program()
            .global_block()
            .create_var(name="q", shape=[2, "a"], dtype="float32")
        ),
        ValueError,
        r"variable q: shape must be a list of integers, got \[2, 'a'\]",
    ),
    # where NumPy's own words say little, the op's rule for shapes speaks
    "concat at run time": (
        lambda: _together(lambda x, z: fluid.layers.concat([x, z], 1)),
        fluid.core.EnforceNotMet,
        r"op concat: \(2, 3\) and \(4, 3\) differ outside axis 1\n  X x: float32\[2, 3",
    ),
    "stack at run time": (
        lambda: _together(lambda x, z: fluid.layers.stack([x, z])),
        fluid.core.EnforceNotMet,
        r"op stack: shapes differ: \(2, 3\) and \(4, 3\)",
    ),
    "matmul at run time": (
        lambda: _together(lambda x, z: fluid.layers.matmul(x, x)),
        fluid.core.EnforceNotMet,
        r"op matmul: X \(2, 3\) .* has 3 columns but Y \(2, 3\) .* has 2 rows",
    ),
    "an index past the end": (
        lambda: _together(lambda x, z: x[5]),
        fluid.core.EnforceNotMet,
        r"op slice: 5:6 leaves nothing of axis 0 of \(2, 3\)(?s:.*)built at .*errors",
    ),
    "a window too large": (
        _small_picture,
        fluid.core.EnforceNotMet,
        "op pool2d: a window of 5 does not fit height 3 with padding 0 and 0",
    ),
    "broadcast at run time": (
        lambda: _together(lambda x, z: x + z),
        fluid.core.EnforceNotMet,
        r"op elementwise_add: operands could not .* shapes \(2,3\) \(4,3\)",
    ),
    "what a loop makes inside": (
        _inside,
        fluid.core.EnforceNotMet,
        "fetch: variable 'scale_0.tmp_0' has no value; it is inside a loop or branch",
    ),
    "loss_name": (
        lambda: _parallel(loss_name=3),
        TypeError,
        "with_data_parallel: loss_name must be a string, got 3",
    ),
    "twice": (
        lambda: _parallel().with_data_parallel(),
        fluid.core.EnforceNotMet,
        "with_data_parallel: it was called before on this one",
    ),
    "build_strategy": (
        lambda: _parallel(build_strategy=3),
        TypeError,
        "with_data_parallel: build_strategy must be a BuildStrategy, got 3",
    ),
    "exec_strategy": (
        lambda: _parallel(exec_strategy=fluid.BuildStrategy()),
        TypeError,
        "with_data_parallel: exec_strategy must be a ExecutionStrategy",
    ),
    "share_vars_from": (
        lambda: _parallel(share_vars_from=3),
        TypeError,
        "with_data_parallel: share_vars_from must be a CompiledProgram, got 3",
    ),
    "lengths": (
        lambda: fluid.create_lod_tensor(np.ones((3, 8)), [1, 2], CPU),
        TypeError,
        r"create_lod_tensor: recursive_seq_lens must be a list of lists, .* got \[1, 2",
    ),
    "data": (
        lambda: fluid.create_lod_tensor(3, [[1, 3]], CPU),
        TypeError,
        "create_lod_tensor: data must be a LoDTensor, a numpy array or a list, got 3",
    ),
    "place": (
        lambda: fluid.create_lod_tensor(np.ones((3, 8)), [[1, 2]], "cpu"),
        TypeError,
        r"create_lod_tensor: place must be one such as CPUPlace\(\), got 'cpu'",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_said(case: Case) -> None:
    call, kind, said = case
    with pytest.raises(kind, match=said):
        call()


def test_a_scope_of_ones_own_is_taken() -> None:
    assert _run(scope=fluid.Scope())[0].tolist() == [[2.0, 2.0]]
