"""A job's nodes as a cloud's environment tells (``paddle.distributed.cloud_utils``)."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

from .errors import ClusterError
from .utils import Cluster, Pod, get_cluster

__all__ = ["get_cloud_cluster", "get_trainers_num"]

_log = logging.getLogger("fluidx.distributed")


def get_trainers_num() -> int:
    """PADDLE_TRAINERS_NUM, by default 1."""
    return int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))


def get_cloud_cluster(
    args_node_ips: str, args_node_ip: str, args_port: int, selected_gpus: Sequence[Any]
) -> tuple[Cluster, Pod]:
    """The cluster and this node.

    PADDLE_TRAINERS: IPs of the nodes. POD_IP: this one's. Endpoints of the ranks:
    DISTRIBUTED_TRAINER_ENDPOINTS, or PADDLE_TRAINERS_IP_PORT_LIST, all nodes one after
    the other; else ports from PADDLE_PORT on. Arguments stand in for what is missing.
    """
    env = os.environ
    ips = _words(env.get("PADDLE_TRAINERS", args_node_ips))
    node = env.get("POD_IP", args_node_ip)
    if node not in ips:
        raise ClusterError(f"node_ip {node} is not in {ips}")
    if args_node_ip not in ("127.0.0.1", node):
        _log.warning("POD_IP says %s, node_ip %s does not count", node, args_node_ip)
    count = len(selected_gpus)
    given = env.get("DISTRIBUTED_TRAINER_ENDPOINTS") or env.get(
        "PADDLE_TRAINERS_IP_PORT_LIST", ""
    )
    if given:
        listed = _words(given)
        if len(listed) != len(ips) * count:
            raise ClusterError(
                f"{len(listed)} endpoints for {len(ips)} nodes of {count} ranks"
            )
        endpoints = [listed[i : i + count] for i in range(0, len(listed), count)]
    else:
        first = int(env.get("PADDLE_PORT", args_port))
        ports = range(first, first + count)
        endpoints = [[f"{ip}:{port}" for port in ports] for ip in ips]
    return get_cluster(ips, node, endpoints, selected_gpus)


def _words(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
