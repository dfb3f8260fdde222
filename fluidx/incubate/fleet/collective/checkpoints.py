"""Checkpoints of a collective fleet: parameters and how far the training is.

``path/__paddle_fleet_checkpoint__.N`` holds `_paddle_fleet_param__` (all persistable
variables, one file) and `fleet_train_status` (JSON): the reference's layout.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from fluidx import io
from fluidx.distributed.fs_wrapper import FS, LocalFS
from fluidx.ir import Program

__all__ = ["Checkpoints", "TrainStatus"]

_HERE = LocalFS()
_STATUS = "fleet_train_status"


class TrainStatus:
    """The epoch that was finished; -1: none yet."""

    def __init__(self, epoch_no: int = -1) -> None:
        self._epoch_no = epoch_no

    def next(self) -> int:
        """The epoch that comes."""
        return self._epoch_no + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainStatus) and self._epoch_no == other._epoch_no

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TrainStatus({self._epoch_no})"


class Checkpoints:
    """What `Collective` has of them."""

    _checkoint_prefix = "__paddle_fleet_checkpoint__"
    _param_file_name = "_paddle_fleet_param__"

    def _whole(self, program: Any) -> Program:
        raise NotImplementedError

    def _numbers(self, root_path: str, fs: FS) -> list[int]:
        """The checkpoints that are there, oldest first."""
        parts = [name.rpartition(".") for name in fs.list_dirs(root_path)]
        return sorted(
            int(number)
            for prefix, _, number in parts
            if prefix == self._checkoint_prefix and number.isdecimal()
        )

    def _get_last_checkpoint_no(self, root_path: str, fs: FS) -> int:
        """-1: there is none."""
        return max(self._numbers(root_path, fs), default=-1)

    def _folder(self, path: str, number: int) -> str:
        return f"{path.rstrip('/')}/{self._checkoint_prefix}.{number}"

    def save_check_point(
        self,
        executor: Any,
        path: str,
        train_status: TrainStatus,
        main_program: Any = None,
        fs: FS = _HERE,
        local_cache_path: str = ".cache",
        remain_all_checkpoint: bool = True,
    ) -> None:
        """Save all persistable variables and `train_status` as the next checkpoint.

        It appears under its name when it is complete. One worker should save.
        local_cache_path: where files are written that are uploaded then.
        remain_all_checkpoint: False keeps the new one alone.
        """
        fs.mkdir(path)
        final = self._folder(path, self._get_last_checkpoint_no(path, fs) + 1)
        far = fs.need_upload_download()
        made = f"{final}.tmp"
        local = f"{local_cache_path}/{Path(final).name}.saved_cache" if far else made
        if Path(local).is_dir():
            shutil.rmtree(local)
        Path(local).mkdir(parents=True)
        program = self._whole(main_program)
        io.save_persistables(executor, local, program, self._param_file_name)
        self._save_train_status(local, train_status)
        if far:
            fs.delete(made)
            fs.upload(local, made)
            shutil.rmtree(local)
        fs.mv(made, final)
        if not remain_all_checkpoint:
            self.clean_redundant_check_points(path, fs)

    def load_check_point(
        self,
        executor: Any,
        path: str,
        trainer_id: int,
        main_program: Any = None,
        fs: FS = _HERE,
        local_cache_path: str = ".cache",
        ignore_empty: bool = True,
    ) -> TrainStatus | None:
        """Load the last checkpoint; None where there is none (and `ignore_empty`).

        trainer_id: keeps downloads of workers on one machine apart. FileNotFoundError:
        there is none.
        """
        number = self._get_last_checkpoint_no(path, fs)
        if number < 0:
            if ignore_empty:
                return None
            raise FileNotFoundError(f"no checkpoint in {path}")
        folder = self._folder(path, number)
        local = folder
        if fs.need_upload_download():
            name = Path(folder).name
            local = f"{local_cache_path}/{name}.load_cache.{trainer_id}"
            if Path(local).is_dir():
                shutil.rmtree(local)
            Path(local).parent.mkdir(parents=True, exist_ok=True)
            fs.download(folder, local)
        program = self._whole(main_program)
        io.load_persistables(executor, local, program, self._param_file_name)
        status = self._load_train_status(local)
        if local != folder:
            shutil.rmtree(local)
        return status

    def clean_redundant_check_points(
        self, root_path: str, fs: FS = _HERE, checkpoint_num: int = 1
    ) -> None:
        """Remove all but the last `checkpoint_num` checkpoints (at least one)."""
        for number in self._numbers(root_path, fs)[: -max(1, checkpoint_num)]:
            fs.delete(self._folder(root_path, number))

    def _save_train_status(self, path: str, train_status: TrainStatus) -> None:
        text = json.dumps({"epoch_no": train_status._epoch_no})
        Path(path, _STATUS).write_text(text)

    def _load_train_status(self, path: str) -> TrainStatus:
        """That of a checkpoint; ValueError: the file is none of these."""
        file = Path(path, _STATUS)
        if not file.exists():
            return TrainStatus()
        found = json.loads(file.read_text())
        if not isinstance(found, dict) or not isinstance(found.get("epoch_no"), int):
            raise ValueError(f"{file} holds no train status: {found!r:.80}")
        return TrainStatus(found["epoch_no"])
