"""``capture()`` and ``replay()``: the only place where seams, context, store and guard are joined."""

from __future__ import annotations

import os
import secrets
import sys
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias, cast

import msgspec

from reenact import seams
from reenact._version import __version__
from reenact.boundary import ROOT, Instant, RunMode, current_lane, entered, open_contexts
from reenact.errors import Diverged, FormatError, StoreError, UsageError
from reenact.formats.capture import (
    BLOB_THRESHOLD_BYTES,
    EVENT_LOG_NAME,
    MAX_BLOB_THRESHOLD_BYTES,
    NO_MODEL,
    CaptureManifest,
    CaptureSeed,
    Redaction,
    RedactionProfile,
    StandIns,
)
from reenact.formats.divergence import ReplayDivergence
from reenact.formats.failures import message_of
from reenact.formats.record import ABSENT
from reenact.formats.replay_receipt import (
    SCHEMA,
    Matching,
    RefusedCall,
    ReplayedCapture,
    ReplayReceipt,
    receipt_codec,
)
from reenact.formats.volatile import AnyRule, VolatileRule, read_rule, rules_in
from reenact.recorder.context import CaptureContext
from reenact.recorder.names import Names
from reenact.recorder.sink import CaptureSink, FileCaptureSink
from reenact.redaction import Redactor, default_profile, environment_secrets
from reenact.redaction.profile import PROFILES
from reenact.replayer.allow import Allow
from reenact.replayer.blocked import BlockedCall
from reenact.replayer.engine import Policy, ReplayEngine, diverged
from reenact.replayer.fingerprint import fingerprint
from reenact.replayer.guard import Guard
from reenact.replayer.source import LaneTest, ReplaySource, every_lane
from reenact.seams import stdlib
from reenact.seams.chance import Clock, RecordedRandom, instant, uuid4
from reenact.seams.stdlib.chosen import Source
from reenact.store.durable import Durability, write_report
from reenact.store.project import find_project_file, read_project

Redact: TypeAlias = RedactionProfile | Sequence[str] | tuple[RedactionProfile | None, Sequence[str]] | None
"""A profile, a list of secrets to hide in every form, or both as a pair."""
MODE_VARIABLE: Final = "REENACT_MODE"
STALL_S: Final = 10.0


class Identity(msgspec.Struct, frozen=True):
    """What all that is recorded of one run has in common, by whichever process."""

    capture_id: str
    run_id: str
    salt: bytes

    @classmethod
    def new(cls) -> Identity:
        return cls(f"cap_{secrets.token_hex(8)}", f"run_{secrets.token_hex(8)}", secrets.token_bytes(16))


class Run:
    """One execution of an agent under reenact; a context manager for sync and async code alike."""

    mode: RunMode = "off"

    def __init__(self) -> None:
        self.final_output: Any = None
        """What the agent came to; recorded at the end, and compared in replay where both runs set it."""
        self.clock = Clock()
        self.rng = RecordedRandom()
        self.divergences: list[ReplayDivergence] = []
        self.blocked: list[BlockedCall] = []
        """What tried to go live during a replay."""
        self.warnings: list[str] = []
        self.manifest: CaptureManifest | None = None
        self.receipt: ReplayReceipt | None = None

    def uuid4(self) -> uuid.UUID:
        """A random UUID; the recorded one in replay."""
        return uuid4(self.rng)

    def memory_read(
        self, path: str, read: Callable[[], Any], *, group_id: str | None = None, source: str | None = None
    ) -> Any:
        """What *read* finds in the agent's memory at *path*; the recorded value in replay."""
        request = {"type": "memory_read", "path": path} | _known(group_id=group_id, source=source)
        return instant(Instant("state_mutation", request, is_read=True), read)

    def memory_write(
        self, path: str, value: Any, *, group_id: str | None = None, source: str | None = None
    ) -> None:
        """Record that *value* was written to the agent's memory; in replay it must be the same."""
        request = {"type": "memory_write", "path": path, "content": value}
        request |= _known(group_id=group_id, source=source)
        instant(Instant("state_mutation", request), lambda: None)

    def state_mutation(self, kind: str, **details: Any) -> None:
        """Record a change of state, such as ``file_write``; in replay it must be the same."""
        instant(Instant("state_mutation", {"type": kind, "details": details}), lambda: None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def _known(**facts: str | None) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


class CaptureRun(Run):
    """A run that is being recorded."""

    mode: RunMode = "capture"
    make_context: type[CaptureContext] = CaptureContext

    def __init__(
        self,
        sink: CaptureSink,
        *,
        redact: Redact,
        blob_threshold_bytes: int,
        stand_ins: StandIns,
        volatile: Sequence[VolatileRule] = (),
        on_warning: Callable[[str], None] | None,
        identity: Identity | None = None,
        find_names: Callable[[], Names] = Names,
        within: str | None = None,
    ) -> None:
        """*find_names* and *within* say where this process stands among others that record the same run."""
        super().__init__()
        named, values = profile_and_secrets(redact)
        profile = named or default_profile(os.environ)
        identity = identity or Identity.new()
        seed = CaptureSeed(
            version=1,
            captureId=identity.capture_id,
            runId=identity.run_id,
            createdAt=int(time.time() * 1000),
            mode="capture",
            model=NO_MODEL,
            eventLogPath=EVENT_LOG_NAME,
            redaction=Redaction(enabled=profile != "none", profile=profile, salt=identity.salt.hex()),
            producer=f"reenact {__version__}",
            blobThresholdBytes=blob_threshold_bytes,
            standIns=stand_ins,
            volatile=list(volatile) or ABSENT,
        )
        self._redactor = _redactor(profile, values, identity.salt)
        self._context = self.make_context(
            sink, seed, self._redactor, on_warning=on_warning, find_names=find_names
        )
        self._stand_ins = stand_ins
        self._within = within
        self.warnings = self._context.warnings
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._context.start()
        for attached in self.attachments():
            self._open.enter_context(attached)
        self._open.enter_context(entered(self._context, self._within))
        self._context.record_event("run_start", self.surroundings())
        return self

    @property
    def context(self) -> CaptureContext:
        return self._context

    def attachments(self) -> Iterable[AbstractContextManager[Any]]:
        """What is put into this process so that its calls come to us."""
        yield seams.attached()
        yield stdlib.attached(self._stand_ins, self._context)

    def surroundings(self) -> dict[str, Any]:
        """What the run says of where and how it began."""
        argv = self._redactor.redact_arguments(sys.orig_argv)
        return {"argv": argv, "cwd": str(Path.cwd()), "python": sys.version.split()[0]}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        status: Literal["ok", "error"] = "ok" if error is None else "error"
        message = None if error is None else f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")
        self.manifest = self._context.finalize(status, message, self.final_output)

    def abandon(self) -> None:
        """Stop recording and leave what is written as it is, unfinished."""
        self._open.close()


class ReplayRun(Run):
    """A run that is being replayed: offline, and refused where it is not the recorded one."""

    mode: RunMode = "replay"

    def __init__(
        self,
        path: str | Path,
        *,
        policy: Policy = "strict",
        redact: Redact = None,
        allow: Allow | None = None,
        allow_passthrough_tools: Collection[str] = (),
        volatile: Iterable[VolatileRule] = (),
        stall_s: float = STALL_S,
        receipt_path: Path | None = None,
        on_divergence: Callable[[ReplayDivergence], None] | None = None,
        is_ours: LaneTest = every_lane,
        is_causal: bool = False,
        root: str = ROOT,
        find_root: Callable[[], str] | None = None,
        within: str | None = None,
    ) -> None:
        """*is_ours* says of which recorded lanes the calls are to come here; others may come elsewhere.

        With *is_causal* a call may not come before one that had ended by then in the recording. Where several
        processes replay a run, *root* is the first lane of this one, unless *find_root* knows better when the
        first call is made, and *within* is the call inside which it lives.
        """
        super().__init__()
        source = ReplaySource(path, is_ours, root)
        source.reader.check_blobs(source.blob_digests())
        self.manifest = source.manifest()
        _, values = profile_and_secrets(redact)
        salt = self.manifest.redaction.salt
        redactor = _redactor(
            self.manifest.redaction.profile, values, bytes.fromhex(salt) if salt is not ABSENT else b""
        )
        self._engine = ReplayEngine(
            source,
            redactor,
            policy=policy,
            passthrough=allow_passthrough_tools,
            volatile=[*project_rules(Path.cwd()), *volatile],
            stall_s=stall_s,
            is_causal=is_causal,
            on_divergence=on_divergence,
            find_root=find_root,
        )
        self._within = within
        self._redactor = redactor
        self._stand_ins = self.manifest.standIns or stdlib.NOTHING
        self._passthrough = sorted(allow_passthrough_tools)
        self._guard = Guard(allow or Allow(), self._is_guarded)
        self._receipt_path = receipt_path
        self._open = ExitStack()

    def arguments(self) -> list[str]:
        """What this process was started with, as a recording would tell it."""
        return self._redactor.redact_arguments(sys.orig_argv)

    @property
    def notes(self) -> list[str]:
        """Outcomes that could not be delivered in recorded order; not divergences."""
        return self._engine.notes

    @property
    def answered(self) -> int:
        """How many recorded calls were answered so far, those inside other calls included."""
        return sum(call.taken for call in self._engine.source.calls)

    def __enter__(self) -> Self:
        for attached in self.attachments():
            self._open.enter_context(attached)
        return self

    @property
    def context(self) -> ReplayEngine:
        return self._engine

    def attachments(self) -> Iterable[AbstractContextManager[Any]]:
        """What is put into this process so that its calls come to us and none gets past."""
        yield seams.attached()
        yield stdlib.attached(self._stand_ins, self._engine)
        yield entered(self._engine, self._within)
        yield self._guard

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        before_end = self._engine.divergences()
        output_hash = self._engine.finish(self.final_output, error)
        self.divergences = self._engine.divergences()
        self.blocked = self._guard.blocked
        self.receipt = self._make_receipt(output_hash)
        unwritten = self._write_receipt(self.receipt)
        if self._engine.policy == "strict" and not isinstance(error, Diverged):
            # What shows only at the end may follow from an error of the agent's own, which then goes first.
            self._raise_latched(self.divergences if error is None else before_end, error)
        if unwritten is not None and error is None:
            raise unwritten

    def _write_receipt(self, receipt: ReplayReceipt) -> StoreError | None:
        """Write it where it was asked for; a failure to do so must not hide what the replay found."""
        if self._receipt_path is None:
            return None
        try:
            write_report(self._receipt_path, receipt_codec.to_bytes(receipt) + b"\n")
        except StoreError as error:
            self.warnings.append(str(error))
            return error
        return None

    def _raise_latched(self, divergences: list[ReplayDivergence], error: BaseException | None) -> None:
        """What the agent swallowed, or wrapped into an error of its own, is raised again here."""
        if self.blocked:
            raise self.blocked[0].error() from error
        if divergences:
            raise diverged(divergences[0]) from error

    def _is_guarded(self) -> bool:
        lane = current_lane()
        if lane is None:
            return True
        return lane.context is self._engine and not self._engine.is_live(lane)

    def _make_receipt(self, output_hash: str | None) -> ReplayReceipt:
        manifest = self._engine.source.manifest()
        redacted = self._redactor.redact_text
        return ReplayReceipt(
            schema=SCHEMA,
            capture=ReplayedCapture(
                captureId=manifest.captureId,
                eventsHash=manifest.integrity.eventsHash,
                eventCount=manifest.eventCount,
            ),
            fingerprint=fingerprint(),
            matching=Matching(
                policy=self._engine.policy,
                redaction=manifest.redaction.profile,
                passthroughTools=self._passthrough,
                volatile=list(self._engine.volatile),
            ),
            divergences=[divergence.to_json() for divergence in self.divergences],
            liveCallsRefused=[
                RefusedCall(kind=call.kind, target=redacted(call.target), frame=call.frame)
                for call in self.blocked
            ],
            notes=list(self.notes),
            finalOutputHash=output_hash,
            verdict="diverged" if self.divergences or self.blocked else "reproduced",
            replayedAt=int(time.time() * 1000),
        )


def capture(
    path: str | Path,
    *,
    mode: RunMode | None = None,
    redact: Redact = None,
    durability: Durability = "process",
    blob_threshold_bytes: int = BLOB_THRESHOLD_BYTES,
    sources: Collection[Source] | None = None,
    modules: Collection[str] = (),
    volatile: Iterable[AnyRule] = (),
    on_warning: Callable[[str], None] | None = None,
) -> Run:
    """Record what happens in the block into the new directory *path*.

    *redact* is a profile (``none``, ``default``, ``strict``), a list of secrets to hide in every form, or
    both as a pair; the profile is ``default``, and ``strict`` where ``CI`` is set. *durability* is
    ``process``, which survives ``kill -9``, or ``disk``, which survives a power cut. *sources* names what
    of the standard library is recorded in the agent's own modules (``time``, ``random``, ``uuid``,
    ``secrets``, ``subprocess``, ``files``, ``environ``; all but the last unless told); *modules* says
    which modules these are, by name or pattern, and without it they are all that are no library. *volatile*
    names values that may differ in a replay, as ``"llm $.body.messages[*].content =~ Today is [0-9-]+"``;
    these rules are kept in the capture. With *mode*, or ``REENACT_MODE`` in the environment, the same block
    can be switched ``off`` or replayed.
    """
    chosen = mode or os.environ.get(MODE_VARIABLE) or "capture"
    if chosen == "off":
        return Run()
    if chosen == "replay":
        return replay(path, redact=redact, volatile=volatile)
    if chosen != "capture":
        raise UsageError(f"mode {chosen!r} is unknown; choose off, capture or replay")
    if not 0 <= blob_threshold_bytes <= MAX_BLOB_THRESHOLD_BYTES:
        raise UsageError(
            f"blob_threshold_bytes={blob_threshold_bytes}: choose 0 to {MAX_BLOB_THRESHOLD_BYTES}"
        )
    sink = FileCaptureSink(path, durability=durability)
    return CaptureRun(
        sink,
        redact=redact,
        blob_threshold_bytes=blob_threshold_bytes,
        stand_ins=stdlib.stand_ins(sources, modules),
        volatile=_rules(volatile),
        on_warning=on_warning,
    )


def replay(
    path: str | Path,
    *,
    policy: Policy = "strict",
    redact: Redact = None,
    allow: Allow | None = None,
    allow_passthrough_tools: Collection[str] = (),
    volatile: Iterable[AnyRule] = (),
    stall_s: float = STALL_S,
    receipt: str | Path | None = None,
    on_divergence: Callable[[ReplayDivergence], None] | None = None,
) -> ReplayRun:
    """Replay the capture in *path*: every call in the block is answered from it, nothing goes live.

    ``strict`` raises :class:`~reenact.errors.Diverged` at the first difference, and again at the end of
    the block if the agent swallowed it; ``lenient`` collects differences in ``run.divergences`` and goes
    on with the nearest recorded answer. Secrets registered at capture must be registered here too.
    *allow_passthrough_tools* names tools that really run. *volatile* adds rules for values that may differ
    to those of the capture and of the nearest ``reenact.toml``. A call that the recorded agent gave up is
    reported when this one keeps waiting *stall_s* longer. The receipt is written to *receipt*; without
    it, to ``run.receipt`` alone.
    """
    if policy not in ("strict", "lenient"):
        raise UsageError(f"policy {policy!r} is unknown; choose strict or lenient")
    return ReplayRun(
        path,
        policy=policy,
        redact=redact,
        allow=allow,
        allow_passthrough_tools=allow_passthrough_tools,
        volatile=_rules(volatile),
        stall_s=stall_s,
        receipt_path=Path(receipt).absolute() if receipt is not None else None,
        on_divergence=on_divergence,
    )


def project_rules(start: Path) -> tuple[VolatileRule, ...]:
    """The rules of the nearest ``reenact.toml`` in *start* or above it."""
    file = find_project_file(start)
    return () if file is None else rules_in(read_project(file), file=str(file))


def _rules(given: Iterable[AnyRule]) -> list[VolatileRule]:
    try:
        return [read_rule(rule) for rule in given]
    except FormatError as error:
        raise UsageError(f"volatile: {error}") from None


def profile_and_secrets(redact: Redact) -> tuple[RedactionProfile | None, tuple[str, ...]]:
    """Both parts of *redact*; no profile where it names none."""
    if redact is None:
        return None, ()
    if isinstance(redact, str):
        return _known_profile(redact), ()
    if isinstance(redact, tuple) and len(redact) == 2 and not isinstance(redact[1], str):
        return _known_profile(redact[0]), tuple(redact[1])
    return None, tuple(cast(Sequence[str], redact))


def _known_profile(name: str | None) -> RedactionProfile | None:
    if name is not None and name not in PROFILES:
        raise UsageError(f"redact={name!r} is unknown; name a profile, or give a list of secrets")
    return name


def _redactor(profile: RedactionProfile, values: Sequence[str], salt: bytes) -> Redactor:
    """Hides *values*, and unless nothing is to be hidden, the keys that this process's environment holds."""
    known = environment_secrets(os.environ) if profile != "none" else []
    return Redactor(profile, secrets=[*values, *known], salt=salt)


def _after_fork_in_child() -> None:
    for context in open_contexts():
        if isinstance(context, ReplayEngine):
            context.turns.close()


os.register_at_fork(after_in_child=_after_fork_in_child)
