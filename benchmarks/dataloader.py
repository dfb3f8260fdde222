"""Does a DataLoader keep the executor fed? The share of a training spent waiting.

    python -m benchmarks.dataloader [--steps 600] [--repeat 5]

Two trainings: digits (64 pixels, batch 64, images scaled by the reader) and
CTR (26 sparse slots, 13 numbers, batch 500, parsed from text by the reader), read by a
thread, by a generator in a process, and by two map-style workers or parsers. Waiting is
what `next` takes in the training's own thread, whatever it does there; the median of
the repeats is shown, with the least and the most. The aim is under 5% with workers on
two cores. BLAS gets one thread unless OMP_NUM_THREADS says otherwise: with two, on two
cores, it works against the readers. CPU time is shown for both sides. "kept off" is
the share of its running time in which the training had no core: where that is much,
other work on the machine has kept the readers off as well, and the figures say little.
On Linux ``chrt -r 1 python -m benchmarks.dataloader`` (as root) puts the run before
all else.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import fluidx as fluid
from fluidx.dataset_factory import DatasetFactory

CPU = fluid.CPUPlace()
LIMIT = 0.05
DIGITS_BATCH, CTR_BATCH = 64, 500
SLOTS, NUMBERS, ROWS = 26, 13, 10_000


class Digits(fluid.io.Dataset):
    """Images that are prepared when they are asked for."""

    def __init__(self, batches: int) -> None:
        rng = np.random.default_rng(0)
        self._images = rng.integers(0, 17, (1797, 64), "uint8")
        self._labels = rng.integers(0, 10, (1797, 1))
        self._count = batches * DIGITS_BATCH

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        row = index % len(self._images)
        return self._images[row].astype("float32") / 16, self._labels[row]


def digits_network() -> tuple[list[Any], Any]:
    image = fluid.data("image", [None, 64])
    label = fluid.data("label", [None, 1], "int64")
    hidden = fluid.layers.fc(image, 256, act="relu")
    hidden = fluid.layers.fc(hidden, 256, act="relu")
    scores = fluid.layers.fc(hidden, 10)
    loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(scores, label))
    fluid.optimizer.Adam(0.001).minimize(loss)
    return [image, label], loss


def ctr_network() -> tuple[list[Any], Any]:
    slots = [
        fluid.layers.data(f"s{i}", [1], dtype="int64", lod_level=1)
        for i in range(SLOTS)
    ]
    numbers = fluid.layers.data("numbers", [NUMBERS])
    label = fluid.layers.data("click", [1], dtype="int64")
    rows = [fluid.layers.embedding(s, [ROWS, 10], is_sparse=True) for s in slots]
    pooled = [fluid.layers.sequence_pool(row, "sum") for row in rows]
    hidden = fluid.layers.concat([*pooled, numbers], axis=1)
    for _ in range(3):
        hidden = fluid.layers.fc(hidden, 400, act="relu")
    scores = fluid.layers.fc(hidden, 2)
    loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(scores, label))
    fluid.optimizer.SGD(0.01).minimize(loss)
    return [*slots, numbers, label], loss


def ctr_files(folder: Path, steps: int) -> list[str]:
    """Two files with the lines of so many batches together."""
    rng = np.random.default_rng(0)
    paths = []
    for part in range(2):
        lines = []
        for _ in range(steps * CTR_BATCH // 2):
            ids = " ".join(f"1 {v}" for v in rng.integers(1, ROWS, SLOTS))
            numbers = " ".join(f"{v:.3f}" for v in rng.random(NUMBERS))
            lines.append(f"{ids} {NUMBERS} {numbers} 1 {rng.integers(2)}\n")
        path = folder / f"part-{part}"
        path.write_text("".join(lines))
        paths.append(str(path))
    return paths


class Figures(NamedTuple):
    """Share of the time spent waiting; milliseconds per step: all of it, CPU here, and
    CPU of the readers' processes; share of the running in which there was no core."""

    share: float
    step: float
    own: float
    readers: float
    kept_off: float


def children_s() -> float:
    """CPU time of the processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def waiting(feeds: Iterable[Any], loss: Any) -> Figures:
    """Train on all feeds."""
    exe = fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    passing = iter(feeds)
    # the first step compiles, and lets the reader start
    exe.run(main, next(passing)[0], [loss])
    waited, steps, began = 0.0, 0, time.perf_counter()
    mine, theirs = time.thread_time(), children_s()
    while True:
        asked = time.perf_counter()
        feed = next(passing, None)
        waited += time.perf_counter() - asked
        if feed is None:
            break
        exe.run(main, feed[0], [loss])
        steps += 1
    whole = time.perf_counter() - began
    own = time.thread_time() - mine
    parts = whole, own, children_s() - theirs
    kept_off = max(0.0, 1 - own / (whole - waited))
    return Figures(waited / whole, *(part / steps * 1e3 for part in parts), kept_off)


def digits_feeds(kind: str, steps: int, variables: list[Any]) -> Iterable[Any]:
    data = Digits(steps)

    def batches() -> Iterator[Any]:
        for at in range(0, len(data), DIGITS_BATCH):
            yield [data[i] for i in range(at, at + DIGITS_BATCH)]

    if kind == "2 workers":
        return fluid.io.DataLoader(
            data, variables, CPU, batch_size=DIGITS_BATCH, num_workers=2
        )
    loader = fluid.io.DataLoader.from_generator(
        variables, 16, use_multiprocess=kind == "process"
    )
    return loader.set_sample_list_generator(batches, CPU)


def ctr_feeds(kind: str, files: list[str], variables: list[Any]) -> Iterable[Any]:
    dataset = DatasetFactory().create_dataset("QueueDataset")
    dataset.set_batch_size(CTR_BATCH)
    dataset.set_use_var(variables)
    dataset.set_filelist(files)
    if kind == "2 workers":
        dataset.set_thread(2)
        return fluid.io.DataLoader.from_dataset(dataset, [CPU])
    loader = fluid.io.DataLoader.from_generator(
        variables, 16, use_multiprocess=kind == "process"
    )
    names = [v.name for v in variables]
    return loader.set_batch_generator(
        lambda: ([feed[n] for n in names] for feed in dataset._batches(True)), CPU
    )


def measure(
    network: Callable[[], tuple[list[Any], Any]],
    feeds: Callable[[list[Any]], Iterable[Any]],
    repeat: int,
) -> list[Figures]:
    """Of so many trainings, by share of waiting."""
    found = []
    for _ in range(repeat):
        with (
            fluid.unique_name.guard(),
            fluid.program_guard(fluid.Program(), fluid.Program()),
            fluid.scope_guard(fluid.Scope()),
        ):
            variables, loss = network()
            found.append(waiting(feeds(variables), loss))
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = ctr_files(Path(folder), args.steps // 4)
        for kind in ("thread", "process", "2 workers"):
            for name, network, feeds in (
                ("digits", digits_network, lambda v: digits_feeds(kind, args.steps, v)),  # noqa: B023
                ("ctr", ctr_network, lambda v: ctr_feeds(kind, files, v)),  # noqa: B023
            ):
                found = measure(network, feeds, args.repeat)
                print(f"{name:<8}{kind:<10}{_line(found)}", flush=True)


def _line(found: list[Figures]) -> str:
    share, step, own, readers, kept_off = found[len(found) // 2]
    spread = f"{found[0].share:.1%} to {found[-1].share:.1%}"
    verdict = "ok" if share < LIMIT else f"over {LIMIT:.0%}"
    return (
        f"{share:7.1%} waiting ({spread}) {step:7.2f} ms "
        f"(CPU {own:.2f}, readers {readers:.2f}), kept off {kept_off:.0%}  {verdict}"
    )


if __name__ == "__main__":
    main()
