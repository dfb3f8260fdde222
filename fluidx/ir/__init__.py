"""Programs: what they are, how they are read, written, checked and edited."""

from . import names as unique_name
from .block import Block
from .editor import Editor, make_op
from .errors import BuildError, EnforceNotMet, FeedError, RunError, Where
from .names import name_scope
from .operator import Operator
from .program import (
    Program,
    default_main_program,
    default_startup_program,
    device_guard,
    program_guard,
    switch_main_program,
    switch_startup_program,
)
from .roles import OpRole
from .variable import Parameter, Variable

__all__ = [
    "Block",
    "BuildError",
    "Editor",
    "EnforceNotMet",
    "FeedError",
    "OpRole",
    "Operator",
    "Parameter",
    "Program",
    "RunError",
    "Variable",
    "Where",
    "default_main_program",
    "default_startup_program",
    "device_guard",
    "make_op",
    "name_scope",
    "program_guard",
    "switch_main_program",
    "switch_startup_program",
    "unique_name",
]
