"""Tools of fleets: metrics over all workers, files on HDFS, waiting for others."""

from typing import Any

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"fleet.utils has no {name!r} in fluidx")
