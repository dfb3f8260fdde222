"""What a comparison of a distributed run with a local one found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Difference", "Equivalence"]


@dataclass(frozen=True)
class Difference:
    """Where the two runs part. step: from 0 on; -1: before the first. amount: how far.

    op: the local op that makes the variable. role, program, role_op: who makes it in
    the cluster. where: the user's line behind it.
    """

    variable: str
    step: int
    amount: float
    op: str = ""
    where: str = ""
    role: str = ""
    role_op: str = ""

    def __str__(self) -> str:
        when = f"in step {self.step}" if self.step >= 0 else "before the first step"
        lines = [f"{self.variable} differs by {self.amount:.3g} {when}"]
        if self.op:
            lines.append(f"  locally made by    {self.op}")
        if self.role_op:
            lines.append(f"  on {self.role:14}  {self.role_op}")
        if self.where:
            lines.append(f"  built at           {self.where}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Equivalence:
    """What `equivalent` found.

    same: nothing differs by more than the tolerance; where roles do not go in step:
    None. largest, variable, step: the largest difference from the local run (where
    roles do not go in step: at the end). first: where the runs part. runs, orders: how
    many were made, and how many different orders of events these had; every: that is
    all of them. spread: parameter -> how far the runs' last values lie apart.
    """

    same: bool | None
    largest: float
    variable: str
    step: int
    steps: int
    trainers: int
    servers: int
    first: Difference | None = None
    runs: int = 1
    orders: int = 1
    every: bool = False
    spread: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        who = f"{self.trainers} trainers"
        who += f", {self.servers} servers" if self.servers else ""
        head = f"{who}, {self.steps} steps: "
        most = f"{self.largest:.3g} ({self.variable})" if self.variable else "none"
        if self.same is None:
            orders = f"all {self.orders}" if self.every else f"{self.orders}"
            runs = "1 order" if self.orders == 1 else f"{orders} orders"
            name = max(self.spread, key=lambda n: self.spread[n], default="")
            apart = f"{self.spread[name]:.3g} ({name})" if name else "none"
            return (
                f"{head}roles do not go in step; {runs} of events run\n"
                f"  spread of the last values: {apart}\n"
                f"  largest distance from one process: {most}"
            )
        if self.same:
            return f"{head}equal to one process; largest difference {most}"
        told = f"\n{self.first}" if self.first else ""
        return f"{head}not what one process computes{told}\nlargest difference {most}"
