"""Graphs in Graphviz's language (``fluid.graphviz``)."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

__all__ = ["Edge", "Graph", "GraphPreviewGenerator", "Node", "Rank", "crepr"]


def crepr(v: Any) -> str:
    """A value as Graphviz reads it: text in quotes, the rest as it is.

    >>> crepr("box"), crepr(3)
    ('"box"', '3')
    """
    return json.dumps(v) if isinstance(v, str) else str(v)


def _attributes(values: dict[str, Any]) -> str:
    return ", ".join(f"{k}={json.dumps(str(v))}" for k, v in values.items())


class Node(str):
    """A node's identifier; `attrs` is how it is drawn."""

    attrs: dict[str, str]
    label: str

    def __new__(cls, name: str, label: str, attrs: dict[str, str]) -> Node:
        made = super().__new__(cls, name)
        made.label, made.attrs = label, attrs
        return made

    @property
    def name(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return str.__str__(self)


class Edge:
    """An arrow between two nodes."""

    def __init__(self, source: str, target: str, **attrs: str) -> None:
        self.source, self.target, self.attrs = source, target, attrs

    def __str__(self) -> str:
        return f"{self.source!s} -> {self.target!s} [{_attributes(self.attrs)}]"


class Rank:
    """Nodes that stand side by side; kind: "same", "min", "max", ..."""

    def __init__(self, kind: str, name: str, priority: int) -> None:
        if kind not in ("same", "min", "max", "source", "sink"):
            raise ValueError(f"graphviz: no rank {kind!r}")
        self.kind, self.name, self.priority = kind, name, priority
        self.nodes: list[str] = []

    def __str__(self) -> str:
        return f"{{rank={self.kind}; {'; '.join(self.nodes)}}}" if self.nodes else ""


class Graph:
    """A directed graph with a title; attributes are Graphviz's."""

    def __init__(self, title: str, **attrs: str) -> None:
        self.title = title
        self.attrs = attrs
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.rank_groups: dict[str, Rank] = {}
        self._lines: list[Node | Edge] = []
        self._counts: Counter[str] = Counter()

    def node(
        self, label: str, prefix: str, description: str = "", **attrs: str
    ) -> Node:
        """Add a node; returns its identifier ``<prefix>_<n>``."""
        name = f"{prefix}_{self._counts[prefix]}"
        self._counts[prefix] += 1
        rank = self.rank_groups.get(attrs.pop("rank", ""))
        shown = {"label": label, "tooltip": description, "style": "filled", **attrs}
        made = Node(name, label, shown)
        self.nodes.append(made)
        self._lines.append(made)
        if rank is not None:
            rank.nodes.append(name)
        return made

    def edge(self, source: str, target: str, **attrs: str) -> Edge:
        """Add an arrow between two nodes."""
        made = Edge(source, target, **attrs)
        self.edges.append(made)
        self._lines.append(made)
        return made

    def rank_group(self, kind: str, priority: int) -> str:
        """A group for nodes that stand side by side: give its name as their rank."""
        name = f"rankgroup-{len(self.rank_groups)}"
        self.rank_groups[name] = Rank(kind, name, priority)
        return name

    def code(self) -> str:
        """The text that ``dot`` reads."""
        lines = [f"digraph {json.dumps(self.title)} {{"]
        lines += [f"  {k}={json.dumps(str(v))}" for k, v in self.attrs.items()]
        for line in self._lines:
            is_node = isinstance(line, Node)
            lines.append(
                f"  {line} [{_attributes(line.attrs)}]" if is_node else f"  {line}"
            )
        ranks = sorted(self.rank_groups.values(), key=lambda r: r.priority)
        lines += [f"  {rank}" for rank in ranks if rank.nodes]
        return "\n".join([*lines, "}"]) + "\n"

    __str__ = code

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

    def show(self, dot_path: str) -> str:
        """The same: the PDF is for the program that shows PDFs."""
        return self.compile(dot_path)


class GraphPreviewGenerator:
    """A data flow graph: parameters, ops, and what goes between them."""

    def __init__(self, title: str) -> None:
        self.graph = Graph(title, layout="dot", concentrate="true", rankdir="TB")

    def __call__(self, path: str = "temp.dot", show: bool = False) -> str:
        """Write and draw it; returns the PDF's path."""
        return self.graph.compile(path)

    def add_param(self, name: str, data_type: str, highlight: bool = False) -> Node:
        colour = "orange" if highlight else "lightyellow"
        return self.graph.node(
            f"{name}\n{data_type}", "param", name, shape="ellipse", fillcolor=colour
        )

    def add_op(self, opType: str, **kwargs: str) -> Node:
        drawn = {"shape": "box", "fillcolor": "lightblue", **kwargs}
        return self.graph.node(opType, "op", opType, **drawn)

    def add_arg(self, name: str, highlight: bool = False) -> Node:
        colour = "orange" if highlight else "white"
        return self.graph.node(name, "arg", name, shape="ellipse", fillcolor=colour)

    def add_edge(self, source: str, target: str, **kwargs: Any) -> Edge:
        highlight = kwargs.pop("highlight", False)
        return self.graph.edge(
            source, target, **({"color": "orange"} if highlight else {}), **kwargs
        )
