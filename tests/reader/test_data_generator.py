"""Data generators. Expected text is the reference's."""

from __future__ import annotations

import io

import pytest

from fluidx.incubate.data_generator import (
    DataGenerator,
    MultiSlotDataGenerator,
    MultiSlotStringDataGenerator,
)


def generator(*samples, base=MultiSlotDataGenerator):
    class Made(base):
        def generate_sample(self, line):
            return lambda: iter(samples)

    return Made()


class Words(MultiSlotDataGenerator):
    def generate_sample(self, line):
        def read():
            words = [int(w) for w in line.split()]
            yield [("words", words), ("f", [1.5, 2]), ("label", [1])]

        return read


class Reversed(Words):
    def generate_batch(self, samples):
        return lambda: reversed(samples)


def test_from_stdin(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("1 2 3\n4\n5 6\n"))
    Words().run_from_stdin()
    expected = "3 1 2 3 2 1.5 2 1 1\n1 4 2 1.5 2 1 1\n2 5 6 2 1.5 2 1 1\n"
    assert capsys.readouterr().out == expected


def test_batches(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("1 2 3\n4\n5 6\n"))
    made = Reversed()
    made.set_batch(2)
    made.run_from_stdin()
    expected = "1 4 2 1.5 2 1 1\n3 1 2 3 2 1.5 2 1 1\n2 5 6 2 1.5 2 1 1\n"
    assert capsys.readouterr().out == expected


def test_strings(capsys):
    sample = [("words", ["4", "5"]), ("label", ["1"])]
    generator(sample, base=MultiSlotStringDataGenerator).run_from_memory()
    assert capsys.readouterr().out == "2 4 5 1 1\n"


def test_a_slot_becomes_float_and_none_is_left_out(capsys):
    generator([("a", [1])], None, [("a", [1.5])], (("a", [2]),)).run_from_memory()
    assert capsys.readouterr().out == "1 1\n1 1.5\n1 2\n"


@pytest.mark.parametrize(
    ("sample", "text"),
    [
        ([("b", [1])], r"the first had \['a'\], now came \['b'\]"),
        ([("a", [1]), ("b", [1])], "the first had"),
        ([("a", [])], "field a is empty"),
        ([("a", (1,))], "values must be a list"),
        ([("a", ["x"])], "values must be int or float, got 'x'"),
        ([(1, [1])], "name of a field must be a string"),
        ("text", "a sample must be a list or tuple"),
        ([1], "a field must be"),
    ],
)
def test_wrong_samples(sample, text):
    with pytest.raises(ValueError, match=text):
        generator([("a", [1])], sample).run_from_memory()


def test_what_must_be_overridden():
    with pytest.raises(NotImplementedError, match="override generate_sample"):
        MultiSlotDataGenerator().run_from_memory()
    with pytest.raises(NotImplementedError, match="MultiSlotDataGenerator"):
        generator([("a", [1])], base=DataGenerator).run_from_memory()
