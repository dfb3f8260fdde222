"""A job's nodes and ranks, and its processes here (``paddle.distributed.utils``).

What `launch` of the reference is made of, for scripts that start jobs themselves.
`fluidx launch` and `Launcher` look after processes better.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .collective.environment import trainer_variables
from .errors import ClusterError

__all__ = [
    "Cluster",
    "Hdfs",
    "JobServer",
    "Pod",
    "Trainer",
    "TrainerProc",
    "add_arguments",
    "find_free_ports",
    "get_cluster",
    "get_cluster_from_args",
    "get_host_name_ip",
    "get_logger",
    "start_local_trainers",
    "terminate_local_procs",
    "watch_local_trainers",
]

logger = logging.getLogger("root")
_PATIENCE = 10.0


@dataclass
class Hdfs:
    """Where a job's files are."""

    hdfs_ugi: str | None = None
    hdfs_name: str | None = None
    hdfs_path: str | None = None

    def is_valid(self) -> bool:
        """Whether all is told."""
        return None not in (self.hdfs_ugi, self.hdfs_name, self.hdfs_path)


@dataclass
class JobServer:
    """A server that tells jobs about their nodes."""

    endpoint: str | None = None


@dataclass
class Trainer:
    """One rank."""

    gpus: list[Any] = field(default_factory=list)
    endpoint: str | None = None
    rank: int | None = None


@dataclass
class Pod:
    """One node and its ranks."""

    rank: int | None = None
    id: Any = None
    addr: str | None = None
    port: int | None = None
    trainers: list[Trainer] = field(default_factory=list)
    gpus: list[Any] = field(default_factory=list)

    def get_visible_gpus(self) -> str:
        """Its devices, by commas; ClusterError: none."""
        if not self.gpus:
            raise ClusterError(f"{self} can't see any gpus")
        return ",".join(map(str, self.gpus))


@dataclass
class Cluster:
    """All nodes of a job."""

    hdfs: Hdfs | None = None
    job_server: JobServer | None = None
    pods: list[Pod] = field(default_factory=list)
    job_stage_flag: Any = None

    def update_pods(self, cluster: Cluster) -> None:
        """Take over another cluster's nodes."""
        self.pods = list(cluster.pods)

    def trainers_nranks(self) -> int:
        return len(self.trainers_endpoints())

    def pods_nranks(self) -> int:
        return len(self.pods)

    def trainers_endpoints(self) -> list[Any]:
        """Of all ranks, in order."""
        return [t.endpoint for pod in self.pods for t in pod.trainers]

    def pods_endpoints(self) -> list[str]:
        """Of all nodes; ClusterError: one has no address or port."""
        for pod in self.pods:
            if pod.addr is None or pod.port is None:
                raise ClusterError(f"{pod.addr}:{pod.port} not a valid endpoint")
        return [f"{pod.addr}:{pod.port}" for pod in self.pods]

    def get_pod_by_id(self, pod_id: Any) -> Pod | None:
        """The node with this id, by default its number; None: there is none."""
        for at, pod in enumerate(self.pods):
            if pod_id == (at if pod.id is None else pod.id):
                return pod
        return None


@dataclass
class TrainerProc:
    """A process of a rank."""

    proc: Any = None
    log_fn: Any = None
    rank: int | None = None
    cmd: Any = None


def get_cluster(
    node_ips: Sequence[str],
    node_ip: str,
    trainer_endpoints: Sequence[Sequence[str]],
    selected_gpus: Sequence[Any],
) -> tuple[Cluster, Pod]:
    """The cluster, and the node of it that is `node_ip`.

    trainer_endpoints: per node, of its ranks; there is one per selected device.
    """
    cluster, rank = Cluster(), 0
    for number, (ip, endpoints) in enumerate(zip(node_ips, trainer_endpoints)):
        pod = Pod(rank=number, addr=ip)
        for device, endpoint in zip(selected_gpus, endpoints):
            pod.trainers.append(Trainer([device], endpoint, rank))
            rank += 1
        cluster.pods.append(pod)
    if node_ip not in node_ips:
        raise ClusterError(f"node_ip {node_ip} is not in {list(node_ips)}")
    return cluster, cluster.pods[list(node_ips).index(node_ip)]


def get_cluster_from_args(
    args: argparse.Namespace, selected_gpus: Sequence[Any]
) -> tuple[Cluster, Pod]:
    """As the launcher's flags say: cluster_node_ips, node_ip, started_port."""
    ips = [ip.strip() for ip in args.cluster_node_ips.split(",") if ip.strip()]
    first = getattr(args, "started_port", None)
    if first is None and len(ips) == 1:
        ports = sorted(find_free_ports(len(selected_gpus)))
    else:
        first = 6170 if first is None else first
        ports = list(range(first, first + len(selected_gpus)))
    endpoints = [[f"{ip}:{port}" for port in ports] for ip in ips]
    return get_cluster(ips, args.node_ip, endpoints, selected_gpus)


def get_host_name_ip() -> tuple[str, str] | None:
    """(name, address) of this machine; None: it has no address."""
    try:
        name = socket.gethostname()
        return name, socket.gethostbyname(name)
    except OSError:
        return None


def add_arguments(
    argname: str, type: Any, default: Any, help: str, argparser: Any, **kwargs: Any
) -> None:
    """Add ``--argname``; a bool takes words such as "true" and "no"."""
    if type is bool:
        type = _flag
    text = f"{help} Default: %(default)s."
    argparser.add_argument(
        f"--{argname}", default=default, type=type, help=text, **kwargs
    )


def _flag(text: str) -> bool:
    return text.strip().lower() not in ("0", "false", "no", "n", "f", "off", "")


def find_free_ports(num: int) -> set[int]:
    """Ports that nobody listens on; another process may take one any time."""
    sockets = [socket.create_server(("", 0)) for _ in range(num)]
    found = {int(s.getsockname()[1]) for s in sockets}
    for one in sockets:
        one.close()
    return found


def get_logger(log_level: int | str, name: str = "root") -> logging.Logger:
    """A logger that writes to stderr."""
    made = logging.getLogger(name)
    made.setLevel(log_level)
    if not made.handlers:
        handler = logging.StreamHandler()
        form = "%(levelname)s %(asctime)s %(filename)s:%(lineno)d] %(message)s"
        handler.setFormatter(logging.Formatter(form))
        made.addHandler(handler)
    return made


def start_local_trainers(
    cluster: Cluster,
    pod: Pod,
    training_script: str,
    training_script_args: Sequence[str],
    log_dir: str | None = None,
) -> list[TrainerProc]:
    """Start this node's ranks. log_dir: their output goes to ``workerlog.N`` there."""
    endpoints = cluster.trainers_endpoints()
    procs = []
    for at, trainer in enumerate(pod.trainers):
        assert trainer.rank is not None
        env = {**os.environ, **trainer_variables(trainer.rank, endpoints)}
        env["FLAGS_selected_gpus"] = ",".join(map(str, trainer.gpus))
        command = [sys.executable, "-u", training_script, *training_script_args]
        log = None
        if log_dir is not None:
            Path(log_dir).mkdir(parents=True, exist_ok=True)
            log = open(Path(log_dir, f"workerlog.{at}"), "w")  # noqa: SIM115
        proc = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        procs.append(TrainerProc(proc, log, trainer.rank, command))
    return procs


def terminate_local_procs(procs: Sequence[TrainerProc]) -> None:
    """End what still runs, by force after some seconds."""
    for one in procs:
        if one.proc.poll() is None:
            one.proc.terminate()
    until = time.monotonic() + _PATIENCE
    for one in procs:
        try:
            one.proc.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            one.proc.kill()
            one.proc.wait()
        if one.log_fn is not None:
            one.log_fn.close()


def watch_local_trainers(procs: Sequence[TrainerProc], nranks: int) -> bool:
    """Whether some still run. ClusterError: one failed; the others are ended then."""
    codes = [one.proc.poll() for one in procs]
    failed = [(one.rank, code) for one, code in zip(procs, codes) if code]
    if failed:
        terminate_local_procs(procs)
        rank, code = failed[0]
        raise ClusterError(f"rank {rank} of {nranks} failed: exit code {code}")
    alive = None in codes
    if not alive:
        terminate_local_procs(procs)
    return alive
