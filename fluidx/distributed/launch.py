"""Starts the roles of a cluster as processes of this machine and looks after them.

Each role gets the reference's environment variables, a log file, and its output with
its name before every line. When one fails, the others get a moment to say so, then
are stopped; none outlives the launcher.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from .die_with_parent import die_with_parent
from .errors import ClusterError

__all__ = [
    "MEET",
    "Launcher",
    "Role",
    "bind_ports",
    "pserver_roles",
    "roles_on",
    "thread_limits",
]

#: "host:port" where workers meet outside of programs, for role makers
MEET = "FLUIDX_MEET"
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
TIMED_OUT = 124
_HELPERS_STAY = 3.0
_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")


@dataclass
class Role:
    """One process to be.

    env: variables to add. fds: descriptors to hand over; the launcher closes its own
    once the process has them. log: name of the log file. helper: the run is over when
    the others are done; it may end then, or is stopped.
    """

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    fds: Sequence[int] = ()
    log: str = ""
    helper: bool = False


def bind_ports(count: int, host: str = "127.0.0.1") -> list[socket.socket]:
    """Listening sockets on free ports: bound before anybody is told of them."""
    return [socket.create_server((host, 0), backlog=512) for _ in range(count)]


def thread_limits(roles: int, env: Mapping[str, str]) -> dict[str, str]:
    """Threads of numeric libraries per role, where the user has not set them."""
    share = str(max(1, (os.cpu_count() or 1) // max(1, roles)))
    return {name: share for name in _THREAD_VARIABLES if name not in env}


def pserver_roles(
    script: Sequence[str], workers: int, sockets: Sequence[socket.socket]
) -> list[Role]:
    """Servers and trainers with the variables that the reference's scripts read."""
    endpoints = ["{}:{}".format(*s.getsockname()[:2]) for s in sockets]
    return roles_on(script, workers, endpoints, [s.detach() for s in sockets])


def roles_on(
    script: Sequence[str],
    workers: int,
    endpoints: Sequence[str],
    fds: Sequence[int] = (),
) -> list[Role]:
    """The same on given endpoints; fds: sockets that are bound to them already."""
    servers = len(endpoints)
    common = {
        "PADDLE_TRAINERS_NUM": str(workers),
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(endpoints),
        "FLUIDX_UNIX_SOCKETS": os.environ.get("FLUIDX_UNIX_SOCKETS", "always"),
        "PYTHONUNBUFFERED": "1",
    }
    common.update(thread_limits(workers + servers, os.environ))
    command = [sys.executable, *script]
    roles = []
    for index, endpoint in enumerate(endpoints):
        host, port = endpoint.rsplit(":", 1)
        env = {
            **common,
            "TRAINING_ROLE": "PSERVER",
            "PADDLE_TRAINING_ROLE": "PSERVER",
            "PADDLE_PSERVER_ID": str(index),
            "POD_IP": host,
            "PADDLE_PORT": port,
            "PADDLE_CURRENT_ENDPOINT": endpoint,
        }
        own = fds[index : index + 1]
        if own:
            env["FLUIDX_LISTEN_FDS"] = f"{endpoint}={own[0]}"
        roles.append(Role(f"pserver-{index}", command, env, own))
    for index in range(workers):
        env = {
            **common,
            "TRAINING_ROLE": "TRAINER",
            "PADDLE_TRAINING_ROLE": "TRAINER",
            "PADDLE_TRAINER_ID": str(index),
            "POD_IP": "127.0.0.1",
        }
        roles.append(Role(f"trainer-{index}", command, env))
    _let_meet(roles, roles[servers:][:1])
    return roles


def _let_meet(roles: list[Role], first: Sequence[Role]) -> None:
    """A place to meet: bound here, listened on by the first trainer if it needs one;
    see `fluidx.distributed.meeting`."""
    for host in first:
        (board,) = bind_ports(1)
        place, fd = "{}:{}".format(*board.getsockname()[:2]), board.detach()
        for at, role in enumerate(roles):
            env = {**role.env, MEET: place}
            fds = role.fds
            if role is host:
                env["FLUIDX_LISTEN_FDS"], fds = f"{place}={fd}", (fd,)
            roles[at] = replace(role, env=env, fds=fds)


@dataclass
class _Child:
    role: Role
    process: subprocess.Popen[bytes]
    log: IO[bytes] | None
    rest: bytes = b""
    code: int | None = None


@dataclass
class Launcher:
    """Runs roles to their end; `run` gives the exit code of the whole.

    log_dir: where each role's output goes too. timeout: seconds for the whole run.
    grace: after one role failed, how long the others may take to end by themselves.
    kill_after: seconds between SIGTERM and SIGKILL. show: print output lines.
    """

    roles: Sequence[Role]
    log_dir: str | None = None
    timeout: float | None = None
    grace: float = 8.0
    kill_after: float = 5.0
    show: bool = True
    _children: list[_Child] = field(default_factory=list)
    _selector: Any = None
    _console: Any = None
    _stopped_by: int | None = None

    def run(self) -> int:
        """0 if all roles ended well, else the code of the first that did not.

        A role that signal S ended counts as 128 + S; 124: the time was up.
        """
        if self.log_dir is not None:
            Path(self.log_dir).mkdir(parents=True, exist_ok=True)
        self._selector = selectors.DefaultSelector()
        kept = {
            s: signal.signal(s, self._on_signal)
            for s in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            for role in self.roles:
                self._start(role)
            return self._watch()
        finally:
            self._stop_all()
            # those of roles that could not be started
            for role in self.roles[len(self._children) :]:
                _close(role.fds)
            for number, handler in kept.items():
                signal.signal(number, handler)
            self._selector.close()

    def _on_signal(self, number: int, frame: object) -> None:
        self._stopped_by = number

    def _start(self, role: Role) -> None:
        log = None
        if self.log_dir is not None:
            log = open(Path(self.log_dir) / (role.log or f"{role.name}.log"), "wb")  # noqa: SIM115
        try:
            process = subprocess.Popen(
                role.command,
                env={**os.environ, **role.env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=role.fds,
                # its own group: a Ctrl-C comes to the launcher alone, and a stop
                # reaches what the role has started itself
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
        except OSError as error:
            if log is not None:
                log.close()
            raise ClusterError(f"{role.name} cannot be started: {error}") from None
        _close(role.fds)
        child = _Child(role, process, log)
        self._children.append(child)
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self._selector.register(process.stdout, selectors.EVENT_READ, child)

    # looking after them

    def _watch(self) -> int:
        begun = time.monotonic()
        failed: float | None = None
        alone: float | None = None  # since when only helpers run
        result = 0
        while True:
            self._read(0.1)
            now = time.monotonic()
            for child in self._ended():
                late = child.role.helper and alone is not None
                if child.code and failed is None and not late:
                    failed, result = now, child.code
                    self._say(f"{child.role.name} failed: {_reason(child.code)}")
            living = [c for c in self._children if c.code is None]
            if not living:
                return result
            if alone is None and all(c.role.helper for c in living):
                alone = now
            if alone is not None and now - alone >= _HELPERS_STAY:
                return result
            if self._stopped_by is not None:
                self._say(f"stopped by {signal.Signals(self._stopped_by).name}")
                return result or 128 + self._stopped_by
            if self.timeout is not None and now - begun >= self.timeout:
                names = ", ".join(c.role.name for c in living)
                self._say(f"not done after {self.timeout:g} s: {names}")
                return result or TIMED_OUT
            if failed is not None and now - failed >= self.grace:
                return result

    def _ended(self) -> list[_Child]:
        """Children that ended since the last look, by now with an exit code."""
        found = []
        for child in self._children:
            if child.code is None and child.process.poll() is not None:
                code = child.process.returncode
                child.code = code if code >= 0 else 128 - code
                found.append(child)
        return found

    def _read(self, timeout: float) -> None:
        if not self._selector.get_map():
            time.sleep(timeout)
            return
        for key, _ in self._selector.select(timeout):
            self._take(key.data)

    def _take(self, child: _Child) -> None:
        """Output of a role: to its log as it is, to the terminal line by line."""
        assert child.process.stdout is not None
        with contextlib.suppress(BlockingIOError):
            data = os.read(child.process.stdout.fileno(), 1 << 16)
            if not data:
                self._selector.unregister(child.process.stdout)
                data, child.rest = child.rest, b""
                if data:
                    self._print(child, data)
                return
            if child.log is not None:
                child.log.write(data)
                child.log.flush()
            # a progress bar rewrites its line with \r: show each state
            *lines, child.rest = re.split(rb"[\r\n]+", child.rest + data)
            for line in lines:
                if line:
                    self._print(child, line)

    def _print(self, child: _Child, line: bytes) -> None:
        if not self.show:
            return
        text = line.decode(errors="replace")
        width = max(len(r.name) for r in self.roles)
        name = f"{child.role.name:<{width}}"
        if not sys.stdout.isatty():
            print(f"{name} | {text}", flush=True)
            return
        from rich.text import Text

        if self._console is None:
            from rich.console import Console

            self._console = Console()
        colour = _COLOURS[list(self.roles).index(child.role) % len(_COLOURS)]
        shown = Text.assemble((f"{name} | ", colour), Text.from_ansi(text))
        self._console.print(shown, soft_wrap=True)

    def _say(self, text: str) -> None:
        print(f"fluidx launch: {text}", file=sys.stderr, flush=True)

    def _stop_all(self) -> None:
        """SIGTERM, after a while SIGKILL; reads what they say until the end."""
        for number, wait in ((signal.SIGTERM, self.kill_after), (signal.SIGKILL, 10.0)):
            until = time.monotonic() + wait
            for child in self._children:
                self._signal(child, number)
            while time.monotonic() < until:
                self._ended()
                if all(c.code is not None for c in self._children):
                    break
                self._read(0.05)
        # what a role started and left behind goes too
        for child in self._children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.process.pid, signal.SIGKILL)
        while any(self._selector.select(0)):
            self._read(0)
        for child in self._children:
            assert child.process.stdout is not None
            child.process.stdout.close()
            if child.log is not None:
                child.log.close()

    @staticmethod
    def _signal(child: _Child, number: int) -> None:
        if child.code is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.process.pid, number)
                os.killpg(child.process.pid, signal.SIGCONT)  # where it was stopped


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)


def _reason(code: int) -> str:
    if code > 128:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(code - 128).name}"
    return f"exit code {code}"


_UTILS = (
    *("Cluster", "Hdfs", "JobServer", "Pod", "Trainer", "TrainerProc"),
    *("add_arguments", "find_free_ports", "get_cluster", "get_cluster_from_args"),
    *("get_host_name_ip", "get_logger", "logger", "start_local_trainers"),
    *("terminate_local_procs", "watch_local_trainers"),
)
_COLLECTIVE = {"get_gpus": "get_gpus", "launch": "launch", "_parse_args": "parse_args"}


def __getattr__(name: str) -> Any:
    """Names of ``paddle.distributed.launch``, the reference's launcher."""
    from importlib import import_module

    if name in _UTILS:
        return getattr(import_module("fluidx.distributed.utils"), name)
    if name in _COLLECTIVE:
        module = import_module("fluidx.distributed.launch_collective")
        return getattr(module, _COLLECTIVE[name])
    if name == "cloud_utils":
        return import_module("fluidx.distributed.cloud_utils")
    raise AttributeError(f"distributed.launch has no {name!r} in fluidx")


if __name__ == "__main__":  # the reference's launcher of this name
    from fluidx.distributed.launch_collective import main

    sys.exit(main())
