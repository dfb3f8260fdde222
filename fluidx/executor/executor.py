"""The Executor: runs programs on a place."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fluidx.flags import SWITCHES, read_environment
from fluidx.ir import Program, Variable, default_main_program
from fluidx.ir.errors import EnforceNotMet, RunError
from fluidx.kernels import SelectedRows
from fluidx.tensor import LoDTensor, Place, Scope, global_scope
from fluidx.tensor.places import CPUPlace

from . import hooks, staging  # noqa: F401  (staging plugs itself in)
from .compiler import CompiledProgram, warn_of_lone_training
from .context import Context
from .cuda import array_module, to_host
from .dataset_run import FetchHandler, run_dataset
from .feed import prepare, split_lod, without_unknown
from .fetched import as_fetched
from .memory import keep_freed_memory
from .plan import Plan
from .reads import Reads
from .steps import Notes, notes_of

__all__ = ["Executor"]


class Executor:
    """Runs programs on one place (``fluid.Executor``).

    A block is compiled once per (program version, feed names, fetch list) into a
    `Plan`; further runs cost a dictionary look-up and the kernels.

    >>> import numpy as np, fluidx as fluid
    >>> main = fluid.Program()
    >>> with fluid.program_guard(main, fluid.Program()):
    ...     x = fluid.data("x", [None, 2])
    ...     y = fluid.layers.scale(x, 2.0)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> exe.run(main, feed={"x": np.ones((1, 2), "float32")}, fetch_list=[y])
    [array([[2., 2.]], dtype=float32)]
    """

    def __init__(self, place: Place | None = None) -> None:
        self.place = CPUPlace() if place is None else place
        if not isinstance(self.place, Place):
            raise TypeError(f"Executor takes a place such as CPUPlace(), got {place!r}")
        self.xp = array_module(self.place)
        self.generators: weakref.WeakKeyDictionary[Program, dict[Any, Any]]
        self.generators = weakref.WeakKeyDictionary()
        self._plans: weakref.WeakKeyDictionary[Program, dict[Any, Any]]
        self._plans = weakref.WeakKeyDictionary()
        self._pruned: weakref.WeakKeyDictionary[Program, dict[Any, Program]]
        self._pruned = weakref.WeakKeyDictionary()
        self._noted: weakref.WeakKeyDictionary[Program, tuple[int, dict[int, Notes]]]
        self._noted = weakref.WeakKeyDictionary()
        self._reads = Reads(self.place)
        read_environment()
        keep_freed_memory()
        self._rpc: Any = None
        self._closed = False

    # ------------------------------------------------ running

    def run(
        self,
        program: Program | CompiledProgram | None = None,
        feed: Any = None,
        fetch_list: Sequence[Variable | str] | Variable | str | None = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        return_merged: bool = True,
        use_prune: bool = False,
    ) -> Any:
        """Run a program once; returns the fetched values, in order.

        program: by default the default main program. feed: name -> array, list or
        LoDTensor (a list with one such dict is taken too). fetch_list: variables or
        names. return_numpy: numpy arrays (copies that are yours), else LoDTensors.
        return_merged: False gives, for a CompiledProgram, lists with a value for each
        device, that is one. use_prune: run only the ops that the fetches need.

        FeedError: a fed name, rank, size or dtype does not fit. RunError: an op
        failed; it names the op, its inputs, and the line that built it. Mirrors
        ``fluid.Executor.run``; plans are always cached.
        """
        if self._closed:
            raise EnforceNotMet("this Executor was closed: make a new one")
        if scope is None:
            scope = global_scope()
        elif not isinstance(scope, Scope):
            raise TypeError(f"Executor.run takes a Scope as scope, got {scope!r:.60}")
        compiled = isinstance(program, CompiledProgram)
        program = self._plain_program(program, scope)
        feed = _plain_feed(feed)
        fetches = _fetch_names(program, fetch_list)
        if use_prune and fetches:
            program = self._prune(program, tuple(feed), fetches)
            feed = {k: v for k, v in feed.items() if k in program.global_block().vars}
        # what a CompiledProgram reads comes before all else, as in the reference
        at_end = None if compiled else partial(self.run, scope=scope)
        feed = self._reads.fed(program, feed, at_end)
        if not feed and not fetches:
            feed, fetches = {}, ()
        feed = without_unknown(program.global_block(), feed)
        feed = self._without_kept(program, feed, scope)
        lods = split_lod(feed)
        plan = self.plan_of(program, 0, tuple(feed), fetches, frozenset(lods or ()))
        values = prepare(program.global_block(), feed, self.xp)
        fetched = plan.run(Context(self, program, scope), values, lods)
        if not fetched:
            return []
        results = [
            _result(name, value, lod, return_numpy, own)
            for name, (value, lod), own in zip(fetches, fetched, plan.fresh)
        ]
        return results if return_merged or not compiled else [[r] for r in results]

    def _without_kept(
        self, program: Program, feed: Mapping[str, Any], scope: Scope
    ) -> Mapping[str, Any]:
        """The feed without what stays: that is set in the scope, for later runs too."""
        block = program.global_block()
        kept = {n: v for n, v in feed.items() if block.vars[n].persistable}
        if not kept:
            return feed
        lods = split_lod(kept) or {}
        for name, value in prepare(block, kept, self.xp).items():
            cell = scope.find_var(name)
            if cell is None:
                cell = scope.var(name)
            cell.value = value if isinstance(value, SelectedRows) else value.copy()
            cell.lod = lods.get(name)
        return {n: v for n, v in feed.items() if n not in kept}

    def train_from_dataset(
        self,
        program: Any = None,
        dataset: Any = None,
        scope: Scope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Sequence[Variable | str] | None = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: FetchHandler | None = None,
    ) -> None:
        """Run a program on every batch of a dataset, which is read ahead.

        dataset: from `fluid.DatasetFactory`, loaded if it is an InMemoryDataset.
        thread: how many processes parse its files (0: as the dataset says).
        fetch_list, fetch_info: what is printed every `print_period` batches, and under
        which titles. fetch_handler: see `FetchHandler`. debug: print the times.
        RuntimeError: no dataset. Mirrors ``fluid.Executor.train_from_dataset``.
        """
        run_dataset(
            self,
            program,
            dataset,
            scope,
            thread,
            debug,
            fetch_list,
            fetch_info,
            print_period,
            fetch_handler,
        )

    def infer_from_dataset(
        self,
        program: Any = None,
        dataset: Any = None,
        scope: Scope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Sequence[Variable | str] | None = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: FetchHandler | None = None,
    ) -> None:
        """As `train_from_dataset`; give it a program without backward ops."""
        run_dataset(
            self,
            program,
            dataset,
            scope,
            thread,
            debug,
            fetch_list,
            fetch_info,
            print_period,
            fetch_handler,
        )

    def plan_of(
        self,
        program: Program,
        index: int,
        feeds: tuple[str, ...],
        fetches: tuple[str, ...],
        with_lod: frozenset[str] = frozenset(),
    ) -> Plan:
        """The plan for a block, compiled at first use."""
        known = self._plans.get(program)
        if known is None or known["version"] != program._version:
            known = self._plans[program] = {"version": program._version}
        check = SWITCHES.check_nan_inf
        key = (index, feeds, fetches, with_lod, check)
        plan = known.get(key)
        if plan is None:
            notes = self._notes(program).get(index)
            plan = Plan(program, index, feeds, fetches, with_lod, self.xp, notes, check)
            known[key] = plan
        return plan

    def _notes(self, program: Program) -> dict[int, Notes]:
        """What gradient blocks need, by block; found once for a program."""
        known = self._noted.get(program)
        if known is None or known[0] != program._version:
            known = self._noted[program] = (program._version, notes_of(program))
        return known[1]

    def keeps(self, program: Program, index: int) -> bool:
        """Whether a gradient block looks at what a sub-block computes."""
        return any(b.forward_block_idx == index for b in program.blocks)

    def _prune(
        self, program: Program, feeds: tuple[str, ...], fetches: tuple[str, ...]
    ) -> Program:
        known = self._pruned.setdefault(program, {})
        key = (program._version, feeds, fetches)
        if key not in known:
            known[key] = program._prune_with_input(feeds, list(fetches))
        return known[key]

    # ------------------------------------------------ distribution

    def _plain_program(self, program: Any, scope: Scope) -> Program:
        if program is None:
            return default_main_program()
        if isinstance(program, CompiledProgram):
            return program._ready(self, scope)
        if not isinstance(program, Program):
            raise TypeError(
                f"Executor.run takes a Program or CompiledProgram, got "
                f"{program.__class__.__name__}"
            )
        if len(program._trainers_endpoints) > 1:
            warn_of_lone_training(program)
        return program

    def has_rings(self, number: int) -> bool:
        """Whether the rings 0 to number - 1 are open."""
        world = hooks.world(self.place) if hooks.world is not None else None
        return world is not None and all(world.has(i) for i in range(number))

    @property
    def rpc(self) -> Any:
        """The RPC client, made at first use."""
        if self._rpc is None:
            if hooks.rpc_factory is None:
                raise EnforceNotMet("send / recv need fluidx.distributed")
            self._rpc = hooks.rpc_factory()
        return self._rpc

    def close(self) -> None:
        """Tell the servers that this trainer is done; may be called again."""
        self._closed = True
        if self._rpc is not None:
            rpc, self._rpc = self._rpc, None
            rpc.close()

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _result(name: str, value: Any, lod: Any, return_numpy: bool, fresh: bool) -> Any:
    """A fetched value as the user gets it; never an array that a later run changes."""
    if value is None:
        raise RunError(f"fetch: variable {name!r} was never computed")
    if isinstance(value, (SelectedRows, list)):
        return value
    host = to_host(value)
    if host is value and not fresh:
        host = host.copy()
    if not return_numpy:
        return LoDTensor(host, lod or None)
    if lod:
        raise RunError(
            f"fetch: {name!r} holds LoD information and cannot become a plain "
            "array; run with return_numpy=False"
        )
    return as_fetched(host)


def _plain_feed(feed: Any) -> Mapping[str, Any]:
    if feed is None:
        return {}
    if isinstance(feed, (list, tuple)):
        # one dict per device in the reference; a CPU run has one device
        if len(feed) == 1 and isinstance(feed[0], Mapping):
            return feed[0]
        raise TypeError(
            f"feed: a list must hold one dict per device; there is 1, came {len(feed)}"
        )
    if not isinstance(feed, Mapping):
        raise TypeError(f"feed takes a dict name -> array, got {feed!r:.60}")
    return feed


def _fetch_names(program: Program, fetch_list: Any) -> tuple[str, ...]:
    if fetch_list is None:
        return ()
    if isinstance(fetch_list, (Variable, str)):
        fetch_list = [fetch_list]
    names = []
    for item in fetch_list:
        name = item if isinstance(item, str) else getattr(item, "name", None)
        if not isinstance(name, str):
            raise TypeError(f"fetch_list takes variables or names, got {item!r:.60}")
        ours = isinstance(item, Variable) and item.block.program is program
        if not ours and program.global_block()._find_var_recursive(name) is None:
            raise RunError(f"fetch: the program has no variable {name!r}")
        names.append(name)
    return tuple(names)
