"""Arrows of a profile: values that leave for, and come from, other roles."""

from __future__ import annotations

from fluidx.executor import tracing

from .wire import Kind, Message

__all__ = ["arrived", "left"]

_SILENT = (Kind.PING, Kind.HELLO, Kind.COMPLETE)


def left(message: Message, role: str) -> None:
    """This role has sent a message."""
    if tracing.active is not None:
        _note(tracing.active, message, True, role)


def arrived(message: Message, role: str) -> None:
    """A message has come to this role."""
    if tracing.active is not None:
        _note(tracing.active, message, False, role)


def _note(rec: tracing.Recorder, message: Message, starts: bool, role: str) -> None:
    """One arrow per variable; a trainer's messages are told apart by their number."""
    if message.kind in _SILENT or message.trainer < 0:
        return
    names = [name for name, _ in message.values] or [message.kind.name.lower()]
    way = "answer" if message.kind is Kind.VALUES else "question"
    for name in names:
        id = f"{way} {message.seq} of trainer {message.trainer}: {name}"
        rec.flow(id, starts, name, message.step, role)
