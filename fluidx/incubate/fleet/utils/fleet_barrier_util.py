"""Waiting for all trainers through files (``fleet.utils.fleet_barrier_util``)."""

from __future__ import annotations

import os
import time
from pathlib import Path

from fluidx.contrib.utils import HDFSClient
from fluidx.distributed.config import RpcConfig
from fluidx.distributed.errors import WaitTimeout
from fluidx.incubate.fleet.parameter_server.distribute_transpiler import fleet

__all__ = ["check_all_trainers_ready"]

_PAUSE = 1.0


def check_all_trainers_ready(ready_path: str, epoch: int) -> None:
    """Wait until every trainer has said that it is ready for an epoch.

    Each puts a file into ``ready_path/epoch-N`` on HDFS: of the ``hadoop`` tool, with
    PADDLE_TRAINER_ID's number. $HADOOP_HOME, FS_NAME and FS_UGI say where. WaitTimeout
    names who did not come within FLAGS_rpc_deadline.
    """
    configs = {
        "fs.default.name": os.environ.get("FS_NAME", ""),
        "hadoop.job.ugi": os.environ.get("FS_UGI", ""),
    }
    client = HDFSClient(os.environ.get("HADOOP_HOME"), configs)
    folder = f"{ready_path.rstrip('/')}/epoch-{epoch}"
    own = Path(f"ready.{fleet.worker_index()}.done")
    own.touch()
    client.upload(folder, str(own), overwrite=True)
    own.unlink()
    deadline = RpcConfig.from_env().deadline
    until = time.monotonic() + deadline
    names = [f"ready.{i}.done" for i in range(fleet.worker_num())]
    while True:
        there = {path.rpartition("/")[2] for path in client.ls(folder)}
        missing = [n for n in names if n not in there]
        if not missing:
            return
        if time.monotonic() >= until:
            raise WaitTimeout(
                f"trainer {fleet.worker_index()} waited {deadline:g} s for "
                f"{', '.join(missing)} in {folder}"
            )
        time.sleep(_PAUSE)
