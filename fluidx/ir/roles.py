"""Op roles: what an op is there for (``core.op_proto_and_checker_maker.OpRole``)."""

from __future__ import annotations

import enum

__all__ = ["OpRole", "ROLE", "ROLE_VAR", "NAMESCOPE", "CALLSTACK", "DEVICE", "COMMON"]

ROLE = "op_role"
ROLE_VAR = "op_role_var"
NAMESCOPE = "op_namescope"
CALLSTACK = "op_callstack"
DEVICE = "op_device"

#: attributes that every op has
COMMON = (ROLE, ROLE_VAR, NAMESCOPE, CALLSTACK, DEVICE)
COMMON_DEFAULTS = {ROLE: 0, ROLE_VAR: (), NAMESCOPE: "/", CALLSTACK: (), DEVICE: ""}


class OpRole(enum.IntFlag):
    """Bits that combine: the loss op is ``Forward | Loss`` = 256, its gradient 257."""

    Forward = 0
    Backward = 1
    Optimize = 2
    RPC = 4
    Dist = 8
    LRSched = 16
    Loss = 256
    NotSpecified = 4096

    @property
    def label(self) -> str:
        """A short word for people: ``forward``, ``backward``, ``optimize|lr``, ..."""
        words = [word for bit, word in _LABELS.items() if self & bit]
        rest = int(self) & ~sum(_LABELS)
        return "|".join(words + [str(rest)] * (rest != 0)) or "forward"

    @classmethod
    def from_label(cls, label: str) -> OpRole:
        """The role that has this label; ValueError names the words there are."""
        role = cls.Forward
        for word in label.split("|"):
            if word in _FROM_LABEL:
                role |= _FROM_LABEL[word]
            elif word.isdecimal():
                role |= cls(int(word))
            elif word != "forward":
                known = ", ".join(["forward", *_FROM_LABEL])
                raise ValueError(f"no role {word!r}; there are {known}")
        return role


_LABELS = {
    OpRole.Backward: "backward",
    OpRole.Optimize: "optimize",
    OpRole.RPC: "rpc",
    OpRole.Dist: "dist",
    OpRole.LRSched: "lr",
    OpRole.Loss: "loss",
    OpRole.NotSpecified: "unspecified",
}
_FROM_LABEL = {word: bit for bit, word in _LABELS.items()}
