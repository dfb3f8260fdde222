"""A proof that the programs of all roles fit together, or what refutes it.

    verify({"trainer-0": {"main": ..., "startup": ...}, ..., "pserver-1": {...}})

Nothing is run. With servers: every gradient of a trained parameter is sent exactly
once by every trainer and taken by exactly the server that owns the block; blocks tile
every tensor; every parameter comes back whole, by the server that updates it; shapes,
dtypes and sections agree; barriers pair; nobody waits in a circle or for a message
that nobody sends. Without: all ranks make the same collectives in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fluidx.ir import Program

from .config import TranspileError
from .verify_model import Problem, Role, Side, read_roles
from .verify_ring import ring_problems
from .verify_server import server_problems
from .verify_trainer import trainer_problems
from .verify_waits import wait_problems

__all__ = ["Problem", "Side", "VerificationError", "Verified", "problems", "verify"]

Programs = Mapping[str, Mapping[str, Program]]


class VerificationError(TranspileError):
    """The programs do not fit together. ``problems`` holds everything found."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        more = f"\n({len(problems)} problems in all)" if len(problems) > 1 else ""
        super().__init__("\n".join(map(str, problems[:5])) + more)


@dataclass(frozen=True)
class Verified:
    """What was proved: the roles, and how many messages of a step were paired."""

    trainers: int
    servers: int
    messages: int

    def __str__(self) -> str:
        return (
            f"{self.trainers} trainers, {self.servers} servers, "
            f"{self.messages} messages per step"
        )


def problems(programs: Programs, complete: bool = True) -> list[Problem]:
    """Everything that is wrong with a set of programs; nothing: it is proved.

    complete: all trainers are in the set. All servers always must be.
    """
    return _found(read_roles(programs), complete)


def _found(roles: list[Role], complete: bool) -> list[Problem]:
    servers = [r for r in roles if r.listen is not None]
    trainers = [r for r in roles if r.listen is None]
    if not servers:
        return ring_problems(trainers, complete)
    found = server_problems(servers, trainers, complete)
    if not found:  # what follows takes the servers for sound
        for trainer in trainers:
            found += trainer_problems(trainer, servers)
        found += wait_problems(trainers, servers, complete)
    return found


def verify(programs: Programs, complete: bool = True) -> Verified:
    """Prove that these programs fit together; VerificationError says what does not.

    programs: role name -> {"main": Program, "startup": Program}, of all roles. A role
    is a server if its main program serves. complete=False: only some of the trainers
    are given, and the others are taken to be like them.
    """
    roles = read_roles(programs)
    found = _found(roles, complete)
    if found:
        raise VerificationError(found)
    servers = sum(r.listen is not None for r in roles)
    return Verified(len(roles) - servers, servers, sum(r.messages for r in roles))
