"""What can go wrong between the roles of a cluster."""

from __future__ import annotations

from fluidx.ir.errors import EnforceNotMet

__all__ = ["ClusterError", "PeerLost", "WaitTimeout", "WireError"]


class ClusterError(EnforceNotMet):
    """The cluster cannot go on; the message says which role failed and why."""


class PeerLost(ClusterError):
    """A role died or its connection broke."""


class WaitTimeout(ClusterError):
    """A bounded wait ended; the message says who waited for whom, and for what."""


class WireError(ClusterError):
    """Bytes that are no message of this protocol version."""
