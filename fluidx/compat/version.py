"""``paddle.version``: the release whose scripts run here."""

from __future__ import annotations

from fluidx.framework import _VERSION as full_version

__all__ = ["full_version", "major", "minor", "mkl", "patch", "rc", "show"]

major, minor, patch = full_version.split(".")
rc = "0"
istaged = True
commit = "fluidx"
with_mkl = "OFF"


def show() -> None:
    """Print the release."""
    print("full_version:", full_version)
    for name, value in (("major", major), ("minor", minor), ("patch", patch)):
        print(f"{name}: {value}")


def mkl() -> str:
    return with_mkl
