"""Inference models: a program cut down to its targets, and its parameters."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

from fluidx.executor import Executor
from fluidx.ir import Block, BuildError, OpRole, Program, Variable, unique_name
from fluidx.ir.prune import needed_ops, reads
from fluidx.kernels import VarType

from .errors import MissingFileError, ModelFileError
from .paths import open_write, read_bytes
from .remote import (
    local_program,
    pulled_tables,
    remote_tables,
    replace_endpoints,
)
from .values import is_persistable, valid_program
from .vars import load_values, save_values, selected

__all__ = [
    "append_fetch_ops",
    "feeds_and_fetches",
    "load_inference_model",
    "prepend_feed_ops",
    "read_program",
    "save_inference_model",
]

_MODEL = "__model__"
_LATER = 2_000_000  # from Paddle 2.0 on: 1,000,000 * major + 1,000 * minor + patch
_MAX_DEPTH, _MAX_WALKS = 100, 100_000
_TRAINING = OpRole.Backward | OpRole.Optimize


def save_inference_model(
    dirname: str,
    feeded_var_names: str | Sequence[str],
    target_vars: Variable | Sequence[Variable],
    executor: Executor,
    main_program: Program | None = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
    export_for_deployment: bool = True,
    program_only: bool = False,
) -> list[str]:
    """Save what computes `target_vars` from the fed variables, and its parameters.

    The program (by default the default main program) is cut down to what the targets
    need; training, sending and receiving go, tables that servers hold are fetched
    from them and saved whole. It stays as it is itself. ``dirname/__model__`` (or
    `model_filename`) gets the program, with feed and fetch ops; parameters get a file
    each, or all `params_filename`. export_for_deployment: False saves the whole
    program as ``__model__.main_program``. program_only: no parameters.

    Returns the names of the targets in the saved program (each goes through a `scale`
    op by 1, as in the reference). ValueError: a fed variable is not needed or does not
    exist. ModelFileError: a parameter has no value. Mirrors
    ``fluid.io.save_inference_model``.
    """
    feeds = _feed_names(feeded_var_names)
    targets = _targets(target_vars)
    source = valid_program(main_program)
    name = os.path.basename(model_filename) if model_filename else _MODEL
    program, fetches = _scaled(source, [v.name for v in targets])
    if export_for_deployment:
        program = _exported(program, feeds, fetches)
    else:
        name += ".main_program"
    with open_write(os.path.join(dirname, name)) as file:
        file.write(program.serialize_to_string())
    if program_only:
        warnings.warn(
            "save_inference_model: with program_only no parameters are saved",
            stacklevel=2,
        )
        return fetches
    found = selected("save_inference_model", program, None, is_persistable)
    remote = pulled_tables(source, [v.name for v in found], executor)
    params = os.path.basename(params_filename) if params_filename else None
    save_values(dirname, [v.name for v in found], params, remote)
    return fetches


def load_inference_model(
    dirname: str | None,
    executor: Executor,
    model_filename: Any = None,
    params_filename: Any = None,
    pserver_endpoints: Sequence[str] | None = None,
) -> list[Any]:
    """Load what `save_inference_model` of fluidx or of the reference saved.

    Returns [program, names to feed, variables to fetch]; parameters go to the global
    scope. With dirname None, model_filename and params_filename are the bytes
    themselves. pserver_endpoints: servers that look-ups of remote tables ask; such
    tables need no files here.

    MissingFileError, ModelFileError: no such folder or file; it is damaged, or does not
    fit the program. Mirrors ``fluid.io.load_inference_model``.
    """
    if dirname is None:
        if model_filename is None or params_filename is None:
            raise ValueError(
                "load_inference_model: without a dirname, model_filename and "
                "params_filename must be the bytes themselves"
            )
        program = parse_program(model_filename, "the given bytes")
    else:
        program = _program_in(dirname, model_filename)
        if params_filename is not None:
            params_filename = os.path.basename(params_filename)
    feeds, fetches = feeds_and_fetches(program)
    elsewhere: set[str] = set()
    if pserver_endpoints:
        replace_endpoints(program, list(pserver_endpoints))
        elsewhere = remote_tables(program)
    wanted = [
        v for v in program.list_vars() if is_persistable(v) and v.name not in elsewhere
    ]
    load_values(executor, dirname, wanted, params_filename, _fixed(program))
    return [program, feeds, fetches]


def _program_in(dirname: Any, filename: Any) -> Program:
    """The program of a folder; the complaint tells what is there instead."""
    folder = os.fspath(dirname)
    if not os.path.isdir(folder):
        if os.path.exists(folder):
            raise ModelFileError(
                f"{folder!r} is a file; a model is a directory with a file {_MODEL!r}"
            )
        raise MissingFileError(f"there is no directory {folder!r}")
    path = os.path.join(folder, os.path.basename(filename) if filename else _MODEL)
    if not os.path.exists(path):
        there = sorted(os.listdir(folder))
        shown = ", ".join(there[:8]) + (", ..." if len(there) > 8 else "")
        raise MissingFileError(
            f"there is no file {path!r}, which would hold the program; model_filename "
            f"names another. The directory holds: {shown or 'nothing'}"
        )
    return read_program(path)


def _fixed(program: Program) -> set[str]:
    """Variables that no op writes: their values have the shape that is declared."""
    written = {n for op in program.all_ops() for n in op.output_arg_names}
    return {v.name for v in program.list_vars() if v.shape and v.name not in written}


def read_program(path: str) -> Program:
    """The program of a ``__model__`` or ``.pdmodel`` file.

    MissingFileError, ModelFileError: there is none, or it is damaged.
    """
    return parse_program(read_bytes(path), repr(path))


def parse_program(data: Any, what: str) -> Program:
    """A program from bytes; ModelFileError calls them `what`."""
    if not isinstance(data, bytes):
        raise TypeError(f"a saved program is bytes, got {data.__class__.__name__}")
    try:
        program = Program.parse_from_string(data)
    except BuildError as error:
        raise ModelFileError(f"{what}: {error}") from None
    _check_nesting(program, what)
    version = program._desc_version or 0
    if version >= _LATER:
        warnings.warn(
            f"{what}: saved by Paddle {version // 1_000_000}.{version // 1000 % 1000}; "
            "ops may mean something else there than in 1.8, as which it is read",
            stacklevel=4,
        )
    return program


def prepend_feed_ops(
    inference_program: Program,
    feed_target_names: Sequence[str],
    feed_holder_name: str = "feed",
) -> None:
    """Put a `feed` op for each name in front. ValueError: a name is not there."""
    if not feed_target_names:
        return
    block = inference_program.global_block()
    holder = block.create_var(
        name=feed_holder_name, type=VarType.FEED_MINIBATCH, persistable=True
    )
    for column, name in enumerate(feed_target_names):
        if not block.has_var(name):
            raise ValueError(
                f"the targets do not need {name!r}, or there is no such variable: it "
                "cannot be fed"
            )
        block._prepend_op(
            type="feed",
            inputs={"X": [holder]},
            outputs={"Out": [block.var(name)]},
            attrs={"col": column},
        )


def append_fetch_ops(
    inference_program: Program,
    fetch_target_names: Sequence[str],
    fetch_holder_name: str = "fetch",
) -> None:
    """Put a `fetch` op for each name at the end."""
    block = inference_program.global_block()
    holder = block.create_var(
        name=fetch_holder_name, type=VarType.FETCH_LIST, persistable=True
    )
    for column, name in enumerate(fetch_target_names):
        block.append_op(
            type="fetch",
            inputs={"X": [block.var(name)]},
            outputs={"Out": [holder]},
            attrs={"col": column},
        )


# ---------------------------------------------------------------- saving


def _feed_names(given: Any) -> list[str]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, (list, tuple)) or not all(
        isinstance(n, str) for n in names
    ):
        raise ValueError(f"feeded_var_names must be a list of names, got {given!r:.60}")
    return list(names)


def _targets(given: Any) -> list[Variable]:
    found = [given] if isinstance(given, Variable) else given
    if not isinstance(found, (list, tuple)) or not found:
        raise ValueError(f"target_vars must be a list of Variables, got {given!r:.60}")
    for var in found:
        if not isinstance(var, Variable):
            raise ValueError(
                f"target_vars must be a list of Variables, it holds {var!r:.60}"
            )
    return list(found)


def _scaled(source: Program, targets: list[str]) -> tuple[Program, list[str]]:
    """A copy in which each target goes through a `scale` by 1, and their names."""
    made = source.clone()
    block = made.global_block()
    names = []
    for place, target in enumerate(targets):
        var = block.var(target)
        stem = f"save_infer_model/scale_{place}.tmp"
        name = unique_name.generate(stem)
        while block.has_var(name):  # a loaded model has some already
            name = unique_name.generate(stem)
        out = block.create_var(name=name, dtype=var.dtype)
        attrs = {"scale": 1.0, "bias": 0.0, "bias_after_scale": True}
        block.append_op("scale", {"X": [var]}, {"Out": [out]}, attrs)
        names.append(name)
    return made, names


def _exported(program: Program, feeds: list[str], fetches: list[str]) -> Program:
    """The program cut down, without training or servers, with feed and fetch ops."""
    block = program.global_block()
    block.ops = [op for op in block.ops if op.type not in ("feed", "fetch", "read")]
    local_program(program)
    _drop_training(program, set(feeds), set(fetches))
    _warn_of_computed(block, feeds)
    made = program._prune_with_input(feeds, fetches)
    for op in made.all_ops():
        if "is_test" in op.attrs:
            op.attrs["is_test"] = True
    prepend_feed_ops(made, feeds)
    append_fetch_ops(made, fetches)
    return made


def _warn_of_computed(block: Block, feeds: list[str]) -> None:
    """As in the reference, ops that make what is fed are left out."""
    for op in block.ops:
        for name in feeds:
            if name in op.output_arg_names:
                warnings.warn(
                    f"save_inference_model: {name!r} is fed and also computed by op "
                    f"{op.type}, which is left out of the model where nothing else "
                    "needs it; compute from a copy of what is fed",
                    stacklevel=4,
                )


def _drop_training(program: Program, feeds: set[str], fetches: set[str]) -> None:
    """Drop backward and optimizer ops, unless the targets are made of gradients."""
    block = program.global_block()
    every = block.ops
    kept = [op for op in every if not op.role & _TRAINING]
    block.ops = kept
    wanted = {n for op in needed_ops(block, feeds, fetches) for n in reads(op)}
    wanted |= fetches
    there = feeds.union(*(op.output_arg_names for op in kept))
    made_in_training = {n for op in every for n in op.output_arg_names} - there
    lacking = (wanted & made_in_training) - {
        n for n in wanted if block.has_var(n) and block.var(n).persistable
    }
    if lacking:
        block.ops = every


# ---------------------------------------------------------------- loading


def _check_nesting(program: Program, what: str) -> None:
    """Blocks within blocks must end, and not multiply beyond reason.

    Passes walk down from the ops of a block into the blocks that these refer to.
    """
    if program.num_blocks == 1:
        return
    inner = [
        [sub.idx for op in block.ops for sub in op.sub_blocks]
        for block in program.blocks
    ]
    walks: dict[int, int] = {}
    depth: dict[int, int] = {}
    path: set[int] = set()
    stack = list(range(program.num_blocks))
    while stack:
        index = stack[-1]
        left = [i for i in inner[index] if i not in walks]
        if index in walks or not left:
            stack.pop()
            path.discard(index)
            walks[index] = 1 + sum(walks[i] for i in inner[index])
            depth[index] = 1 + max((depth[i] for i in inner[index]), default=0)
            continue
        path.add(index)
        if not path.isdisjoint(left):
            raise ModelFileError(f"{what}: block {index} is within itself")
        stack += left
    if max(walks.values()) > _MAX_WALKS or max(depth.values()) > _MAX_DEPTH:
        raise ModelFileError(f"{what}: its blocks are nested beyond reason")


def feeds_and_fetches(program: Program) -> tuple[list[str], list[Variable]]:
    """What a saved program is fed, and what it gives, by its feed and fetch ops."""
    block = program.global_block()
    feeds: dict[int, str] = {}
    fetches: dict[int, str] = {}
    for op in block.ops:
        if op.type not in ("feed", "fetch"):
            continue
        names = op.output("Out") if op.type == "feed" else op.input("X")
        column = op.attrs.get("col", -1)
        into = feeds if op.type == "feed" else fetches
        if len(names) != 1 or not isinstance(column, int) or column in into:
            raise ModelFileError(f"the saved program has a damaged {op.type} op")
        if not block.has_var(names[0]):
            raise ModelFileError(
                f"the saved program has a {op.type} op of {names[0]!r}, which it does "
                "not declare"
            )
        into[column] = names[0]
    return (
        [feeds[c] for c in sorted(feeds)],
        [block.var(fetches[c]) for c in sorted(fetches)],
    )
