"""Statistics of programs."""

from __future__ import annotations

import pytest

import fluidx as fluid
from fluidx.contrib import memory_usage, op_freq_statistic, summary


@pytest.fixture
def main():
    img = fluid.layers.data("img", [3, 16, 16])
    c = fluid.layers.conv2d(img, 8, 3, padding=1, act="relu")
    b = fluid.layers.batch_norm(c)
    p = fluid.layers.pool2d(b, 2, "max", 2)
    d = fluid.layers.conv2d(p, 8, 3, groups=2, bias_attr=False)
    e = fluid.layers.fc(d, 10, act="sigmoid")
    fluid.layers.conv2d(p, 8, 1, stride=2, bias_attr=False, act="leaky_relu")
    fluid.layers.mean(e)
    return fluid.default_main_program()


def test_memory_usage(main):
    # recorded from the reference
    assert memory_usage(main, 10) == pytest.approx((380.678320, 398.805859, "KB"))
    low, high, unit = memory_usage(main, 100000)
    assert (low, high) == pytest.approx((3716.2400613784794, 3893.2038738250735))
    assert unit == "MB"
    with pytest.raises(TypeError, match="takes a Program, got int"):
        memory_usage(3, 1)
    with pytest.raises(ValueError, match="must be positive, got 0"):
        memory_usage(main, 0)


def test_summary(main, capsys):
    summary(main)
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in ln.split("|")[1:-1]] for ln in lines if "|" in ln]
    assert rows[0] == ["No.", "TYPE", "INPUT", "OUTPUT", "PARAMs", "FLOPs"]
    # output elements x kernel elements x 2
    positions = 8 * 16 * 16
    flops = str(positions * 3 * 9 * 2)
    assert rows[1] == ["0", "conv2d", "(3, 16, 16)", "(8, 16, 16)", "216", flops]
    grouped = next(r for r in rows if r[3] == "(8, 6, 6)")
    assert grouped[4:] == [str(8 * 4 * 9), str(8 * 6 * 6 * 4 * 9 * 2)]
    fc = next(r for r in rows if r[1] == "mul")
    assert fc[4:] == [str(288 * 10), str(288 * 10 * 2)]
    total = sum(int(r[4]) for r in rows[1:])
    assert f"Total PARAMs: {total}({total / 1e6:.4f}M)" in lines


def test_op_frequency(main):
    single, pairs = op_freq_statistic(main)
    assert single["conv2d"] == 3
    assert next(iter(single)) == "conv2d"
    assert sum(single.values()) == len(main.global_block().ops)
    assert pairs["pool2d->conv2d"] == 2
    assert pairs["batch_norm->pool2d"] == 1
    with pytest.raises(TypeError, match="takes a Program"):
        op_freq_statistic(None)
