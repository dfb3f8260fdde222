"""More of ``fluid.core``: the profiler's switches, pruning, DLPack, the machine."""

from __future__ import annotations

import enum
import platform
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from fluidx import profiler
from fluidx.executor import tracing
from fluidx.io.dlpack import from_dlpack as _from_dlpack
from fluidx.ir.desc import ProgramDesc, plain_of
from fluidx.ir.errors import EnforceNotMet
from fluidx.ir.prune import prune_backward as _prune_backward
from fluidx.ir.prune import prune_to_ops
from fluidx.kernels import EMPTY
from fluidx.tensor import LoDTensor

__all__ = [
    "EventSortingKey",
    "ProfilerState",
    "TracerOption",
    "avx_supported",
    "disable_profiler",
    "enable_profiler",
    "from_dlpack",
    "get_glibc_ver",
    "init_devices",
    "init_gflags",
    "init_glog",
    "is_profiler_enabled",
    "less_than_ver",
    "load_op_library",
    "prune",
    "prune_backward",
    "reset_profiler",
    "run_shell_command",
    "set_tracer_option",
    "var_names",
]


# ---------------------------------------------------------------- the profiler


class _Named(enum.IntEnum):
    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __repr__ = __str__


class ProfilerState(_Named):
    """What is measured (``core.ProfilerState``)."""

    kDisabled = 0
    kCPU = 1
    kCUDA = 2
    kAll = 3


class EventSortingKey(_Named):
    """How the table is sorted (``core.EventSortingKey``)."""

    kDefault = 0
    kCalls = 1
    kTotal = 2
    kMin = 3
    kMax = 4
    kAve = 5


class TracerOption(_Named):
    """How finely it is measured (``core.TracerOption``)."""

    kDefault = 0
    kOpDetail = 1
    kAllOpDetail = 2


_STATES = {
    ProfilerState.kCPU: "CPU",
    ProfilerState.kCUDA: "GPU",
    ProfilerState.kAll: "All",
}
_option = TracerOption.kDefault


def enable_profiler(state: ProfilerState) -> None:
    """Measure from now on; see `fluidx.profiler`. EnforceNotMet: kDisabled."""
    if state == ProfilerState.kDisabled:
        raise EnforceNotMet("enable_profiler: the state is ProfilerState.kDisabled")
    profiler.start_profiler(_STATES[ProfilerState(state)], _option.name[1:])


def set_tracer_option(option: TracerOption) -> None:
    """How finely is measured, of a profile that is being taken, too."""
    global _option
    _option = TracerOption(option)
    if tracing.active is not None:
        tracing.active.option = _option.name[1:]


def disable_profiler(sorted_key: EventSortingKey, profile_path: str) -> None:
    """Print the table and write the trace to a file."""
    key = EventSortingKey(sorted_key)
    named = None if key is EventSortingKey.kDefault else key.name[1:].lower()
    profiler.stop_profiler(named, profile_path)


def is_profiler_enabled() -> bool:
    """Whether a profile is being taken."""
    return tracing.active is not None


reset_profiler = profiler.reset_profiler


# ---------------------------------------------------------------- programs


def prune(
    program: ProgramDesc, feeds: Iterable[str], targets: Iterable[Sequence[int]]
) -> tuple[ProgramDesc, dict[int, int]]:
    """A copy with only some ops of block 0 and what they need, given what is fed.

    targets: [block, place of the op] pairs. Returns the copy, and {number of a block
    before: number of it now}. IndexError: there is no such op.
    """
    made = plain_of(program).clone()
    count = len(made.global_block().ops)
    places = set()
    for block, place in targets:
        if block != 0 or not 0 <= place < count:
            raise IndexError(f"prune: block 0 has {count} ops, not {[block, place]}")
        places.add(place)
    before = list(made.blocks)
    prune_to_ops(made, set(feeds), places)
    return ProgramDesc(made), _moved(before, made)


def prune_backward(program: ProgramDesc) -> tuple[ProgramDesc, dict[int, int]]:
    """A copy without backward and optimize ops; see `prune` for what it returns."""
    made = plain_of(program).clone()
    before = list(made.blocks)
    _prune_backward(made)
    return ProgramDesc(made), _moved(before, made)


def _moved(before: list[Any], program: Any) -> dict[int, int]:
    """Blocks that are still there keep their identity."""
    now = {id(block): number for number, block in enumerate(program.blocks)}
    return {
        number: now[id(block)]
        for number, block in enumerate(before)
        if id(block) in now
    }


class _VarNames(ModuleType):
    """``core.var_names``: names with a meaning of their own."""

    @staticmethod
    def empty() -> str:
        return EMPTY

    @staticmethod
    def temp() -> str:
        return "@TEMP@"


var_names = _VarNames("fluidx.core.var_names")


# ---------------------------------------------------------------- tensors


class _Capsule:
    """A DLPack capsule of the CPU's memory, as numpy wants to be given it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def from_dlpack(capsule: Any) -> LoDTensor:
    """A tensor over the memory of a DLPack capsule, or of what speaks DLPack.

    TypeError: anything else.
    """
    if type(capsule).__name__ == "PyCapsule":
        capsule = _Capsule(capsule)
    return _from_dlpack(capsule)


# ---------------------------------------------------------------- the machine


def avx_supported() -> bool:
    """Whether the processor has AVX (False where it does not say)."""
    if platform.system() == "Darwin":
        words = run_shell_command("sysctl -n machdep.cpu.features") or ""
        return "avx" in words.lower()
    info = Path("/proc/cpuinfo")
    return info.exists() and " avx " in info.read_text().replace("\n", " ")


def get_glibc_ver() -> str:
    """The version of the C library, such as "2.36"; "" where it is not glibc."""
    return platform.libc_ver()[1]


def less_than_ver(a: str, b: str) -> bool:
    """Whether version "1.9" is below version "1.10", as numbers."""

    def numbers(version: str) -> list[int]:
        found = [int(part) for part in version.split(".")]
        while found and not found[-1]:
            found.pop()
        return found

    return numbers(a) < numbers(b)


def run_shell_command(cmd: str) -> str | None:
    """What a command of the shell prints, stripped; None if it complains."""
    done = subprocess.run(cmd, shell=True, capture_output=True, check=False)
    return None if done.stderr else done.stdout.decode().strip()


def load_op_library(lib_filename: str) -> None:
    """See `fluidx.framework.load_op_library`: always refused."""
    from fluidx.framework import load_op_library as refuse

    refuse(lib_filename)


def init_gflags(flags: Sequence[str]) -> None:
    """Nothing more: as in the reference, flags are read when it is imported.

    `fluid.set_flags` sets them later.
    """


def init_glog(name: str) -> None:
    """Nothing: there is no glog."""


def init_devices(with_devices: bool = True) -> None:
    """Nothing: devices are looked for when they are needed."""
