"""What goes wrong with files."""

from __future__ import annotations

from fluidx.ir.errors import EnforceNotMet

__all__ = ["MissingFileError", "ModelFileError"]


class ModelFileError(EnforceNotMet, ValueError):
    """A file cannot be read or written: damaged, hostile, or not what was expected.

    The one error of everything in `fluidx.io` that a file's content can cause.
    """


class MissingFileError(ModelFileError, FileNotFoundError):
    """There is no such file or directory."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""
