"""What the run that ends a pass does: the reference's losses, rates and counters."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import fluidx as fluid

ORACLE = Path(__file__).parents[1] / "golden" / "oracle"
sys.path.insert(0, str(ORACLE))
import reader_ends  # noqa: E402

sys.path.remove(str(ORACLE))
RECORDED = json.loads((ORACLE / "reader_ends.json").read_text())


@pytest.mark.parametrize("case", sorted(RECORDED))
def test_every_run_equals_the_reference_s(case):
    made = reader_ends.log(fluid, *case.split())
    assert [len(line) for line in made] == [len(line) for line in RECORDED[case]]
    for line, expected in zip(made, RECORDED[case]):
        np.testing.assert_allclose(line, expected, rtol=1e-5)


def test_the_ops_before_are_found_anew_in_a_changed_program():
    x = fluid.data("x", [None, 2])
    count = fluid.layers.create_global_var([1], 0.0, "float32", True, name="count")
    fluid.layers.increment(count)
    loader = fluid.io.DataLoader.from_generator([x], 2, iterable=False)
    loader.set_batch_generator(lambda: iter(()))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())

    def ended():
        loader.start()
        with pytest.raises(fluid.core.EOFException):
            exe.run(fetch_list=[])
        loader.reset()
        return float(fluid.global_scope().find_var("count").get_tensor()[0])

    assert [ended(), ended()] == [1.0, 2.0]
    block = fluid.default_main_program().global_block()
    block._prepend_op("increment", {"X": count}, {"Out": count}, {"step": 10.0})
    assert ended() == 13.0
