"""``paddle.utils.plot``: curves of what a training prints."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["PlotData", "Ploter"]


class PlotData:
    """The points of one curve."""

    def __init__(self) -> None:
        self.step: list[Any] = []
        self.value: list[Any] = []

    def append(self, step: Any, value: Any) -> None:
        self.step.append(step)
        self.value.append(value)

    def reset(self) -> None:
        self.step.clear()
        self.value.clear()


class Ploter:
    """Curves by title, drawn with Matplotlib into one picture.

    >>> import os
    >>> cost = Ploter("train cost", "test cost")
    >>> cost.append("train cost", 0, 3.5)

    The environment variable DISABLE_PLOT, set to True, keeps it from drawing.
    """

    def __init__(self, *args: str) -> None:
        self._titles = args
        self._curves = {title: PlotData() for title in args}

    def append(self, title: str, step: Any, value: Any) -> None:
        """Add a point. KeyError: a title that was not announced."""
        if title not in self._curves:
            raise KeyError(f"Ploter has {list(self._titles)}, no {title!r}")
        self._curves[title].append(step, value)

    def plot(self, path: str | None = None) -> None:
        """Draw all curves that have points: into a file, else on the screen.

        ImportError: Matplotlib is not installed.
        """
        if os.environ.get("DISABLE_PLOT") == "True":
            return
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ImportError(
                "Ploter.plot needs Matplotlib: pip install matplotlib (or set the "
                "environment variable DISABLE_PLOT=True to draw nothing)",
                name="matplotlib",
            ) from None
        titles = []
        for title, curve in self._curves.items():
            if curve.step:
                titles.append(title)
                pyplot.plot(curve.step, curve.value)
        pyplot.legend(titles, loc="upper left")
        if path is None:
            pyplot.show()
        else:
            pyplot.savefig(path)
        pyplot.gcf().clear()

    def reset(self) -> None:
        """Forget all points."""
        for curve in self._curves.values():
            curve.reset()
