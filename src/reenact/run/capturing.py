"""A run that is being recorded."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from os import getpid, getppid, urandom
from pathlib import Path
from threading import Lock
from time import localtime, time_ns
from types import TracebackType
from typing import Final, Literal, Self

import msgspec

from reenact import seams
from reenact._version import __version__
from reenact.boundary import RunMode, current_lane, enter_context
from reenact.canonical import JsonField
from reenact.errors import ReenactError
from reenact.formats.capture import EVENT_LOG_NAME, NO_MODEL, CaptureSeed, Redaction, StandIns
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule
from reenact.gateway.server import Gateway
from reenact.gateway.upstreams import environment_below, upstreams_of
from reenact.process_state import hosts_beside
from reenact.recorder.context import CaptureContext
from reenact.recorder.eventlog import ProcessNames
from reenact.recorder.sink import CaptureSink
from reenact.redaction import default_profile
from reenact.replayer.allow import Allow
from reenact.replayer.egress import Connect
from reenact.replayer.guard import Watch
from reenact.run.provenance import RunOrigin
from reenact.run.redact import Redact, make_redactor, profile_and_secrets
from reenact.run.rules import project_beside
from reenact.run.run import Run
from reenact.run.zone import zone_of_machine
from reenact.seams import probes, stdlib
from reenact.seams.entered import ExecutedFiles
from reenact.seams.http.exchange import is_any_under_way
from reenact.seams.serving import asks_server_of_run, is_served_here
from reenact.seams.stdlib import process
from reenact.seams.stdlib.places import workspace_known
from reenact.seams.stdlib.wall_clock import wall_clock_of_run
from reenact.seams.stdlib.written import WrittenFiles, watch_written_files
from reenact.seams.typed import streams_at_terminal, typed_input
from reenact.values.objects import message_of
from reenact.volatile.places import mark_places, own_places, working_folder
from reenact.workspace.recording import WorkspaceOrder

_NS_PER_MS: Final = 1_000_000
SURROUNDINGS_VARIABLE: Final = "REENACT_SURROUNDINGS"
"""If set, a capture has the working directory and command line with the paths of this machine."""


def without_places(words: Sequence[str]) -> list[str]:
    """A command line without the run's own folders.

    Of the program only the name is kept. Other paths stay, because two processes may differ in nothing else.
    """
    places = sorted(own_places().items(), key=lambda item: len(item[1]), reverse=True)
    first = [os.path.basename(word) if os.path.isabs(word) else word for word in words[:1]]
    return first + [_name_places(word, places) for word in words[1:]]


def _name_places(word: str, places: Iterable[tuple[str, str]]) -> str:
    for kind, place in places:
        if kind in _PLACE_NAMES and place in word:
            name = _PLACE_NAMES[kind]
            path = rf"{_BEFORE_PATH}{re.escape(place)}"
            if name == ".":
                word = re.sub(rf"{path}{re.escape(os.sep)}(?=.)", "", word)
            word = re.sub(rf"{path}(?![\w+@~.-])", name, word)
    return word


_PLACE_NAMES: Final = {
    "cwd": ".",
    "cwd/given": ".",
    "home": "~",
    "python": "{python}",
    "test": "{test}",
    "tmp": "{tmp}",
}
_BEFORE_PATH: Final = r"(?:(?<![\w.~/-])|(?<=-[A-Za-z])|(?<=file://))"
"""Not in the middle of another path, but directly after an option of one letter."""


class Identity(msgspec.Struct, frozen=True):
    """The ids, salt and times of a run, which all its processes share.

    With a fixed one, two captures of one deterministic run are equal byte for byte.
    """

    capture_id: str
    run_id: str
    salt: bytes
    """For the placeholders of secrets; it allows to check guesses, so fix it only in tests."""
    started_at_ms: int | None = None
    """A fixed start, with a millisecond between events; ``None`` for the real clock."""
    surroundings: dict[str, JsonField] | None = None
    """Fixed facts about the machine for ``run_start``; ``None`` for the real ones."""

    @classmethod
    def new(cls) -> Identity:
        return cls(f"cap_{urandom(8).hex()}", f"run_{urandom(8).hex()}", urandom(16))


class CaptureRun(Run):
    """A run that is being recorded."""

    mode: RunMode = "capture"
    make_context: type[CaptureContext] = CaptureContext
    tells_command = True
    """Whether the process was started for this run, so that its command line is recorded."""

    def __init__(
        self,
        sink: CaptureSink,
        *,
        redact: Redact,
        blob_threshold_bytes: int,
        stand_ins: StandIns,
        volatile: Sequence[VolatileRule] = (),
        on_warning: Callable[[str], None] | None,
        allow: Allow | None = None,
        leads_programs: bool = False,
        on_end: Callable[[bool], None] | None = None,
        identity: Identity | None = None,
        find_names: Callable[[], ProcessNames] = ProcessNames,
        within: str | None = None,
        origin: RunOrigin | None = None,
        workspace: WorkspaceOrder | None = None,
        watches_clock: bool = False,
        seen_outside: Callable[[], Mapping[str, Connect]] = dict,
    ) -> None:
        """*allow* names what a replay may reach; it gives no warning.

        With *leads_programs* the model calls of programs that the agent starts go through a gateway.
        *on_end* is called at the end, with whether the recording is complete and the run succeeded.
        *find_names* and *within* give the position of this process among others that record the same run.
        *workspace* says which files are recorded too. With *watches_clock* the times that libraries read are
        recorded. *seen_outside* is as for :class:`~reenact.replayer.guard.Watch`.
        """
        super().__init__()
        named, values = profile_and_secrets(redact)
        profile = named or default_profile(os.environ)
        identity = identity or Identity.new()
        now_ns = time_ns
        if identity.started_at_ms is not None:
            now_ns = itertools.count(identity.started_at_ms * _NS_PER_MS, _NS_PER_MS).__next__
        self._fixed_surroundings = identity.surroundings
        seed = CaptureSeed(
            version=1,
            captureId=identity.capture_id,
            runId=identity.run_id,
            createdAt=now_ns() // _NS_PER_MS,
            mode="capture",
            model=NO_MODEL,
            eventLogPath=EVENT_LOG_NAME,
            redaction=Redaction(enabled=profile != "none", profile=profile, salt=identity.salt.hex()),
            producer=f"reenact {__version__}",
            blobThresholdBytes=blob_threshold_bytes,
            standIns=stand_ins,
            volatile=list(volatile) or ABSENT,
        )
        self._salt = identity.salt
        self._redactor = make_redactor(profile, values, identity.salt)
        self._context = self.make_context(
            sink, seed, self._redactor, on_warning=on_warning, find_names=find_names, now_ns=now_ns
        )
        self._stand_ins = stand_ins
        self._allow = allow
        self._leads_programs = leads_programs
        self._on_end = on_end
        self._entered = ExecutedFiles(self._context)
        self._within = within
        self._origin = origin or {}
        self._workspace = workspace
        self._watches_clock = watches_clock and identity.started_at_ms is None
        self._seen_outside = seen_outside
        self._put_blob = lambda data: sink.put_blob(data)
        self._written = WrittenFiles()
        self.warnings = self._context.warnings
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._context.start()
        files = self._look_at_files()
        with ExitStack() as opening:
            for attached in self.attachments():
                opening.enter_context(attached)
            opening.enter_context(enter_context(self._context, self._within))
            fixed = self._fixed_surroundings
            facts = {**self.surroundings(), **self._origin} if fixed is None else fixed
            self._context.record_event("run_start", facts | files)
            self._open = opening.pop_all()
        return self

    def _look_at_files(self) -> dict[str, object]:
        """Read the files at the start, for ``run_start``."""
        order = self._workspace
        if order is None:
            return {}
        try:
            scanner = order.scanner(self._put_blob, self._redactor)
            start = order.start or order.begin(scanner)
        except ReenactError as error:
            self._context.warn(f"the files are not recorded: {message_of(error)}")
            return {}
        self._context.record_files(scanner, start.tree, tree_file=order.tree_file)
        above = [list(pair) for pair in start.above] or None
        facts = {
            "cwd": start.cwd,
            "commit": start.commit,
            "limitBytes": start.limit_bytes,
            "above": above,
            "pathBytes": start.path_bytes,
        }
        known = {name: value for name, value in facts.items() if value is not None}
        return {"workspace": {"tree": start.tree} | known}

    @property
    def context(self) -> CaptureContext:
        return self._context

    def attachments(self) -> Iterable[AbstractContextManager[object]]:
        """The patches and hooks that route the calls of this process to us."""
        if self._watches_clock:
            yield wall_clock_of_run(0)
        yield seams.attach_seams()
        yield hosts_beside.holding(project_beside(Path(working_folder())))
        yield stdlib.attach_stdlib(self._stand_ins, self._context)
        yield typed_input(streams_at_terminal() if self._fixed_surroundings is None else ())
        yield workspace_known(self._workspace.root if self._workspace is not None else None)
        yield watch_written_files(self._written)
        if self._leads_programs and self._stand_ins.everywhere:
            yield self._gateway_for_programs()
        self._entered.is_whole = self.is_test or self._fixed_surroundings is not None
        yield self._entered
        allow = replace(self._allow or Allow(), is_served_here=is_served_here, is_client=asks_server_of_run)
        yield probes.record_probes(self._context, lambda host, port: not allow.permits(Connect(host, port)))
        watch = Watch(allow, self._is_unseen, self._context.warn, self._seen_outside)
        yield watch
        yield process.watch_programs(self._context, watch.talks_with)

    @contextmanager
    def _gateway_for_programs(self) -> Iterator[None]:
        """A gateway that starts with the first program of the agent and ends with the run."""
        opened: list[Gateway] = []
        opening = Lock()

        def lead_to_gateway(environ: process.Environment) -> process.Environment:
            try:
                with opening:
                    if not opened:
                        opened.append(Gateway(self._context, upstreams_of(os.environ)))
                return environment_below(opened[0].address, environ)
            except (OSError, ReenactError) as error:
                self._context.warn(f"model calls of programs are not seen: {message_of(error)}")
                return environ

        process.set_environment_change(self._context, lead_to_gateway)
        try:
            yield
        finally:
            process.set_environment_change(self._context, None)
            for gateway in opened:
                gateway.close()

    def _is_unseen(self) -> bool:
        """Whether the current code belongs to the run and is not inside a call, which a replay answers."""
        lane = current_lane()
        is_own = lane is not None and lane.context is self._context and lane.within is None
        return is_own and not is_any_under_way(self._context)

    def surroundings(self) -> dict[str, object]:
        """The facts about the machine and process for ``run_start``."""
        pids = {"pids": [getpid(), getppid()]} if self.tells_command else {}
        facts = {"python": sys.version.split()[0], **pids, **self.describe_place()}
        argv = self._redactor.redact_arguments(sys.orig_argv)
        if os.environ.get(SURROUNDINGS_VARIABLE):
            return {"argv": argv, "cwd": working_folder()} | facts
        return {"argv": without_places(argv)} | facts if self.tells_command else facts

    def describe_place(self) -> dict[str, object]:
        """The facts by which a replay elsewhere recognizes folders and local times of this run."""
        order = self._workspace
        own = own_places() if order is None else own_places(order.root, order.given)
        places = mark_places(own, self._salt)
        zone = zone_of_machine()
        named = {} if zone is None else {"timeZone": zone}
        typed = {"terminal": terminal} if (terminal := streams_at_terminal()) else {}
        return {"utcOffsetS": localtime().tm_gmtoff, **named, **typed, "places": places}

    def list_written(self) -> list[str]:
        """The files that the run has written."""
        return self._written.list_written()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        status: Literal["ok", "error"] = "ok" if error is None else "error"
        message = None if error is None else f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")
        self.manifest = self._context.finalize(
            status, message, self.final_output, self.confidence, self.list_written(), self._entered.files
        )
        if self._on_end is not None:
            self._on_end(self.manifest is not None and self.manifest.status == "ok")

    def abandon(self) -> None:
        """Stop recording, and leave the capture unfinished."""
        self._open.close()
