"""The settings of communicators, from the environment or given."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Settings"]

_PREFIX = "communicator_"
# read elsewhere (`RpcConfig`), or told to other modes; a communicator takes no notice
_OTHERS = {"rpc_deadline", "rpc_retry_times", "pserver_endpoints", "trainer_id"}
_OTHERS |= {"geo_trainer_nums", "geo_need_push_nums", "need_global_step"}


@dataclass(frozen=True)
class Settings:
    """``FLAGS_communicator_*`` of the environment, or ``communicator_*`` of `envs`.

    max_merge_var_num: a variable's gradients become one message, at most so many.
    send_queue_size: so many gradients of a variable wait at most; then the trainer
        does, until one has left.
    independent_recv_thread: parameters are received by a thread of its own; else
        behind every send.
    min_send_grad_num_before_recv: that thread receives when so many gradients have
        been sent since it last did.
    send_wait_times: how often, 10 ms each, the sender waits for more to merge.
    is_sgd_optimizer: merging adds up, as if each had been applied on its own by SGD;
        off: it takes the mean. (What a `send` op marks with merge_add is added up.)
    thread_pool_size: accepted; one message per server carries all variables, so that
        one thread sends as fast as many.
    merge_sparse_grad: rows of a sparse gradient that occur more than once are added up
        before they travel.
    """

    max_merge_var_num: int = 20
    send_queue_size: int = 20
    independent_recv_thread: bool = True
    min_send_grad_num_before_recv: int = 20
    send_wait_times: int = 5
    is_sgd_optimizer: bool = True
    thread_pool_size: int = 5
    merge_sparse_grad: bool = True

    @classmethod
    def of(
        cls, given: Mapping[str, Any], env: Mapping[str, str] | None = None
    ) -> Settings:
        """What is given goes before the environment. ValueError names what is wrong."""
        env = os.environ if env is None else env
        known = cls.__dataclass_fields__
        for name in given:
            if name.removeprefix(_PREFIX) not in {*known, *_OTHERS, "fake_rpc"}:
                raise ValueError(f"Communicator has no setting {name!r}")
        values: dict[str, Any] = {}
        for name in known:
            raw = given.get(_PREFIX + name, env.get(f"FLAGS_{_PREFIX}{name}"))
            if raw is not None:
                values[name] = _value(name, raw, isinstance(getattr(cls, name), bool))
        fake = given.get(f"{_PREFIX}fake_rpc", env.get(f"FLAGS_{_PREFIX}fake_rpc"))
        if fake is not None and _value("fake_rpc", fake, True):
            raise ValueError("communicator_fake_rpc: there are no pretended messages")
        return cls(**values)


def _value(name: str, raw: Any, switch: bool) -> Any:
    text = str(raw).strip().lower()
    if switch and text in ("1", "true", "0", "false"):
        return text in ("1", "true")
    least = 0 if name == "send_wait_times" else 1
    if not switch and text.isdecimal() and int(text) >= least:
        return int(text)
    wanted = "0 or 1" if switch else f"a number from {least} on"
    raise ValueError(f"{_PREFIX}{name}={raw!r}: {wanted} is needed")
