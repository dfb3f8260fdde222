"""Loading and saving one combined file, beside moving its bare bytes.

    python -m benchmarks.io [--gib 1] [--repeat 5] [--dir DIR]

Prints how often longer than reading (writing) the bytes it takes, best of the runs;
the two take turns, so that both see the same page cache.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fluidx as fluid
from fluidx import io

TENSORS = 16
LIMIT = 1.5


def _program(gib: float) -> fluid.Program:
    """A program with `TENSORS` parameters of this many GiB together, with values."""
    program = fluid.Program()
    rows = int(gib * 2**30 / 4 / TENSORS / 1024)
    rng = np.random.default_rng(0)
    for i in range(TENSORS):
        name = f"w_{i:02d}"
        program.global_block().create_parameter(
            name=name, shape=[rows, 1024], dtype="float32"
        )
        value = rng.random((rows, 1024), "float32")
        fluid.global_scope().var(name).value = value
    return program


def _seconds(work: Callable[[], object], made: Path | None) -> float:
    if made is not None:  # replacing a file waits for the disk
        made.unlink(missing_ok=True)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


Work = tuple[Callable[[], object], Path | None]


def _best(repeat: int, *works: Work) -> list[float]:
    """The best time of each (work, file that it makes anew), taking turns."""
    runs = [[_seconds(*work) for work in works] for _ in range(repeat)]
    return [min(times) for times in zip(*runs)]


def _report(what: str, mine: float, bare: float, size: int) -> None:
    ratio = mine / bare
    speed = size / bare / 1e9
    verdict = "ok" if ratio <= LIMIT else f"over {LIMIT}"
    print(
        f"{what}: {mine:.3f} s, bare bytes {bare:.3f} s ({speed:.1f} GB/s), "
        f"ratio {ratio:.2f} ({verdict})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--dir", help="where the file is put (a temporary folder)")
    args = parser.parse_args()
    program = _program(args.gib)
    exe = fluid.Executor(fluid.CPUPlace())
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        path = Path(folder) / "params"
        io.save_persistables(exe, folder, program, "params")
        content = path.read_bytes()

        def load() -> None:
            # as when a process starts: no older values to let go of
            with fluid.scope_guard(fluid.Scope()):
                io.load_persistables(exe, folder, program, "params")

        def save() -> None:
            io.save_persistables(exe, folder, program, "new")

        mine, bare = _best(args.repeat, (load, None), (path.read_bytes, None))
        _report("load", mine, bare, len(content))
        new, other = Path(folder) / "new", Path(folder) / "bare"
        mine, bare = _best(
            args.repeat, (save, new), (lambda: other.write_bytes(content), other)
        )
        _report("save", mine, bare, len(content))


if __name__ == "__main__":
    main()
