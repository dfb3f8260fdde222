"""``fluid.install_check``: does it work here?"""

from __future__ import annotations

import numpy as np

from fluidx import layers
from fluidx.executor import Executor
from fluidx.executor.cuda import device_count
from fluidx.ir import Program, program_guard, unique_name
from fluidx.optimizer import SGD
from fluidx.tensor import CPUPlace, CUDAPlace, Place, Scope, scope_guard

__all__ = ["run_check"]


def run_check() -> None:
    """Train one step on the CPU, and on a CUDA device if there is one.

    Whatever fails is raised. Mirrors ``fluid.install_check.run_check``.
    """
    _step(CPUPlace())
    print("fluidx works on the CPU.")
    if device_count():
        _step(CUDAPlace(0))
        print("fluidx works on CUDA device 0.")


def _step(place: Place) -> None:
    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard(), scope_guard(Scope()):
        x = layers.data("inp", [2, 2], append_batch_size=False)
        loss = layers.reduce_sum(layers.fc(x, 4))
        SGD(0.1).minimize(loss)
        exe = Executor(place)
        exe.run(startup)
        (value,) = exe.run(main, {"inp": np.ones((2, 2), "float32")}, [loss])
        if not np.isfinite(value).all():
            raise RuntimeError(f"a loss of {value} on {place}")
