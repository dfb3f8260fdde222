"""``fluid.communicator``: gradients merged, sent and received beside the training.

    config.sync_mode = False
    config.runtime_split_send_recv = True
    ...
    communicator = fluid.communicator.Communicator(program, DistributedMode.ASYNC)
    communicator.start()
    ... exe.run(program) ...
    communicator.stop()      # sends what still waits
    exe.close()              # does so, too

Without a started communicator `send` and `recv` talk to the servers themselves, once
per step. Geo-SGD needs none to be started: the transpiled program knows its servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fluidx.distributed import communicator as beside
from fluidx.ir import Program
from fluidx.transpiler import DistributedMode

__all__ = ["Communicator"]

_MODES = {
    DistributedMode.SYNC: "SYNC",
    DistributedMode.ASYNC: "ASYNC",
    DistributedMode.HALF_ASYNC: "HALF_ASYNC",
    DistributedMode.GEO: "GEO",
}


class Communicator:
    """Stands between a trainer's `send` and `recv` ops and its servers.

    program: the trainer's, as `DistributeTranspiler` made it; it is left as it is.
    mode: of `DistributedMode`. ASYNC: threads send and receive while training goes on.
    HALF_ASYNC: everything one batch sent is merged and exchanged at its end. GEO:
    differences are pushed every so many steps. SYNC: accepted; such a program
    exchanges by its barriers alone. kwargs: for GEO ``trainers``, ``push_nums`` and
    ``push_vars`` (`GeoSgdTranspiler.vars_info`), by default as the program was
    transpiled. envs: settings, see `fluidx.distributed.communicator.Settings`.

    ValueError: a mode or setting that does not exist, or does not fit the program.
    Mirrors ``fluid.communicator.Communicator``.
    """

    def __init__(
        self,
        program: Program,
        mode: int,
        kwargs: Mapping[str, Any] | None = None,
        envs: Mapping[str, Any] = {},
    ) -> None:
        if mode not in _MODES:
            raise ValueError(
                f"Communicator: mode must be one of {_MODES}, got {mode!r}"
            )
        self._settings = beside.Settings.of(envs)
        self._own = self._made(program, mode, dict(kwargs or {}))

    def _made(self, program: Program, mode: int, kwargs: dict[str, Any]) -> Any:
        ops = program.global_block().ops
        if mode != DistributedMode.SYNC and any(
            op.type == "send_barrier" and not op.attr("half_async") for op in ops
        ):
            raise ValueError(
                f"Communicator: mode {_MODES[mode]} for a program that was transpiled "
                "with sync_mode=True"
            )
        if mode == DistributedMode.GEO:
            return _geo(program, kwargs)
        if mode == DistributedMode.ASYNC:
            return beside.Background(self._settings)
        if mode == DistributedMode.HALF_ASYNC:
            return beside.Batches(self._settings)
        return beside.Straight()

    def start(self) -> None:
        """Stand in between from now on. Once running, it does nothing."""
        if not self.is_running():
            beside.start(self._own)
            self._own.begin()

    def stop(self) -> None:
        """Send what waits, end all threads, and stand aside.

        ClusterError: what was sent in the background has failed.
        """
        beside.stop(self._own)

    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return beside.is_running(self._own)


def _geo(program: Program, kwargs: dict[str, Any]) -> beside.GeoExchange:
    plan = program._parameters_on_pservers
    planned = plan is not None and plan.setting.geo
    variables: Any = kwargs.get("push_vars")
    if variables is None and not planned:
        raise ValueError(
            "Communicator: mode GEO needs a program of GeoSgdTranspiler, or kwargs "
            "with its vars_info as push_vars, trainers and push_nums"
        )
    if planned:
        made = beside.GeoExchange.of_plan(plan)
    else:
        made = beside.GeoExchange(beside.PushedVar.all_of(variables), 1, 100)
    made.trainers = int(kwargs.get("trainers", made.trainers))
    made.push_nums = int(kwargs.get("push_nums", made.push_nums))
    return made
