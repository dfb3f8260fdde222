"""Small modules that scripts import."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import fluidx as fluid
from fluidx import debugger, graphviz, install_check
from fluidx.contrib import distributed_batch_reader
from fluidx.layers import collective
from fluidx.wrapped_decorator import signature_safe_contextmanager, wrap_decorator


def test_collective_layers():
    x = fluid.data("x", [4, 3])
    assert collective._c_allgather(x, nranks=2).shape == (8, 3)
    assert collective._c_broadcast(x, root=1) is x
    assert collective._c_reducescatter(x, 2).shape == (2, 3)
    collective._c_sync_calc_stream(x)
    collective._c_sync_comm_stream(x, 0)
    collective._c_allreduce(x, reduce_type="max", ring_id=1, use_calc_stream=True)
    assert collective._c_allreduce(x, out=x) is x
    ops = fluid.default_main_program().global_block().ops
    # recorded from the reference
    assert [(o.type, o.output_arg_names[0]) for o in ops] == [
        ("c_allgather", "x.c_allgather_0"),
        ("c_broadcast", "x"),
        ("c_reducescatter", "x.c_reducescatter_0"),
        ("c_sync_calc_stream", "x"),
        ("c_sync_comm_stream", "x"),
        ("c_allreduce_max", "x.c_allreduce_max_0"),
        ("c_allreduce_sum", "x"),
    ]
    assert ops[5].attr("ring_id") == 1
    assert ops[5].attr("use_calc_stream")
    with pytest.raises(TypeError, match="reduce_type 'mean' is none of"):
        collective._c_allreduce(x, reduce_type="mean")
    with pytest.raises(ValueError, match="4 rows cannot be shared out among 3"):
        collective._c_reducescatter(x, 3)


@pytest.mark.parametrize(
    ("trainers", "own", "batches"),
    # recorded from the reference
    [
        (2, 0, [[1], [3]]),
        (2, 1, [[2], [4]]),
        (3, 0, [[1]]),
        (3, 1, [[2]]),
        (3, 2, [[3]]),
    ],
)
def test_batches_are_dealt_out(monkeypatch, trainers, own, batches):
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", str(trainers))
    monkeypatch.setenv("PADDLE_TRAINER_ID", str(own))
    reader = distributed_batch_reader(lambda: iter([[1], [2], [3], [4], [5]]))
    assert list(reader()) == batches
    monkeypatch.setenv("PADDLE_TRAINER_ID", "3")
    with pytest.raises(ValueError, match="is not below PADDLE_TRAINERS_NUM"):
        distributed_batch_reader(reader)


def test_wrapped_decorators_keep_signatures():
    @wrap_decorator
    def twice(function):
        def call(*args, **kwargs):
            return 2 * function(*args, **kwargs)

        return call

    @twice
    def add(a, b=1):
        return a + b

    assert add(2) == 6
    assert str(inspect.signature(add)) == "(a, b=1)"

    @signature_safe_contextmanager
    def opened():
        yield 5

    with opened() as value:
        assert value == 5


def test_install_check(capsys, monkeypatch):
    monkeypatch.setattr(install_check, "device_count", lambda: 0)
    before = len(fluid.default_main_program().global_block().ops)
    install_check.run_check()
    assert capsys.readouterr().out == "fluidx works on the CPU.\n"
    assert len(fluid.default_main_program().global_block().ops) == before


def test_a_failing_check_says_so(monkeypatch):
    monkeypatch.setattr(np, "isfinite", lambda value: np.array([False]))
    with pytest.raises(RuntimeError, match="a loss of"):
        install_check.run_check()


@pytest.fixture
def trained():
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 2))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return fluid.default_main_program()


def test_programs_as_code(trained):
    forward = debugger.pprint_block_codes(trained.global_block())
    assert "mean(" in forward
    assert "mean_grad(" not in forward
    assert "mean_grad(" in debugger.pprint_program_codes(trained)


def test_programs_as_pictures(trained, tmp_path):
    path = tmp_path / "block.dot"
    debugger.draw_block_graphviz(trained.global_block(), ["x"], str(path))
    text = path.read_text()
    assert text.startswith('digraph "block" {')
    ops = trained.global_block().ops
    assert text.count('shape="box"') == len(ops)
    ends = [len({*o.input_arg_names}) + len({*o.output_arg_names}) for o in ops]
    assert text.count(" -> ") == sum(ends)
    (marked,) = [line for line in text.splitlines() if "orange" in line]
    assert 'label="x\\n[-1, 4]"' in marked


def test_graphs(tmp_path, monkeypatch):
    graph = graphviz.Graph('a "b"', rankdir="TB")
    one, two = graph.node("one", "n"), graph.node("two", "n", shape="box")
    graph.edge(one, two, color="red")
    assert graph.code() == (
        'digraph "a \\"b\\"" {\n  rankdir="TB"\n'
        '  n_0 [label="one", tooltip="", style="filled"]\n'
        '  n_1 [label="two", tooltip="", style="filled", shape="box"]\n'
        '  n_0 -> n_1 [color="red"]\n}\n'
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="needs the program dot"):
        graph.compile(str(tmp_path / "g.dot"))
    assert (tmp_path / "g.dot").read_text() == graph.code()
