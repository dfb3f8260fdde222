"""``paddle.utils``: plots of costs in the style of the tutorials."""

from . import plot
from .plot import Ploter

#: makes it a package; the finder needs no folder
__path__: list[str] = []

__all__ = ["Ploter", "plot"]
