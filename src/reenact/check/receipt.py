"""Whether a log is what its receipt claims: the session, every tool call, every verification."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from reenact.check.entries import Entry, Match, entry_of, match_entries
from reenact.check.findings import Finding
from reenact.formats.dialects import Event, current, legacy
from reenact.formats.lines import Line
from reenact.formats.receipt import LegacyReceipt, Receipt
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import ToolCall, ToolResult
from reenact.formats.tool_uses import tool_uses

AnyReceipt: TypeAlias = Receipt | LegacyReceipt


def check_receipt(
    receipt: AnyReceipt,
    lines: Iterable[tuple[Line, Event]],
    *,
    trajectory_hash: str,
    file: str,
    log_file: str,
) -> list[Finding]:
    """What does not agree between *receipt*, in *file*, and the log of *lines*; one pass over them.

    Calls are matched by id where the receipt has ids, else by content and order.
    """
    session = _Session()
    uses = (entry_of(use) for use in tool_uses(session.watch(lines)) if use.result is not None)
    by_id = isinstance(receipt, LegacyReceipt)
    matches = [match for match in match_entries(uses, _claims(receipt), by_id=by_id) if _is_fault(match)]
    findings = [_of_match(match, file, log_file) for match in matches]
    return [
        *_of_session(receipt, session, log_file),
        *_of_trajectory(receipt, trajectory_hash, log_file),
        *findings,
        *_of_verification(receipt, session, log_file),
    ]


class _Session:
    """What a log says beside its tool calls."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.line = 1
        self.verified: list[tuple[str, int]] = []

    def watch(self, lines: Iterable[tuple[Line, Event]]) -> Iterator[tuple[Line, Event]]:
        """The same *lines*; what is needed is noted in passing."""
        for line, event in lines:
            if isinstance(event, ToolCall | ToolResult):
                yield line, event
            elif isinstance(event, current.SessionStart | legacy.SessionStart):
                self.id, self.line = event.session_id, line.number
            elif isinstance(event, current.Verification):
                self.verified.append((event.command, event.exit_code))
            elif isinstance(event, legacy.Verification):
                self.verified += zip(event.commands, event.exit_codes, strict=False)


def _claims(receipt: AnyReceipt) -> list[Entry]:
    claimed: Any = receipt.tool_calls
    return [
        Entry(
            tool=claim.tool,
            params_hash=claim.params_hash,
            output_hash=claim.output_hash,
            latency_ms=claim.latency_ms,
            ok=getattr(claim, "ok", ABSENT),
            step_utility=getattr(claim, "step_utility", ABSENT),
            side_effects=claim.side_effects,
            id=getattr(claim, "id", None),
        )
        for claim in ([] if claimed is ABSENT else claimed)
    ]


def _is_fault(match: Match) -> bool:
    return match.ours is None or match.theirs is None or bool(match.differing)


def _of_match(match: Match, file: str, log_file: str) -> Finding:
    ours, theirs = match.ours, match.theirs
    if ours is None:
        assert theirs is not None
        return Finding("log_lacks", f"{theirs.name} is in the receipt, not in the log", file)
    if theirs is None:
        return Finding(
            "receipt_lacks", f"{ours.tool} is in the log, not in the receipt", log_file, line=ours.line
        )
    told = "; ".join(
        f"{name}: the receipt says {getattr(theirs, name)}, the log {getattr(ours, name)}"
        for name in match.differing
    )
    return Finding("receipt_differs", told, log_file, line=ours.line)


def _of_session(receipt: AnyReceipt, session: _Session, log_file: str) -> Iterator[Finding]:
    if session.id is not None and session.id != receipt.session_id:
        message = f"the receipt is of session {receipt.session_id!r}, the log of {session.id!r}"
        yield Finding("receipt_session", message, log_file, line=session.line)


def _of_trajectory(receipt: AnyReceipt, found: str, log_file: str) -> Iterator[Finding]:
    if isinstance(receipt, Receipt) and receipt.trajectory_hash != found:
        message = f"the receipt is for another log: it says {receipt.trajectory_hash}, this one has {found}"
        yield Finding("trajectory_hash", message, log_file)


def _of_verification(receipt: AnyReceipt, session: _Session, log_file: str) -> Iterator[Finding]:
    claimed = _verified(receipt)
    if claimed is not None and claimed != session.verified:
        message = f"verification: the receipt says {claimed}, the log {session.verified}"
        yield Finding("receipt_differs", message, log_file)


def _verified(receipt: AnyReceipt) -> list[tuple[str, int]] | None:
    verification = receipt.verification
    if verification is ABSENT or verification is None:
        return None
    if isinstance(verification, list):
        return [(one.command, one.exit_code) for one in verification]
    return list(zip(verification.commands_run, verification.exit_codes, strict=False))
