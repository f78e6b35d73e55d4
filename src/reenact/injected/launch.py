"""Starts a command with the injection in its environment, and waits for it as a shell does."""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from io import FileIO
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile, gettempdir
from threading import Event, Thread
from types import FrameType
from typing import Final, Literal

import msgspec

from reenact.errors import UsageError
from reenact.formats.capture import RunStartData
from reenact.formats.record import ABSENT
from reenact.gateway.upstreams import variables
from reenact.injected.fence import Fence
from reenact.injected.handover import (
    BEFORE_VARIABLE,
    HANDOVER_VARIABLE,
    SEED_VARIABLE,
    SITE,
    Handover,
    ToFork,
    ToRecord,
    ToReplay,
    ToUpdate,
    hash_seed,
)
from reenact.injected.output import Printed, forward_output
from reenact.replayer.egress import Connect, OutsideLook
from reenact.run import MODE_VARIABLE
from reenact.run.zone import VARIABLE as ZONE_VARIABLE
from reenact.run.zone import variable_of_run
from reenact.workspace.replaying import WorkspaceFolder

_LOOK_S: Final = 0.5
_LOOK_OUTSIDE_S: Final = 0.1
"""A connection to a model lives longer."""
_FOLDER: Final = "reenact-handover-"
_OWNER: Final = "owner"
_STDIN: Final = 0
_HASH_SEED: Final = "PYTHONHASHSEED"
_INPUT_BYTES: Final = 1 << 16
_PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def handover_folder() -> Iterator[Handover]:
    """Create the handover folder for the block, and remove folders that killed commands left."""
    for left in Path(gettempdir()).glob(f"{_FOLDER}*"):
        _remove_unowned(left)
    with TemporaryDirectory(prefix=_FOLDER) as folder:
        # The lock is held as long as this process lives, even if it is killed.
        owner = os.open(Path(folder) / _OWNER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(owner, fcntl.LOCK_EX)
            yield Handover(Path(folder))
        finally:
            os.close(owner)


def _remove_unowned(folder: Path) -> None:
    with suppress(OSError):  # it belongs to another user, or is just being created or removed
        owner = os.open(folder / _OWNER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(owner)


def with_injection(
    base: Mapping[str, str], handover: Handover, mode: Literal["capture", "replay"], salt: bytes
) -> dict[str, str]:
    """Return *base* with the variables that make every Python process below follow the orders.

    String hashing and unseeded generators get a seed derived from *salt*, the same in every run of a capture:
    libraries use them where nothing is recorded.
    """
    paths = [str(SITE), *filter(None, [base.get("PYTHONPATH")])]
    seed = hmac.digest(salt, b"chance", "sha256")
    order = {} if _HASH_SEED in base else {_HASH_SEED: hash_seed(seed)}
    return {
        **base,
        **order,
        SEED_VARIABLE: seed.hex(),
        "PYTHONPATH": os.pathsep.join(paths),
        HANDOVER_VARIABLE: str(handover.folder),
        MODE_VARIABLE: mode,
    }


def route_through_gateway(
    base: Mapping[str, str], address: str, began: RunStartData | None = None
) -> dict[str, str]:
    """Return *base* with variables that lead programs to the gateway at *address*, and with the old ones.

    If *began* is of a recorded run, programs also live in its time zone.
    """
    changes = variables(address, base)
    before = json.dumps({name: base.get(name) for name in changes})
    zone = variable_of_run(began) if began is not None else None
    if zone is not None:
        changes[ZONE_VARIABLE] = zone  # it stays so in Python programs, too
    return {**base, **changes, BEFORE_VARIABLE: before}


def substitute_address(command: Sequence[str], address: str, workspace: str | None = None) -> list[str]:
    """Replace ``{gateway}`` and ``{workspace}`` in the arguments of *command*."""
    words = [word.replace("{gateway}", address) for word in command]
    return words if workspace is None else [word.replace("{workspace}", workspace) for word in words]


def run_recorded(
    words: Sequence[str],
    orders: ToRecord,
    handover: Handover,
    *,
    stdout: int = 1,
    is_of_no_use: Callable[[], bool] = lambda: False,
    fence: Fence | None = None,
) -> tuple[int, Printed]:
    """Run the command *words* and record it under *orders*; returns its exit status and what it printed.

    The other arguments are as in :func:`run`.
    """
    salt, files = orders.identity.salt, orders.workspace
    environ = route_through_gateway(os.environ, orders.gateway)
    handover.write_orders(orders)
    printed = Printed(salt, (files.root, files.given) if files is not None else ())
    status = run(
        substitute_address(words, orders.gateway, files.root if files is not None else None),
        with_injection(environ, handover, "capture", salt),
        stdout=stdout,
        printed=printed,
        is_of_no_use=is_of_no_use,
        on_connection=handover.note_connection,
        fence=fence,
    )
    return status, printed


def run_again(
    words: Sequence[str],
    orders: ToReplay | ToUpdate | ToFork,
    handover: Handover,
    run_start: RunStartData,
    salt: bytes,
    *,
    files: WorkspaceFolder | None,
    stdout: int,
    is_of_no_use: Callable[[], bool] = lambda: False,
    fence: Fence | None = None,
    keep_input: Path | None = None,
) -> tuple[int, Printed]:
    """Run the recorded command *words* again under *orders*; returns its exit status and what it printed.

    It runs in the folder of the recorded *files*, if there is one. The Python processes below it are injected
    unless *run_start* says that none was recorded. The other arguments are as in :func:`run`.
    """
    environ = route_through_gateway(os.environ, orders.gateway, run_start)
    if files is not None:
        orders = msgspec.structs.replace(orders, files=str(files.root), repository=str(files.repository))
    handover.write_orders(orders)
    if run_start.python is not ABSENT or run_start.upstreams is ABSENT:
        mode: Literal["capture", "replay"] = "capture" if isinstance(orders, ToUpdate) else "replay"
        environ = with_injection(environ, handover, mode, salt)
    printed = Printed(salt, [str(files.root)] if files is not None else ())
    status = run(
        substitute_address(words if files is None else files.locate(words), orders.gateway),
        environ,
        stdout=stdout,
        printed=printed,
        is_of_no_use=is_of_no_use,
        fence=fence,
        keep_input=keep_input,
        cwd=files.cwd if files is not None else None,
    )
    return status, printed


def run(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    stdout: int = 1,
    printed: Printed | None = None,
    is_of_no_use: Callable[[], bool] = lambda: False,
    on_connection: Callable[[int, str, Connect], None] | None = None,
    fence: Fence | None = None,
    keep_input: Path | None = None,
    cwd: Path | None = None,
) -> int:
    """Run *command* to its end; returns its exit status, or 128 plus the number of the signal that killed it.

    *printed* gets a copy of what it prints to *stdout*. It is terminated once *is_of_no_use* returns true.
    *on_connection* gets the connections that it and the processes below it make, seen from here.
    Input from a pipe, which can be read only once, is copied to *keep_input*.
    """
    heard = forward_output(stdout, printed) if printed is not None else nullcontext(stdout)
    with (
        _pass_signals_on() as passed_on_to,
        heard as output,
        _fence_child(fence) as enter,
        _keep_input(keep_input) as stdin,
    ):
        child_stdout = None if output == 1 else output
        try:
            child = subprocess.Popen(
                command, env=environ, stdin=stdin, stdout=child_stdout, preexec_fn=enter, cwd=cwd
            )
        except OSError as error:
            raise UsageError(f"{command[0]}: {error.strerror}; name a program that can be run") from error
        passed_on_to.append(child)
        with ExitStack() as looking:
            looking.enter_context(_repeat(is_of_no_use, _LOOK_S, child.terminate))
            if on_connection is not None:
                look = OutsideLook(child.pid, on_connection).look
                looking.enter_context(_repeat(look, _LOOK_OUTSIDE_S))
            returned = child.wait()
    return returned if returned >= 0 else 128 - returned


@contextmanager
def _keep_input(copy: Path | None) -> Iterator[int | None]:
    """Yield the descriptor that the child reads; ``None`` where it may read our standard input itself."""
    if copy is None or not _is_pipe(_STDIN):
        yield None
        return
    reading, writing = os.pipe()
    with _open_nameless(copy) as kept:
        Thread(target=_pass_on_input, args=(writing, kept), name="reenact-input", daemon=True).start()
        try:
            yield reading
        finally:
            os.close(reading)


def _is_pipe(fd: int) -> bool:
    with suppress(OSError):
        return stat.S_ISFIFO(os.fstat(fd).st_mode)
    return False


def _pass_on_input(writing: int, kept: FileIO) -> None:
    # The command may end, which closes *kept*, while more input comes.
    with suppress(OSError, ValueError), os.fdopen(writing, "wb", buffering=0) as child:
        while data := os.read(_STDIN, _INPUT_BYTES):
            kept.write(data)
            child.write(data)


@contextmanager
def _open_nameless(link: Path) -> Iterator[FileIO]:
    """Open a file that disappears with this process, even a killed one, and is readable at *link* until then.

    Without ``/proc`` (not Linux) it is a plain file at *link*.
    """
    if not Path("/proc/self/fd").exists():
        with link.open("wb", buffering=0) as file:
            yield file
        return
    with TemporaryFile(buffering=0, dir=link.parent) as file:
        link.unlink(missing_ok=True)
        link.symlink_to(f"/proc/{os.getpid()}/fd/{file.fileno()}")
        yield file


def _fence_child(fence: Fence | None) -> AbstractContextManager[Callable[[], None] | None]:
    return nullcontext() if fence is None else fence.fence_child()


@contextmanager
def _repeat(
    look: Callable[[], object], every_s: float, when_true: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """In the block, call *look* in a thread of its own, with pauses, until it returns true."""
    is_over = Event()

    def look_again() -> None:
        while not is_over.wait(every_s):
            if look():
                when_true()
                return

    looking = Thread(target=look_again, name="reenact-looking", daemon=True)
    looking.start()
    try:
        yield
    finally:
        is_over.set()
        looking.join()


@contextmanager
def _pass_signals_on() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Forward signals that would end us to the children in the list; we end when they do."""
    children: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT and _is_in_foreground():
            return
        for child in children:
            child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    try:
        yield children
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_in_foreground() -> bool:
    """Whether Ctrl-C on our terminal reaches the children too, because they are in our process group."""
    with suppress(OSError):
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY)
        try:
            return os.tcgetpgrp(terminal) == os.getpgrp()
        finally:
            os.close(terminal)
    return False


def subject(words: Sequence[str]) -> str:
    """A short name: ``triage.agent`` for ``python -m triage.agent -v``, ``run`` for ``./run.sh now``."""
    program = Path(words[0]).name
    if not program.startswith("python"):
        return Path(program).stem
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "-m" and rest:
            return rest[0]
        if option == "-c":
            return program
        if option in ("-W", "-X"):
            rest = rest[1:]
    return Path(rest[0]).stem if rest else program
