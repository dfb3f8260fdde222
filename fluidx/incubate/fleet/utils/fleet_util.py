"""Numbers over all workers of a fleet (``fleet.utils.fleet_util``)."""

from __future__ import annotations

import logging
import re
from typing import Any

import numpy as np

from fluidx.executor import global_scope
from fluidx.incubate.fleet import collective
from fluidx.incubate.fleet.parameter_server import distribute_transpiler
from fluidx.tensor import CPUPlace

from .auc import area, bucket_error

__all__ = ["FleetUtil"]

_log = logging.getLogger("fluidx.fleet")
_MODES = ("pslib", "transpiler")
_NO_BUCKETS = "not found auc bucket"


class FleetUtil:
    """Metrics over all workers, and what only the first worker says.

    mode: "transpiler" or "pslib"; ValueError for others. Both work with the fleet that
    was initialised; what needs PSLib servers (saving and loading their models) raises
    AttributeError. scope, in all methods: by default the global one.
    """

    def __init__(self, mode: str = "pslib") -> None:
        if mode not in _MODES:
            raise ValueError(f"FleetUtil: mode must be one of {_MODES}, got {mode!r}")
        self.mode = mode
        self._fleet: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"FleetUtil has no {name!r} in fluidx: models of PSLib servers cannot be "
            "read or written; fleet.save_persistables and fleet.save_inference_model "
            "write those of servers here"
        )

    @property
    def _here(self) -> Any:
        if self._fleet is not None:
            return self._fleet
        fleets = [distribute_transpiler.fleet, collective.fleet]
        return next((f for f in fleets if f._is_initialized), fleets[0])

    # ------------------------------------------------ the first worker speaks

    def rank0_print(self, s: Any) -> None:
        """Print on the first worker."""
        if self._here.worker_index() == 0:
            print(s, flush=True)

    def rank0_info(self, s: Any) -> None:
        """Log on the first worker."""
        if self._here.worker_index() == 0:
            _log.info("%s", s)

    def rank0_error(self, s: Any) -> None:
        """Log an error on the first worker."""
        if self._here.worker_index() == 0:
            _log.error("%s", s)

    # ------------------------------------------------ metrics

    def set_zero(
        self,
        var_name: str,
        scope: Any = None,
        place: Any = None,
        param_type: str = "int64",
    ) -> None:
        """Set a variable (the counts of `auc`, say) to zeros of its shape.

        KeyError: there is none.
        """
        scope = global_scope() if scope is None else scope
        value = self._local(scope, var_name)
        if value is None:
            raise KeyError(f"set_zero: the scope has no {var_name!r}")
        zeros = np.zeros(value.shape, param_type)
        scope.var(var_name).get_tensor().set(zeros, place or CPUPlace())

    @staticmethod
    def _local(scope: Any, name: str) -> Any:
        found = scope.find_var(name)
        return None if found is None else np.array(found.get_tensor())

    def _sum(self, scope: Any, name: str) -> Any:
        """Of all workers, flat; None where this one has no such variable."""
        value = self._local(global_scope() if scope is None else scope, name)
        if value is None:
            return None
        total = np.zeros(value.size, value.dtype)
        self._here._role_maker._all_reduce(value.reshape(-1), total)
        return total

    def _counts(self, scope: Any, positive: str, negative: str) -> Any:
        found = [self._sum(scope, n) for n in (positive, negative)]
        if any(f is None for f in found):
            self.rank0_print(_NO_BUCKETS)
            return None
        return found

    def get_global_auc(
        self,
        scope: Any = None,
        stat_pos: str = "_generated_var_2",
        stat_neg: str = "_generated_var_3",
    ) -> float | None:
        """The AUC over the samples of all workers; None without such variables.

        stat_pos, stat_neg: the counts that ``layers.auc`` keeps. All workers call it.
        """
        counts = self._counts(scope, stat_pos, stat_neg)
        return None if counts is None else area(*counts)

    def print_global_auc(
        self,
        scope: Any = None,
        stat_pos: str = "_generated_var_2",
        stat_neg: str = "_generated_var_3",
        print_prefix: str = "",
    ) -> None:
        """Print it on the first worker."""
        value = self.get_global_auc(scope, stat_pos, stat_neg)
        self.rank0_print(f"{print_prefix} global auc = {value}")

    def get_global_metrics(
        self,
        scope: Any = None,
        stat_pos_name: str = "_generated_var_2",
        stat_neg_name: str = "_generated_var_3",
        sqrerr_name: str = "sqrerr",
        abserr_name: str = "abserr",
        prob_name: str = "prob",
        q_name: str = "q",
        pos_ins_num_name: str = "pos",
        total_ins_num_name: str = "total",
    ) -> list[Any]:
        """[AUC, bucket error, MAE, RMSE, actual CTR, predicted CTR, COPC, mean of q,
        samples] over all workers; nine Nones without the counts of `auc`.

        The other names: the sums that ``contrib.layers.ctr_metric_bundle`` keeps;
        KeyError: one is missing. All workers call it.
        """
        counts = self._counts(scope, stat_pos_name, stat_neg_name)
        if counts is None:
            return [None] * 9
        names = [sqrerr_name, abserr_name, prob_name, q_name, pos_ins_num_name]
        sums = {n: self._sum(scope, n) for n in [*names, total_ins_num_name]}
        absent = [n for n, v in sums.items() if v is None]
        if absent:
            raise KeyError(f"get_global_metrics: the scope has no {absent}")
        sqrerr, abserr, prob, q, clicks = (float(sums[n][0]) for n in names)
        total = float(sum(c.sum() for c in counts))
        if not total:
            return [0.5, 0.0, *[0.0] * 6, 0]
        actual, predicted = clicks / total, prob / total
        copc = actual / predicted if predicted else 0.0
        rmse = float(np.sqrt(sqrerr / total))
        head = [area(*counts), bucket_error(*counts), abserr / total, rmse]
        return [*head, actual, predicted, copc, q / total, int(total)]

    def print_global_metrics(
        self,
        scope: Any = None,
        stat_pos_name: str = "_generated_var_2",
        stat_neg_name: str = "_generated_var_3",
        sqrerr_name: str = "sqrerr",
        abserr_name: str = "abserr",
        prob_name: str = "prob",
        q_name: str = "q",
        pos_ins_num_name: str = "pos",
        total_ins_num_name: str = "total",
        print_prefix: str = "",
    ) -> None:
        """Print them on the first worker."""
        names = (sqrerr_name, abserr_name, prob_name, q_name)
        counted = (pos_ins_num_name, total_ins_num_name)
        found = self.get_global_metrics(
            scope, stat_pos_name, stat_neg_name, *names, *counted
        )
        if found[0] is None:
            return
        auc, error, mae, rmse, actual, predicted, copc, q, total = found
        self.rank0_print(
            f"{print_prefix} global AUC={auc:.6f} BUCKET_ERROR={error:.6f} "
            f"MAE={mae:.6f} RMSE={rmse:.6f} Actural_CTR={actual:.6f} "
            f"Predicted_CTR={predicted:.6f} COPC={copc:.6f} MEAN Q_VALUE={q:.6f} "
            f"Ins number={total}"
        )

    # ------------------------------------------------ passes of online training

    def get_online_pass_interval(
        self,
        days: str,
        hours: str,
        split_interval: int,
        split_per_pass: int,
        is_data_hourly_placed: bool,
    ) -> list[list[str]]:
        """Which pieces of a day's data are in which pass.

        days, hours: words, or ranges as a shell writes them. split_interval: minutes
        per piece. split_per_pass: pieces in a pass. is_data_hourly_placed: pieces are
        named by their hour.

        >>> FleetUtil().get_online_pass_interval("20190720", "{0..1}", 30, 1, False)
        [['0000'], ['0030'], ['0100'], ['0130']]
        """
        _words(days)
        wanted = {int(h) for h in _words(hours)}
        pieces = []
        for start in range(0, 24 * 60, int(split_interval)):
            hour, minute = divmod(start, 60)
            name = f"{hour:02d}" if is_data_hourly_placed else f"{hour:02d}{minute:02d}"
            pieces.append((hour, name))
        passes = []
        for at in range(0, len(pieces) - split_per_pass + 1, split_per_pass):
            part = pieces[at : at + split_per_pass]
            if all(hour in wanted for hour, _ in part):
                passes.append([name for _, name in part])
        return passes


def _words(text: str) -> list[str]:
    """Words; ``{a..b}`` is a range, with leading zeros kept."""
    found = []
    for word in text.split():
        between = re.fullmatch(r"\{(\d+)\.\.(\d+)\}", word)
        if between is None:
            found.append(word)
            continue
        width = len(between[1]) if between[1].startswith("0") else 0
        numbers = range(int(between[1]), int(between[2]) + 1)
        found += [f"{n:0{width}d}" for n in numbers]
    return found
