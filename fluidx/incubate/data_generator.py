"""Scripts that turn raw lines into MultiSlot text, for a dataset's pipe command.

    class Words(MultiSlotDataGenerator):
        def generate_sample(self, line):
            def sample():
                ids = [int(w) for w in line.split()]
                yield [("words", ids), ("label", [ids[0] % 2])]
            return sample

    Words().run_from_stdin()

Mirrors ``fluid.incubate.data_generator``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]

Samples = Callable[[], Iterable[Any]]


class DataGenerator:
    """Base: override `generate_sample`, and `generate_batch` to work on batches."""

    def __init__(self) -> None:
        self._proto_info: list[tuple[str, str]] | None = None
        self.batch_size_ = 32

    def set_batch(self, batch_size: int) -> None:
        """How many samples `generate_batch` gets at a time."""
        self.batch_size_ = batch_size

    def generate_sample(self, line: str | None) -> Samples:
        """A function that gives the samples of a line (None: without input)."""
        raise NotImplementedError(
            "override generate_sample: it returns a function that gives samples: "
            "[(name, [value, ...]), ...]"
        )

    def generate_batch(self, samples: list[Any]) -> Samples:
        """A function that gives samples from a batch of samples; here the same ones."""

        def same() -> Iterator[Any]:
            yield from samples

        return same

    def run_from_stdin(self) -> None:
        """Write the samples of each line of the standard input to the output."""
        self._run(sys.stdin)

    def run_from_memory(self) -> None:
        """Write the samples of ``generate_sample(None)`` to the standard output."""
        self._run([None])

    def _run(self, lines: Iterable[str | None]) -> None:
        batch: list[Any] = []
        for line in lines:
            for sample in self.generate_sample(line)():
                if sample is None:
                    continue
                batch.append(sample)
                if len(batch) == self.batch_size_:
                    self._write(batch)
                    batch = []
        if batch:
            self._write(batch)

    def _write(self, batch: list[Any]) -> None:
        for sample in self.generate_batch(batch)():
            sys.stdout.write(self._gen_str(sample))

    def _gen_str(self, line: Any) -> str:
        """The text of a sample, with its line end."""
        raise NotImplementedError("use MultiSlotDataGenerator")


def _fields(sample: Any) -> list[tuple[str, Any]]:
    """ValueError: it is no list of (name, values)."""
    if not isinstance(sample, (list, tuple)):
        raise ValueError(
            f"a sample must be a list or tuple of (name, values), got {sample!r:.60}"
        )
    for field in sample:
        if not (isinstance(field, (list, tuple)) and len(field) == 2):
            raise ValueError(f"a field must be (name, values), got {field!r:.60}")
    return list(sample)


class MultiSlotStringDataGenerator(DataGenerator):
    """Samples whose values are strings already: nothing is checked but the form."""

    def _gen_str(self, line: Any) -> str:
        parts: list[str] = []
        for _, values in _fields(line):
            parts += [str(len(values)), *values]
        return " ".join(parts) + "\n"


class MultiSlotDataGenerator(DataGenerator):
    """Samples of numbers: a slot is of integers until a float comes."""

    def _gen_str(self, line: Any) -> str:
        """ValueError: names differ from the first sample's, or a slot has no number."""
        fields = _fields(line)
        parts: list[str] = []
        kinds = []
        for name, values in fields:
            parts.append(self._checked(name, values))
            is_float = any(isinstance(v, float) for v in values)
            kinds.append((name, "float" if is_float else "uint64"))
        if self._proto_info is None:
            self._proto_info = kinds
            return " ".join(parts) + "\n"
        known = [name for name, _ in self._proto_info]
        if known != [name for name, _ in kinds]:
            raise ValueError(
                f"all samples must have the same fields; the first had {known}, now "
                f"came {[name for name, _ in kinds]}"
            )
        self._proto_info = [
            (name, "float" if "float" in (old, new) else "uint64")
            for (name, old), (_, new) in zip(self._proto_info, kinds)
        ]
        return " ".join(parts) + "\n"

    @staticmethod
    def _checked(name: Any, values: Any) -> str:
        if not isinstance(name, str):
            raise ValueError(f"the name of a field must be a string, got {name!r}")
        if not isinstance(values, list):
            raise ValueError(f"field {name}: values must be a list, got {values!r:.60}")
        if not values:
            raise ValueError(f"field {name} is empty: give it a value for padding")
        for value in values:
            if not isinstance(value, (int, float)):
                raise ValueError(
                    f"field {name}: values must be int or float, got {value!r:.60}"
                )
        return " ".join([str(len(values)), *map(str, values)])
