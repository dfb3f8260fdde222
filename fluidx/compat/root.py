"""``paddle`` itself: modules below it are imported when they are asked for."""

from __future__ import annotations

from typing import Any

from .version import full_version as __version__

__all__ = ["__version__"]

__fluidx__ = True

#: makes it a package; the finder needs no folder
__path__: list[str] = []


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    from .finder import attribute

    return attribute("paddle", name)
