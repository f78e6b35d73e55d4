"""Compares a log with its receipt, and the tool calls of two logs.

Two lists of tool calls are matched entry by entry: by id, or by content and then by order. Everything that a
receipt claims is compared with the log. Of two logs, calls and outputs are compared.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from reenact.canonical import JsonValue
from reenact.check.findings import Finding
from reenact.formats.dialects import Event
from reenact.formats.dialects.current import ToolError
from reenact.formats.lines import Line
from reenact.formats.receipt import LegacyReceipt, LegacyVerification, Receipt
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import is_same_f32
from reenact.formats.rfc3339 import moment
from reenact.formats.session import Session, ToolUse, call_key, side_effects_of, time_of


class Entry(NamedTuple):
    """A tool call with its outcome in a log or a receipt; missing values are ``ABSENT``."""

    tool: str
    params_hash: str
    output_hash: str
    latency_ms: Any = ABSENT
    ok: Any = ABSENT
    error: Any = ABSENT
    step_utility: Any = ABSENT
    side_effects: Any = ABSENT
    id: str | None = None
    line: int = 0
    """The line of the result, or of the call without a result; 0 in a receipt, which has no lines."""
    call_line: int = 0
    place: int = 0
    """The position among the calls of a receipt, from 1."""

    @property
    def name(self) -> str:
        return self.tool if self.id is None else f"{self.tool} ({self.id})"


class Match(NamedTuple):
    """A pair of entries, or one entry without a counterpart."""

    ours: Entry | None
    theirs: Entry | None
    differing: tuple[str, ...] = ()
    """The fields that both have with different values."""


NO_RESULT: Final = "none"
"""Replaces the hash of a missing output."""
COMPARED: Final = (
    "tool", "params_hash", "output_hash", "ok", "error", "latency_ms", "step_utility", "side_effects",
)  # fmt: skip


_TAG_NAMES: Final = ("type", "kind", "tag", "effect", "name")
"""Members that may hold the tag of a side effect that is an object."""


def entry_of(use: ToolUse) -> Entry:
    """The entry of a tool call in a log."""
    result = use.result
    if result is None:
        return Entry(
            use.call.tool,
            use.call.params_hash,
            NO_RESULT,
            id=call_key(use.call),
            line=use.line,
            call_line=use.line,
        )
    return Entry(
        tool=use.call.tool,
        params_hash=use.call.params_hash,
        output_hash=result.output_hash,
        latency_ms=result.latency_ms,
        ok=getattr(result, "ok", ABSENT),
        # The older dialect has no errors, so a missing one proves nothing.
        error=_error(result.error) if hasattr(result, "error") else ABSENT,
        step_utility=result.step_utility,
        side_effects=side_effects_of(result),
        id=call_key(use.call),
        line=use.line,
        call_line=use.call_line,
    )


def match_entries(
    ours: Iterable[Entry], theirs: Sequence[Entry], *, by_id: bool, compared: Sequence[str] = COMPARED
) -> Iterator[Match]:
    """Match every entry of both lists once; equal pairs come first, the others at the end.

    Without ids, equal entries are paired first, then those with equal calls, then those of one tool. So a
    missing entry does not make all later ones differ.
    """
    left = dict(enumerate(theirs))
    unmatched: Iterable[Entry] = ours
    for key in (_id,) if by_id else (_content, _call, _tool):
        places: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for place, entry in left.items():
            places[key(entry)].append(place)
        rest: list[Entry] = []
        for entry in unmatched:
            if places.get(key(entry)):
                yield _match(entry, left.pop(places[key(entry)].popleft()), compared)
            else:
                rest.append(entry)
        unmatched = rest
    yield from (Match(entry, None) for entry in unmatched)
    yield from (Match(None, entry) for entry in left.values())


def _id(entry: Entry) -> Hashable:
    return entry.id


def _content(entry: Entry) -> Hashable:
    return entry.tool, entry.params_hash, entry.output_hash


def _call(entry: Entry) -> Hashable:
    return entry.tool, entry.params_hash


def _tool(entry: Entry) -> Hashable:
    return entry.tool


def _match(ours: Entry, theirs: Entry, compared: Sequence[str]) -> Match:
    differing = tuple(name for name in compared if _differs(name, getattr(ours, name), getattr(theirs, name)))
    return Match(ours, theirs, differing)


def _differs(name: str, ours: Any, theirs: Any) -> bool:
    if ours is ABSENT or theirs is ABSENT or ours == theirs:
        return False
    if name == "error" and isinstance(ours, ToolError):
        if isinstance(theirs, str):
            return theirs not in (ours.name, ours.message, f"{ours.name}: {ours.message}")
        return not isinstance(theirs, ToolError) or not _members(theirs).items() <= _members(ours).items()
    if name == "side_effects":
        return len(ours) != len(theirs) or not all(map(_is_effect, ours, theirs))
    # Some emitters write numbers as 32-bit floats in one place and as decimals in the other.
    return not (isinstance(ours, float) and isinstance(theirs, int | float) and is_same_f32(ours, theirs))


def _is_effect(ours: object, theirs: object) -> bool:
    """Whether a claimed effect is the one in the log: the same object, or one with the same tag."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.items() >= theirs.items()
    return _effect_tag(ours) == _effect_tag(theirs)


def _effect_tag(effect: object) -> str:
    """The tag of a side effect; some receipts describe effects by objects."""
    if isinstance(effect, dict):
        effect = next((effect[name] for name in _TAG_NAMES if isinstance(effect.get(name), str)), effect)
    return str(effect)


def _error(error: object) -> object:
    """An error in the form in which it is compared; ``None`` for a result without one."""
    return None if error is ABSENT else error


AnyReceipt: TypeAlias = Receipt | LegacyReceipt

SAME_TIME: Final = timedelta(seconds=1)
"""Emitters read the clock once for the log and once for the receipt."""
MADE_WITHIN: Final = timedelta(minutes=1)
"""How long after its session's end a receipt is made."""


def check_receipt(
    receipt: AnyReceipt,
    lines: Iterable[tuple[Line, Event]],
    *,
    trajectory_hash: str,
    file: str,
    log_file: str,
    on_unproven: Callable[[str], None] = lambda _: None,
) -> list[Finding]:
    """The differences between *receipt*, in *file*, and the log of *lines*, which are read once.

    Calls are matched by id if the receipt has ids, else by content and order. *on_unproven* is called with
    the name of each claim about which the log has no information.
    """
    session = Session()
    uses = (use for use in session.tool_uses(lines) if use.result is not None)
    calls = _ReceiptCalls(receipt, file, log_file)
    calls.compare(uses)
    for name in sorted({*calls.unproven, *_unproven_claims(receipt, session)}):
        on_unproven(name)
    claims = [*_session_claims(receipt, session), *_verification_claims(receipt, session)]
    return [
        *_session_findings(receipt, session, log_file),
        *_trajectory_findings(receipt, trajectory_hash, log_file),
        *calls.findings,
        *(
            Finding("receipt_differs", _describe_claim(name, claimed, found), log_file, line=line)
            for name, claimed, found, line in claims
        ),
    ]


_Claim: TypeAlias = tuple[str, str, str, int | None]
"""The name of a claim, its value, the value in the log, and the line of the latter."""


def _session_findings(receipt: AnyReceipt, session: Session, log_file: str) -> Iterator[Finding]:
    if session.start is not None and session.start.session_id != receipt.session_id:
        message = f"the receipt is of session {receipt.session_id!r}, the log of {session.start.session_id!r}"
        yield Finding("receipt_session", message, log_file, line=session.start_line)


def _trajectory_findings(receipt: AnyReceipt, found: str, log_file: str) -> Iterator[Finding]:
    if isinstance(receipt, Receipt) and receipt.trajectory_hash != found:
        message = f"the receipt is for another log: it says {receipt.trajectory_hash}, this one has {found}"
        yield Finding("trajectory_hash", message, log_file)


def _session_claims(receipt: AnyReceipt, session: Session) -> Iterator[_Claim]:
    """Claims about the whole session that the log contradicts."""
    start, end = session.start, session.end
    if start is not None and receipt.policy_bundle_id != session.policy:
        yield "policy_bundle_id", repr(receipt.policy_bundle_id), repr(session.policy), session.start_line
    if isinstance(receipt, Receipt):
        yield from _repo_claims(receipt, session)
        yield from _time_claim("created_at", receipt.created_at, end, session.end_line, MADE_WITHIN)
        return
    yield from _time_claim("started_at", receipt.started_at, start, session.start_line, SAME_TIME)
    yield from _time_claim("completed_at", receipt.completed_at, end, session.end_line, SAME_TIME)
    if end is not None and not is_same_f32(receipt.final_confidence, end.confidence):
        yield "final_confidence", str(receipt.final_confidence), str(end.confidence), session.end_line
    issue = None if session.issue_number is ABSENT else session.issue_number
    is_known = session.has_plans or session.issue_number is not ABSENT
    if is_known and receipt.issue_number is not ABSENT and receipt.issue_number != issue:
        yield "issue_number", str(receipt.issue_number), str(issue), session.start_line
    plan = None if session.plan_hash is ABSENT else session.plan_hash
    is_known = session.has_plans or session.plan_hash is not ABSENT
    if is_known and receipt.plan_hash is not ABSENT and receipt.plan_hash != plan:
        yield "plan_hash", str(receipt.plan_hash), str(plan), None


def _unproven_claims(receipt: AnyReceipt, session: Session) -> Iterator[str]:
    """Claims about the whole session for which the log has no information."""
    start, end = session.start, session.end
    logged = {
        "created_at": None if end is None else time_of(end),
        "started_at": None if start is None else time_of(start),
        "completed_at": None if end is None else time_of(end),
        "final_confidence": None if end is None else end.confidence,
        "issue_number": session.issue_number if not session.has_plans else 0,
        "plan_hash": session.plan_hash if not session.has_plans else "",
        "repo": None if start is None else "",
        "signature": None,
        "payments": None,
    }
    for name, found in logged.items():
        is_claimed = getattr(receipt, name, ABSENT) not in (ABSENT, None, [])
        if is_claimed and found in (ABSENT, None):
            yield name


def _repo_claims(receipt: Receipt, session: Session) -> Iterator[_Claim]:
    if receipt.repo is ABSENT or session.start is None:
        return
    logged = getattr(session.start, "repo", ABSENT)
    for name in (*receipt.repo.__struct_fields__, *receipt.repo.extra):
        claimed = _member(receipt.repo, name)
        found = ABSENT if logged is ABSENT else _member(logged, name)
        if claimed is not ABSENT and claimed != found:
            yield (
                f"repo.{name}",
                repr(claimed),
                "nothing" if found is ABSENT else repr(found),
                session.start_line,
            )


def _member(record: Any, name: str) -> object:
    if name == "extra":
        return ABSENT
    return record.extra[name] if name in record.extra else getattr(record, name, ABSENT)


def _time_claim(
    name: str, claimed: object, event: Event | None, line: int | None, tolerance: timedelta
) -> Iterator[_Claim]:
    """A claimed time may be later than its event by *tolerance*, and earlier only by ``SAME_TIME``."""
    logged = ABSENT if event is None else time_of(event)
    if not isinstance(claimed, str) or not isinstance(logged, str):
        return
    if not -SAME_TIME <= moment(claimed) - moment(logged) <= tolerance:
        yield name, claimed, logged, line


def _verification_claims(receipt: AnyReceipt, session: Session) -> Iterator[_Claim]:
    claimed, found = receipt.verification, session.verification
    if claimed is ABSENT or claimed is None:
        return
    if isinstance(claimed, LegacyVerification):
        logged: dict[str, JsonValue] = {
            "commands_run": [run.command for run in found],
            "exit_codes": [run.exit_code for run in found],
            "verification_delta": session.verification_delta,
        }
        for name, value in logged.items():
            if getattr(claimed, name) != value:
                yield f"verification.{name}", str(getattr(claimed, name)), str(value), None
        return
    if len(claimed) != len(found):
        yield "verification", f"{len(claimed)} commands", f"{len(found)}", None
        return
    for number, (claim, run) in enumerate(zip(claimed, found, strict=True)):
        for name in _VERIFIED:
            claimed, logged_value = getattr(claim, name), getattr(run, name)
            if claimed is not ABSENT and claimed != (None if logged_value is ABSENT else logged_value):
                place = f"verification[{number}].{name}"
                yield place, repr(claimed), "nothing" if logged_value is ABSENT else repr(logged_value), None


_VERIFIED: Final = ("command", "exit_code", "cwd", "duration_ms", "verification_delta")


class _ReceiptCalls:
    """The calls that a receipt lists, compared with those of the log."""

    def __init__(self, receipt: AnyReceipt, file: str, log_file: str) -> None:
        self._receipt = receipt
        self._file = file
        self._log_file = log_file
        self.findings: list[Finding] = []
        self.unproven: set[str] = set()
        """The members of claimed calls for which the log has no information."""

    def compare(self, uses: Iterable[ToolUse]) -> None:
        """Compare all *uses*; a receipt without a list of calls claims nothing about them."""
        if self._receipt.tool_calls is ABSENT:
            deque(uses, maxlen=0)
            return
        matched: list[tuple[Entry, Entry]] = []
        by_id = isinstance(self._receipt, LegacyReceipt)
        for match in match_entries(map(entry_of, uses), _claimed_entries(self._receipt), by_id=by_id):
            if match.ours is None or match.theirs is None or match.differing:
                self.findings.append(self._finding(match))
            if match.ours is not None and match.theirs is not None:
                matched.append((match.ours, match.theirs))
                self.unproven.update(
                    f"tool_calls.{name}"
                    for name in COMPARED
                    if getattr(match.ours, name) is ABSENT
                    and getattr(match.theirs, name) not in (ABSENT, None, [])
                )
        self._check_order(matched)

    def _finding(self, match: Match) -> Finding:
        ours, theirs = match.ours, match.theirs
        if ours is None:
            assert theirs is not None
            return Finding("log_lacks", f"{theirs.name} is in the receipt, not in the log", self._file)
        if theirs is None:
            message = f"{ours.tool} is in the log, not in the receipt"
            return Finding("receipt_lacks", message, self._log_file, line=ours.line)
        claims = "; ".join(
            _describe_claim(name, _describe(getattr(theirs, name)), _describe(getattr(ours, name)))
            for name in match.differing
        )
        return Finding("receipt_differs", f"{ours.tool}: {claims}", self._log_file, line=ours.line)

    def _check_order(self, matched: list[tuple[Entry, Entry]]) -> None:
        """A receipt lists calls in the order of the calls or of their results."""
        matched.sort(key=lambda pair: pair[1].place)
        for order in ("line", "call_line"):
            places = [getattr(ours, order) for ours, _ in matched]
            if places == sorted(places):
                return
        for (before, _), (ours, theirs) in pairwise(matched):
            if ours.line < before.line:
                message = (
                    f"{ours.tool} is call {theirs.place} of the receipt, but comes before {before.tool} here"
                )
                self.findings.append(Finding("receipt_order", message, self._log_file, line=ours.line))
                return


def _describe_claim(name: str, claimed: str, found: str) -> str:
    return f"{name}: the receipt says {claimed}, the log {found}"


def _describe(value: object) -> str:
    if value is ABSENT or value is None:
        return "nothing"
    return str(_members(value) if isinstance(value, ToolError) else value)


def _members(error: ToolError) -> dict[str, JsonValue]:
    """All members of an error, including unknown ones."""
    own = {name: getattr(error, name) for name in ("name", "message", "stack")}
    return {name: value for name, value in own.items() if value is not ABSENT} | error.extra


def _claimed_entries(receipt: AnyReceipt) -> list[Entry]:
    claimed: Any = receipt.tool_calls
    return [
        Entry(
            tool=claim.tool,
            params_hash=claim.params_hash,
            output_hash=claim.output_hash,
            latency_ms=claim.latency_ms,
            ok=getattr(claim, "ok", ABSENT),
            error=getattr(claim, "error", ABSENT),
            step_utility=getattr(claim, "step_utility", ABSENT),
            side_effects=claim.side_effects,
            id=getattr(claim, "id", None),
            place=place,
        )
        for place, claim in enumerate(claimed, 1)
    ]


_COMPARED: Final = ("tool", "params_hash", "output_hash")

Lines = Iterable[tuple[Line, Event]]


def check_against(ours: Lines, theirs: Lines, *, file: str, other_file: str) -> list[Finding]:
    """The differences between the tool calls of two logs, by hash; ids, times and latencies are ignored.

    The calls of the other log are kept in memory.
    """
    findings: list[Finding] = []
    latest = 0
    others = _entries(theirs)
    for match in match_entries(_entries(ours), others, by_id=False, compared=_COMPARED):
        entry, other = match.ours, match.theirs
        if entry is None:
            assert other is not None
            message = f"{other.tool} is called at {other_file}:{other.line}, and not here"
            findings.append(Finding("call_missing", message, file))
        elif other is None:
            message = f"{entry.tool} is called here, and not in {other_file}"
            findings.append(Finding("call_added", message, file, line=entry.line))
        elif match.differing:
            findings.append(_describe_difference(entry, other, match.differing, file, other_file))
        elif other.line < latest:
            message = f"{entry.tool} comes earlier in {other_file}, at line {other.line}"
            findings.append(Finding("call_order", message, file, "warning", entry.line))
        else:
            latest = other.line
    return findings


def _entries(lines: Lines) -> list[Entry]:
    return [entry_of(use) for use in Session().tool_uses(lines)]


def _describe_difference(
    entry: Entry, other: Entry, differing: tuple[str, ...], file: str, other_file: str
) -> Finding:
    names = " and ".join(name.removesuffix("_hash") for name in differing)
    code = "output_differs" if differing == ("output_hash",) else "call_differs"
    message = f"{entry.tool}: other {names} than at {other_file}:{other.line}"
    return Finding(code, message, file, line=entry.line)
