"""Graphs in Graphviz's language (``fluid.graphviz``)."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

__all__ = ["Graph"]


def _attributes(values: dict[str, str]) -> str:
    return ", ".join(f"{k}={json.dumps(str(v))}" for k, v in values.items())


class Graph:
    """A directed graph with a title; attributes are Graphviz's."""

    def __init__(self, title: str, **attrs: str) -> None:
        self.title = title
        self.attrs = attrs
        self._lines: list[str] = []
        self._counts: Counter[str] = Counter()

    def node(self, label: str, prefix: str, description: str = "", **attrs: str) -> str:
        """Add a node; returns its identifier ``<prefix>_<n>``."""
        name = f"{prefix}_{self._counts[prefix]}"
        self._counts[prefix] += 1
        shown = {"label": label, "tooltip": description, "style": "filled", **attrs}
        self._lines.append(f"  {name} [{_attributes(shown)}]")
        return name

    def edge(self, source: str, target: str, **attrs: str) -> None:
        """Add an arrow between two nodes."""
        self._lines.append(f"  {source} -> {target} [{_attributes(attrs)}]")

    def code(self) -> str:
        """The text that ``dot`` reads."""
        head = [f"digraph {json.dumps(self.title)} {{"]
        head += [f"  {k}={json.dumps(str(v))}" for k, v in self.attrs.items()]
        return "\n".join([*head, *self._lines, "}"]) + "\n"

    def compile(self, dot_path: str) -> str:
        """Write the text, and draw it as a PDF beside it; returns the PDF's path.

        FileNotFoundError: the program ``dot`` is not installed.
        """
        Path(dot_path).write_text(self.code())
        if shutil.which("dot") is None:
            raise FileNotFoundError(
                f"{dot_path} is written; drawing it needs the program dot (Graphviz)"
            )
        drawn = str(Path(dot_path).with_suffix(".pdf"))
        subprocess.run(["dot", "-Tpdf", dot_path, "-o", drawn], check=True)
        return drawn
