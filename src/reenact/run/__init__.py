"""``capture()`` and ``replay()``: the only place where seams, context, store and guard are joined."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final

from reenact.boundary import RunMode
from reenact.errors import UsageError
from reenact.formats.capture import BLOB_THRESHOLD_BYTES, MAX_BLOB_THRESHOLD_BYTES
from reenact.formats.divergence import ReplayDivergence
from reenact.formats.volatile import AnyRule
from reenact.gateway.lane import is_below
from reenact.recorder.sink import FileCaptureSink
from reenact.replayer.allow import Allow
from reenact.replayer.engine import Policy
from reenact.run.capturing import CaptureRun
from reenact.run.provenance import origin_of_run
from reenact.run.redact import Redact
from reenact.run.replaying import STALL_S, ReplayRun
from reenact.run.rules import read_rules
from reenact.run.run import Run
from reenact.run.updating import UpdateRun
from reenact.seams import stdlib
from reenact.seams.stdlib.chosen import Source
from reenact.store.durable import Durability

__all__ = ["MODE_VARIABLE", "CaptureRun", "ReplayRun", "Run", "UpdateRun", "capture", "replay", "update"]

MODE_VARIABLE: Final = "REENACT_MODE"


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
    allow: Allow | None = None,
    policy_bundle_id: str | None = None,
    issue_number: int | None = None,
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
    these rules are kept in the capture. What goes out past everything that is recorded (a raw socket, a name
    lookup) is a warning, because a replay refuses it, unless *allow* has it. *policy_bundle_id* and
    *issue_number* say under which policy and for which issue the run is made; without them the environment
    does (``REENACT_POLICY_BUNDLE_ID``, ``REENACT_ISSUE_NUMBER``, and what continuous integration sets), and
    the repository is that of git. With *mode*, or ``REENACT_MODE`` in the environment, the same block can be
    switched ``off`` or replayed.
    """
    chosen = mode or os.environ.get(MODE_VARIABLE) or "capture"
    if chosen == "off":
        return Run()
    if chosen == "replay":
        return replay(path, redact=redact, volatile=volatile, allow=allow)
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
        volatile=read_rules(volatile),
        allow=allow,
        leads_programs=True,
        on_warning=on_warning,
        origin=origin_of_run(policy_bundle_id, issue_number),
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
        volatile=read_rules(volatile),
        stall_s=stall_s,
        receipt_path=Path(receipt).absolute() if receipt is not None else None,
        on_divergence=on_divergence,
        is_ours=lambda lane: not is_below(lane),
    )


def update(path: str | Path, *, redact: Redact = None, volatile: Iterable[AnyRule] = ()) -> UpdateRun:
    """Answer what still matches from the capture in *path*, and make and record what does not.

    Nothing is changed until :meth:`~reenact.run.updating.UpdateRun.accept` is called after the block. Secrets
    registered at capture must be registered here too.
    """
    return UpdateRun(path, redact=redact, volatile=read_rules(volatile))
