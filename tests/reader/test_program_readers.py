"""Readers in programs: DataLoader, PyReader, py_reader. Expected values are the
reference's."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from loading import CPU, LOADER, batches, endless, variables

import fluidx as fluid
from fluidx.core import EOFException
from fluidx.ir.errors import EnforceNotMet, FeedError, RunError
from fluidx.ir.verify import verify


def loader_in_program(**options):
    x, y = variables()
    made = LOADER.from_generator([x, y], capacity=2, iterable=False, **options)
    made.set_batch_generator(batches())
    return made, fluid.layers.reduce_mean(x)


def py_reader_class():
    x, y = variables()
    made = fluid.io.PyReader([x, y], capacity=2, iterable=False)
    made.decorate_batch_generator(batches())
    return made, fluid.layers.reduce_mean(x)


def py_reader_layer(**options):
    shapes, dtypes = [(-1, 2), (-1, 1)], ["float32", "int64"]
    made = fluid.layers.py_reader(2, shapes, dtypes, **options)
    x, _ = fluid.layers.read_file(made)
    made.decorate_tensor_provider(batches())
    return made, fluid.layers.reduce_mean(x)


def reader_by_data():
    made = fluid.layers.create_py_reader_by_data(2, variables())
    x, _ = fluid.layers.read_file(made)
    made.decorate_paddle_reader(
        lambda: ([(x[0], y[0]), (x[1], y[1])] for x, y in batches()())
    )
    return made, fluid.layers.reduce_mean(x)


def doubly_buffered():
    shapes, dtypes = [(-1, 2), (-1, 1)], ["float32", "int64"]
    made = fluid.layers.py_reader(2, shapes, dtypes, use_double_buffer=False)
    made.decorate_tensor_provider(batches())
    second = fluid.layers.double_buffer(made)
    assert second.name == "create_double_buffer_reader_0"
    x, _ = fluid.layers.read_file(second)
    return second, fluid.layers.reduce_mean(x)


@pytest.mark.parametrize(
    "build",
    [
        loader_in_program,
        lambda: loader_in_program(use_double_buffer=False),
        lambda: loader_in_program(use_multiprocess=True),
        py_reader_class,
        py_reader_layer,
        reader_by_data,
        doubly_buffered,
    ],
)
def test_passes_until_the_end_and_again(build):
    reader, mean = build()
    exe = fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        reader.start()
        got = []
        while True:
            try:
                got.append(float(exe.run(fetch_list=[mean])[0]))
            except EOFException:
                reader.reset()
                break
        assert got == [0.0, 1.0, 2.0]


def run(mean, program=None):
    return float(fluid.Executor(CPU).run(program, fetch_list=[mean])[0])


def test_reset_in_the_middle():
    reader, mean = loader_in_program()
    reader.start()
    assert [run(mean), run(mean)] == [0.0, 1.0]
    reader.reset()
    reader.reset()
    reader.start()
    assert run(mean) == 0.0
    reader.reset()


def test_after_the_end_it_stays_ended_until_reset():
    reader, mean = loader_in_program()
    reader.start()
    for _ in range(3):
        run(mean)
    for _ in range(2):
        with pytest.raises(EOFException):
            run(mean)
    reader.start()
    with pytest.raises(EOFException):
        run(mean)


def test_a_reader_that_was_not_started():
    reader, mean = loader_in_program()
    with pytest.raises(RunError, match=r"call start\(\)"):
        run(mean)
    reader.start()
    with pytest.raises(RuntimeError, match="already started"):
        reader.start()
    reader.reset()
    made = fluid.layers.py_reader(2, [(-1, 2)], ["float32"])
    with pytest.raises(RuntimeError, match="set its generator"):
        made.start()


def test_a_clone_reads_from_the_same_reader():
    reader, mean = loader_in_program()
    test = fluid.default_main_program().clone(for_test=True)
    reader.start()
    assert [run(mean), run(mean.name, test), run(mean)] == [0.0, 1.0, 2.0]
    reader.reset()


def test_a_batch_replaces_what_was_fed():
    reader, mean = loader_in_program()
    reader.start()
    feed = {"x": np.ones([2, 2], "float32"), "y": np.ones([2, 1], "int64")}
    (got,) = fluid.Executor(CPU).run(feed=feed, fetch_list=[mean])
    assert float(got) == 0.0
    reader.reset()


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (np.ones([2, 3], "float32"), "x: dimension 1 must be 2"),
        (np.ones([2, 2], "float64"), "x: expected dtype float32, came float64"),
    ],
)
def test_batches_are_checked(x, text):
    reader, mean = loader_in_program()
    reader.set_batch_generator(lambda: iter([(x, np.ones([2, 1], "int64"))]))
    reader.start()
    with pytest.raises(FeedError, match=text):
        run(mean)
    reader.reset()


def test_a_failing_generator_fails_the_run():
    reader, mean = loader_in_program()

    def failing():
        yield next(batches()())
        raise ValueError("boom")

    reader.set_batch_generator(failing)
    reader.start()
    assert run(mean) == 0.0
    with pytest.raises(EnforceNotMet, match="boom"):
        run(mean)
    reader.reset()


def test_sequences_keep_their_lod():
    made = fluid.layers.py_reader(2, [(-1, 1)], ["int64"], lod_levels=[1])
    words = fluid.layers.read_file(made)
    total = fluid.layers.sequence_pool(fluid.layers.cast(words, "float32"), "sum")
    made.decorate_paddle_reader(lambda: iter([[([1, 2],), ([3],)]]))
    made.start()
    (got,) = fluid.Executor(CPU).run(fetch_list=[total])
    assert got.tolist() == [[3.0], [3.0]]
    made.reset()


def test_a_forgotten_reader_leaves_no_thread():
    before = threading.active_count()

    def build():
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()):
            reader, mean = loader_in_program()
        reader.set_batch_generator(endless)
        reader.start()
        assert run(mean, main) == 0.0
        return weakref.ref(reader.queue)

    queue = build()
    gc.collect()
    assert queue() is None
    for thread in threading.enumerate():
        if "reader of x" in thread.name:
            thread.join(5)
    assert threading.active_count() == before


def ops_of(program):
    return [
        (op.type, dict(op.inputs), dict(op.outputs))
        for op in program.global_block().ops
    ]


def test_the_ops_are_the_reference_s():
    made, _ = loader_in_program()
    main = fluid.default_main_program()
    create, buffer, read = main.global_block().ops[:3]
    queue = {"blocking_queue": ["lod_tensor_blocking_queue_0"]}
    assert (create.type, dict(create.inputs)) == ("create_py_reader", queue)
    facts = {
        "shape_concat": [-1, 2, -1, 1],
        "ranks": [2, 2],
        "lod_levels": [0, 0],
        "dtypes": [5, 3],
        "need_check_feed": [1, 1],
        "use_data_config": True,
        "device_index": 0,
        "device_count": 1,
    }
    assert {k: create.attrs[k] for k in facts} == facts
    assert create.output("Out") == ["create_py_reader_0"]
    assert buffer.type == "create_double_buffer_reader"
    assert buffer.input("UnderlyingReader") == ["create_py_reader_0"]
    assert (read.type, read.input("Reader")) == ("read", ["double_buffer_0"])
    assert read.output("Out") == ["x", "y"]
    assert fluid.default_startup_program().global_block().ops == []


def test_programs_that_read_are_sound_and_travel():
    loader_in_program()
    _, mean = py_reader_layer()
    main = fluid.default_main_program()
    assert verify(main) == []
    assert verify(fluid.default_startup_program()) == []
    again = fluid.Program.from_text(main.to_text())
    assert ops_of(again) == ops_of(main)
    with pytest.raises(RunError, match=r"'double_buffer_0' is no reader .* feed x, y"):
        run(mean.name, again)


def test_the_ops_of_py_reader_are_the_reference_s():
    py_reader_layer(name="rd")
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    assert ops_of(startup) == [
        ("create_py_reader", {"blocking_queue": ["rd_queue"]}, {"Out": ["rd_reader"]})
    ]
    outputs = ["read_file_0.tmp_0", "read_file_0.tmp_1"]
    assert ops_of(main)[:2] == [
        (
            "create_double_buffer_reader",
            {"UnderlyingReader": ["rd_reader"]},
            {"Out": ["rd_double_buffer"]},
        ),
        ("read", {"Reader": ["rd_double_buffer"]}, {"Out": outputs}),
    ]
    assert startup.global_block().ops[0].attrs["need_check_feed"] == [0, 0]
    x = main.global_block().var(outputs[0])
    assert (x.shape, x.stop_gradient, x.persistable) == ((-1, 2), True, False)
