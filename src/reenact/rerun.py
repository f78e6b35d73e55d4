"""Running tests, with the commands that they need: the agent in a replay, or a check of files.

The reading side judges and never runs an agent; the running side replays commands. This module is above both.
Each command runs in its own process, because the working folder and signal handlers belong to a process; its
output is not shown.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Final, NamedTuple, TypeAlias, TypedDict, TypeVar, Unpack

from reenact.errors import FormatError, ReenactError, UsageError
from reenact.formats.replay_receipt import ReplayReceipt, read_replay_receipt, receipt_codec
from reenact.redaction import Redactor, default_profile, environment_secrets, is_secret_name
from reenact.store.project import PROJECT_FILE
from reenact.store.reader import CaptureReader
from reenact.store.remote import is_remote, local_folder, relabel, remote_name
from reenact.suite.files import CommandEnd, CommandSucceedsInWorkspace
from reenact.suite.runner import Outcome, SuiteReport, run_suite
from reenact.workspace.history import WorkspaceHistory

T = TypeVar("T")
TIMEOUT_S: Final = 600
_COMMAND: Final = "$.adapter_input.command"
_MODULE: Final = "reenact.rerun"
_OUTPUT_BYTES: Final = 8192
"""The end of the output of a command that is kept."""
_JOIN_S: Final = 1.0
_POLL_S: Final = 0.5


def test(
    *paths: str | Path,
    name: str | None = None,
    tags: Collection[str] = (),
    strict: bool = False,
    out: str | Path | None = None,
    jobs: int | None = 1,
    on: str | None = None,
    allow_code: bool = False,
    allow_commands: bool = False,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> SuiteReport:
    """Run the assertions of every test file in *paths* over the recorded runs that they name.

    The command of a test is run again, replayed from its capture. Only tests whose id, title or path contains
    *name*, and with one of the *tags*, are run. With *strict* an unknown key or parameter is an error. Result
    and trace files go to *out*. *jobs* is the number of processes: 0 for one per core, ``None`` for that if
    there are many tests; *on* runs them on Ray (``ray``, ``ray=ADDRESS``).
    *allow_code* runs the Python files that ``reenact.toml`` names for assertions, *allow_commands* the
    commands of assertions, in copies of the recorded files. *on_outcome* is called after each test.
    """
    with ExitStack() as copies:
        folders = [copies.enter_context(local_folder(path)) for path in paths]
        pairs = zip(folders, paths, strict=True)
        labels = {str(copy): remote_name(path) for copy, path in pairs if is_remote(path)}

        def rename(found: T) -> T:
            for copy, label in labels.items():
                found = relabel(found, copy, label)
            return found

        report = run_suite(
            *folders,
            replay=replay_for_test,
            run_in_files=run_in_files if allow_commands else None,
            name=name,
            tags=tags,
            strict=strict,
            out=out,
            jobs=jobs,
            on=on,
            allow_code=allow_code,
            on_outcome=None if on_outcome is None else lambda outcome: on_outcome(rename(outcome)),
        )
        return rename(report)


class TestOptions(TypedDict, total=False):
    """The keyword arguments of :func:`test`."""

    name: str | None
    tags: Collection[str]
    strict: bool
    out: str | Path | None
    jobs: int | None
    on: str | None
    allow_code: bool
    allow_commands: bool
    on_outcome: Callable[[Outcome], None] | None


class WatchRound(NamedTuple):
    """One run of the watched tests."""

    report: SuiteReport | None
    """``None`` if the tests could not be run."""
    error: Exception | None
    watched_files: int

    def result(self) -> SuiteReport:
        """Return the report, or raise the error."""
        if self.report is None:
            raise self.error or AssertionError
        return self.report


def watch_tests(*paths: str | Path, **options: Unpack[TestOptions]) -> Iterator[WatchRound]:
    """Run :func:`test` now, and again whenever a file in *paths* or ``reenact.toml`` changes.

    The iterator has no end; an error in one round does not stop it.
    """
    watched = [*map(Path, paths), Path(PROJECT_FILE)]
    while True:
        before = _snapshot(watched)
        report, problem = None, None
        try:
            report = test(*paths, **options)
        except Exception as error:
            problem = error
        yield WatchRound(report, problem, len(before))
        while _snapshot(watched) == before:
            time.sleep(_POLL_S)


_Snapshot: TypeAlias = dict[str, tuple[int, int]]
"""Modification time and size, by path."""


def _snapshot(paths: Iterable[Path]) -> _Snapshot:
    """All files in *paths*, except those in hidden folders."""
    found: _Snapshot = {}
    for path in paths:
        if path.is_file():
            _note(found, str(path))
        for parent, names, files in os.walk(path):
            names[:] = [name for name in names if not name.startswith((".", "__pycache__"))]
            for name in files:
                _note(found, os.path.join(parent, name))
    return found


def _note(found: _Snapshot, file: str) -> None:
    try:
        state = os.stat(file)
    except FileNotFoundError:
        return  # deleted since it was listed
    found[file] = (state.st_mtime_ns, state.st_size)


def replay_for_test(capture: Path, command: str | list[str], directory: Path) -> ReplayReceipt:
    """Replay *command* from *capture* in *directory*, with its recorded files if any; return the receipt.

    Raises :class:`FormatError` if no replay was possible.
    """
    words = _split(command) if isinstance(command, str) else command
    with TemporaryDirectory(prefix="reenact-") as scratch:
        receipt = Path(scratch, "receipt.json")
        program = [sys.executable, "-m", _MODULE, str(capture.resolve()), str(receipt), *words]
        try:
            done = subprocess.run(
                program,
                cwd=directory,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            reason = f"the replay was stopped after {TIMEOUT_S} s"
            raise FormatError(reason, json_path=_COMMAND) from None
        if not receipt.is_file():
            reason = f"the replay left no receipt (exit status {done.returncode}): {_last_line(done.stderr)}"
            raise FormatError(reason, json_path=_COMMAND)
        return read_replay_receipt(receipt.read_bytes(), file=f"the receipt of {capture}")


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise FormatError(f"not a command: {error}", json_path=_COMMAND) from None


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _replay(capture: str, receipt: str, *words: str) -> None:
    """The main function of the child process."""
    from reenact.commands.replay import replay_command

    has_files = WorkspaceHistory.has_one(CaptureReader(capture))
    report = replay_command(capture, words, workspace=has_files)
    Path(receipt).write_bytes(receipt_codec.to_bytes(report.receipt))


def run_in_files(capture: Path, wanted: CommandSucceedsInWorkspace) -> CommandEnd:
    """Run the command in a copy of the files at the end of *capture*."""
    with TemporaryDirectory(prefix="reenact-workspace-") as scratch:
        root = Path(os.path.realpath(scratch), "workspace")
        history = WorkspaceHistory(CaptureReader(capture))
        history.restore(history.end_tree, root, refuse_links_out=True)
        return _run_among(root, wanted)


def run_in_folder(folder: Path, wanted: CommandSucceedsInWorkspace) -> CommandEnd:
    """Run the command in a copy of *folder*."""
    from reenact.replayer.guard import run_unguarded

    # Not part of the run, if a test calls this during its run.
    with run_unguarded(), TemporaryDirectory(prefix="reenact-workspace-") as scratch:
        root = Path(os.path.realpath(scratch), "workspace")
        shutil.copytree(folder, root, symlinks=True)
        return _run_among(root, wanted)


def _run_among(root: Path, wanted: CommandSucceedsInWorkspace) -> CommandEnd:
    """Run the command in *root*.

    It has no network, like in a replay, and no environment variables with secret names. At its time limit it
    is stopped with all its child processes.
    """
    from reenact.injected.fence import Fence

    cwd = Path(os.path.realpath(root / wanted.folder))
    if not cwd.is_relative_to(root) or not cwd.is_dir():
        raise UsageError(f"params.folder: {wanted.folder}: is not a folder of the recorded files")
    words = [word.replace("{workspace}", str(root)) for word in wanted.words]
    fence = Fence(os.environ)
    with fence.fence_child() as enter:
        status, output = _run_for(wanted.timeout_s, words, cwd, enter)
    return CommandEnd(status, output, fence.stands)


def _run_for(
    timeout_s: float, words: list[str], cwd: Path, enter: Callable[[], None] | None
) -> tuple[int | None, str]:
    """The exit status of *words*, ``None`` after the time limit, and the end of the output."""
    try:
        child = subprocess.Popen(
            words,
            cwd=cwd,
            env={name: value for name, value in os.environ.items() if not is_secret_name(name)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=enter,
        )
    except OSError as error:
        raise UsageError(f"params.command: {words[0]}: {error.strerror}") from error
    assert child.stdout is not None
    printed = bytearray()
    status: int | None = None
    with child.stdout as stream:
        reading = Thread(target=_keep_end, args=(stream.fileno(), printed), daemon=True)
        reading.start()
        with suppress(subprocess.TimeoutExpired):
            status = child.wait(timeout_s)
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        reading.join(_JOIN_S)
    with suppress(ChildProcessError):  # orphans of its group that are our children now
        while os.waitpid(-child.pid, 0)[0]:
            pass
    if status is not None and status < 0:
        status = 128 - status
    return status, _without_secrets(printed.decode("utf-8", "replace"))


def _keep_end(fd: int, printed: bytearray) -> None:
    with suppress(OSError):
        while piece := os.read(fd, _OUTPUT_BYTES):
            printed += piece
            del printed[:-_OUTPUT_BYTES]


def _without_secrets(text: str) -> str:
    known = environment_secrets(os.environ)
    return Redactor(default_profile(os.environ), secrets=known, salt=secrets.token_bytes(16)).redact_text(
        text
    )


if __name__ == "__main__":
    try:
        _replay(*sys.argv[1:])
    except ReenactError as error:
        sys.stderr.write(f"reenact: {error}{os.linesep}")
        sys.exit(2)
