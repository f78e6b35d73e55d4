"""``capture()``, ``replay()`` and ``run()``: where seams, context, store and guard are put together."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from types import ModuleType
from typing import Final, Literal, TypeAlias, get_args

from reenact.boundary import RunMode
from reenact.errors import UsageError, raises_own_errors
from reenact.formats.capture import BLOB_THRESHOLD_BYTES, MAX_BLOB_THRESHOLD_BYTES
from reenact.formats.divergence import ReplayDivergence
from reenact.formats.volatile import AnyRule
from reenact.gateway.lane import is_below
from reenact.recorder.sink import CaptureSink, FileCaptureSink
from reenact.replayer.allow import AllowLike, read_allow
from reenact.replayer.engine import Policy
from reenact.replayer.step import OnUnmatched
from reenact.run.capturing import CaptureRun, Identity
from reenact.run.provenance import origin_of_run
from reenact.run.redact import Redact
from reenact.run.replaying import STALL_S, ReplayRun
from reenact.run.rules import check_on_unmatched, choose_policy, read_rules
from reenact.run.run import Run
from reenact.run.updating import UpdateRun
from reenact.seams import stdlib
from reenact.seams.stdlib.sources import Source
from reenact.store.durable import Durability
from reenact.store.place import discard, put_in_place, staging_folder
from reenact.volatile.places import working_folder
from reenact.workspace.recording import Base, WorkspaceOrder
from reenact.workspace.scan import LIMIT_BYTES

__all__ = [
    "MODE_VARIABLE",
    "CaptureRun",
    "ReplayRun",
    "Run",
    "UpdateRun",
    "capture",
    "replay",
    "run",
    "update",
]

MODE_VARIABLE: Final = "REENACT_MODE"


def capture(
    path: str | Path | None = None,
    *,
    sink: CaptureSink | None = None,
    mode: RunMode | None = None,
    redact: Redact = None,
    durability: Durability = "process",
    blob_threshold_bytes: int = BLOB_THRESHOLD_BYTES,
    sources: Collection[Source] | None = None,
    modules: Collection[str] = (),
    environ: Collection[str] = (),
    volatile: Iterable[AnyRule] = (),
    allow: AllowLike = (),
    policy_bundle_id: str | None = None,
    issue_number: int | None = None,
    identity: Identity | None = None,
    workspace: str | Path | None = None,
    workspace_base: Base | None = None,
    workspace_limit_bytes: int = LIMIT_BYTES,
    on_warning: Callable[[str], None] | None = None,
) -> Run:
    """Record what happens in the block into the new directory *path*, or where *sink* puts it.

    *sink* is any object with the methods of :class:`~reenact.recorder.sink.CaptureSink`; it gets the events
    with secrets redacted. If it fails, the run goes on without recording, with a warning, and the status in
    the manifest is not ``ok``.

    *redact* is a profile (``none``, ``default``, ``strict``), a list of secrets to hide in every form, or
    both as a pair; the profile is ``default``, and ``strict`` where ``CI`` is set. *durability* is
    ``process``, which survives ``kill -9``, or ``disk``, which survives a power cut. *sources* names what
    of the standard library is recorded in the agent's own modules (``time``, ``random``, ``uuid``,
    ``secrets``, ``subprocess``, ``files``, ``cwd``, ``environ``; by default all but the last); *modules* are
    these modules, by name or pattern; by default all that do not belong to a library.
    *environ* names single variables of the environment to record. *volatile* names values that may
    differ in a replay, as ``"llm $.body.messages[*].content =~ Today is [0-9-]+"``;
    these rules are stored in the capture. Traffic that cannot be recorded (a raw socket, a name lookup) gives
    a warning, because a replay refuses it, unless *allow* names it. *policy_bundle_id* and
    *issue_number* are the policy and the issue of the run; by default they come from the environment
    (``REENACT_POLICY_BUNDLE_ID``, ``REENACT_ISSUE_NUMBER``, and the variables of CI), and the repository
    comes from git. With an *identity* (ids, salt, times), such as ``reenact.testing.FIXED``,
    the captures of one deterministic run are equal byte for byte. *workspace* is a folder whose files are
    recorded too, at the start, before and after calls and at the end, except ignored files (``.gitignore``),
    files larger than *workspace_limit_bytes* and files whose names suggest keys; with the *workspace_base*
    ``git``, files that equal the commit's are not stored. *mode*, or ``REENACT_MODE`` in the environment,
    switches the same block ``off`` or replays it.
    """
    chosen = mode or os.environ.get(MODE_VARIABLE) or "capture"
    if chosen == "off":
        return Run()
    if chosen == "replay":
        if path is None:
            raise UsageError("a replay reads a capture directory; give its path as well as the sink")
        return replay(path, redact=redact, volatile=volatile, allow=allow)
    if chosen != "capture":
        raise UsageError(f"mode {chosen!r} is unknown; choose off, capture or replay")
    if not 0 <= blob_threshold_bytes <= MAX_BLOB_THRESHOLD_BYTES:
        raise UsageError(
            f"blob_threshold_bytes={blob_threshold_bytes}: choose 0 to {MAX_BLOB_THRESHOLD_BYTES}"
        )
    if sink is None:
        if path is None:
            raise UsageError("capture() needs a path, or a sink")
        sink = FileCaptureSink(path, durability=durability)
    files = None
    if workspace is not None:
        ours = () if path is None else (path,)
        files = WorkspaceOrder.for_folder(
            workspace, limit_bytes=workspace_limit_bytes, base=workspace_base, leave_out=ours
        )
    return CaptureRun(
        sink,
        redact=redact,
        blob_threshold_bytes=blob_threshold_bytes,
        stand_ins=stdlib.stand_ins(sources, modules, environ),
        volatile=read_rules(volatile),
        allow=read_allow(allow),
        leads_programs=True,
        on_warning=on_warning,
        origin=origin_of_run(policy_bundle_id, issue_number),
        identity=identity,
        workspace=files,
    )


def replay(
    path: str | Path,
    *,
    policy: Policy | None = None,
    on_unmatched: OnUnmatched = "error",
    redact: Redact = None,
    allow: AllowLike = (),
    passthrough: Collection[str] = (),
    volatile: Iterable[AnyRule] = (),
    stall_s: float = STALL_S,
    receipt: str | Path | None = None,
    workspace: str | Path | None = None,
    on_divergence: Callable[[ReplayDivergence], None] | None = None,
) -> ReplayRun:
    """Replay the capture in *path*: every call in the block is answered from it, nothing goes live.

    ``strict`` raises :class:`~reenact.errors.Diverged` at the first difference, and again at the end of the
    block if the agent swallowed it; ``lenient`` collects differences in ``run.divergences`` and goes on with
    the nearest recorded answer. Without *policy*, ``REENACT_POLICY`` in the environment decides, then the
    nearest ``reenact.toml``, then it is ``strict``. *on_unmatched* says what a lenient replay does with a
    call that resembles no recorded one: ``error`` raises the divergence in the agent, ``empty`` answers with
    an empty value of the right kind, ``live`` really makes the call. All are divergences, and the receipt
    lists the live calls. Secrets registered at capture must be registered here too. *passthrough* names tools
    that really run; *allow* names what may be reached: ports of this host, ``"HOST:PORT"``, paths of Unix
    sockets, tuples of a command's first words, or ``"loopback"``. *volatile* adds rules for values that may
    differ to those of the capture and of the nearest ``reenact.toml``. A call that the recorded agent gave up
    is reported if this agent waits *stall_s* longer. The receipt is written to the file *receipt*, and is
    always in ``run.receipt``. *workspace* is a folder in which the agent works, with the recorded files of
    the start (:func:`reenact.checkout` with ``at=1`` makes it): changes by answered calls are made again, and
    files that differ before a call or at the end are divergences.
    """
    policy = choose_policy(policy, Path(working_folder()))
    return ReplayRun(
        path,
        policy=policy,
        on_unmatched=check_on_unmatched(on_unmatched, policy),
        redact=redact,
        allow=read_allow(allow),
        passthrough=passthrough,
        volatile=read_rules(volatile),
        stall_s=stall_s,
        receipt_path=Path(receipt).absolute() if receipt is not None else None,
        on_divergence=on_divergence,
        is_ours=lambda lane: not is_below(lane),
        workspace=Path(os.path.realpath(workspace)) if workspace is not None else None,
        compares_end=True,
    )


def update(
    path: str | Path,
    *,
    redact: Redact = None,
    volatile: Iterable[AnyRule] = (),
    workspace: str | Path | None = None,
) -> UpdateRun:
    """Answer recorded calls from the capture in *path*, and make and record all others.

    The capture does not change until :meth:`~reenact.run.updating.UpdateRun.accept` is called after the
    block. Secrets registered at capture must be registered here too. *workspace* is as in :func:`replay`, and
    must be given if the capture has files.
    """
    folder = Path(os.path.realpath(workspace)) if workspace is not None else None
    return UpdateRun(path, redact=redact, volatile=read_rules(volatile), workspace=folder)


Repeat: TypeAlias = Literal["auto", "once", "always", "never", "update"]


def run(
    path: str | Path,
    *,
    mode: Repeat = "auto",
    policy: Policy | None = None,
    redact: Redact = None,
    sources: Collection[Source] | None = None,
    modules: Collection[str] = (),
    environ: Collection[str] = (),
    volatile: Iterable[AnyRule] = (),
    allow: AllowLike = (),
    passthrough: Collection[str] = (),
    on_warning: Callable[[str], None] | None = None,
) -> Run:
    """Record the block into *path*, or replay it from there, as *mode* says.

    ``once`` records if there is no capture yet, else replays; ``always`` records again, and a block that ends
    well replaces the capture; ``never`` only replays; ``update`` answers recorded calls, makes and records
    all others, and replaces the capture likewise. ``auto`` is ``never`` if ``CI`` is set, so that CI never
    records a forgotten capture, and otherwise ``once``. ``REENACT_MODE=off`` switches all of them off. The
    other arguments are those of :func:`capture` and :func:`replay`.
    """
    if mode not in get_args(Repeat):
        raise UsageError(f"mode {mode!r} is unknown; choose {', '.join(get_args(Repeat))}")
    if os.environ.get(MODE_VARIABLE) == "off":
        return Run()
    place = Path(path)
    is_there = place.exists() and not (place.is_dir() and not any(place.iterdir()))
    if mode == "auto":
        mode = "never" if os.environ.get("CI") else "once"
    if mode == "never" and not is_there:
        raise UsageError(f"{place}: there is no capture; record it with mode='once'")
    if mode == "never" or (mode == "once" and is_there):
        return replay(
            place, policy=policy, redact=redact, volatile=volatile, allow=allow, passthrough=passthrough
        )
    if mode == "update" and is_there:
        return UpdateRun(place, redact=redact, volatile=read_rules(volatile), accepts_at_end=True)
    return CaptureRun(
        FileCaptureSink(staged := staging_folder(place)),
        redact=redact,
        blob_threshold_bytes=BLOB_THRESHOLD_BYTES,
        stand_ins=stdlib.stand_ins(sources, modules, environ),
        volatile=read_rules(volatile),
        allow=read_allow(allow),
        leads_programs=True,
        on_warning=on_warning,
        origin=origin_of_run(None, None),
        on_end=lambda is_good: put_in_place(staged, place) if is_good else discard(staged),
    )


class _Callable(ModuleType):
    """Makes this package callable: importing it binds the package, not the function, to ``reenact.run``."""

    __call__ = staticmethod(raises_own_errors(run))


sys.modules[__name__].__class__ = _Callable
