"""Assertions on the agent's memory and other state: what it read and wrote, and of which group."""

from __future__ import annotations

import re
from posixpath import normpath
from typing import Final

from reenact.errors import UsageError
from reenact.formats.trace import Trace, TraceEvent
from reenact.suite.events import MEMORY_TYPES, of_type, strings_in
from reenact.suite.params import Params
from reenact.suite.patterns import Searcher
from reenact.suite.verdict import Verdict, at, count_of, quote, verdict

BRIEF_CHARACTERS: Final = 220
"""Longest bullet line of an output that counts as brief."""
_BULLET_LINE: Final = re.compile(r"^[^\S\n]*[-*](?:\s[^\n]*\n?|\n)", re.ASCII | re.MULTILINE)


class MemoryRecall(Params, frozen=True, kw_only=True):
    expected_memory_fact: str
    group_id: str | None = None
    """The scenario's when absent."""


def memory_recall_same_group(trace: Trace, params: MemoryRecall) -> Verdict:
    """The group's memory was used, or the form of the output does not contradict the fact."""
    group_id = params.group_id if params.group_id is not None else trace.scenario.group_id
    found = [event for event in of_type(trace, *MEMORY_TYPES) if event.group_id == group_id]
    is_shown = _is_consistent(trace.final_output.content, params.expected_memory_fact)
    where = "without a group" if group_id is None else f"in group {group_id}"
    wanted = f"expected {quote(params.expected_memory_fact)} to be recalled {where}"
    message = f"{wanted}, found {count_of(len(found), 'memory event')}{at(found)}"
    message += f" and an output that is {'not ' if is_shown else ''}against it"
    observed = {"group_id": group_id, "memory_events": len(found), "shown_in_output": is_shown}
    return verdict(bool(found) or is_shown, message, observed=observed, events=found)


def _is_consistent(output: str, fact: str) -> bool:
    """Whether *output* does not contradict *fact*; only bullets and brevity can be checked."""
    found = _BULLET_LINE.findall(output)
    has_bullets = bool(found) or "bullet" not in fact.casefold()
    is_brief = all(len(bullet) <= BRIEF_CHARACTERS for bullet in found) or "brief" not in fact.casefold()
    return bool(output.strip()) and has_bullets and is_brief


def _group_of(trace: Trace, given: str | None) -> str:
    group_id = given if given is not None else trace.scenario.group_id
    if group_id is None:
        raise UsageError("params.group_id: required, because the scenario names no group")
    return group_id


class NoCrossGroupMemory(Params, frozen=True, kw_only=True):
    forbidden_group_ids: list[str]
    require_event_level_proof: bool = False


def no_cross_group_memory_use(trace: Trace, params: NoCrossGroupMemory) -> Verdict:
    """No memory of a forbidden group was read or written."""
    found = of_type(trace, *MEMORY_TYPES)
    foreign = [event for event in found if event.group_id in params.forbidden_group_ids]
    unproven = params.require_event_level_proof and not found
    wanted = f"expected no memory event in {', '.join(params.forbidden_group_ids)}"
    if unproven:
        message = f"{wanted}, and memory events to prove it; found none at all"
    else:
        groups = ", ".join(sorted({f"{event.group_id}:{event.data.get('path') or '?'}" for event in foreign}))
        message = (
            f"{wanted}, found {groups or 'none'}{at(foreign)} among {count_of(len(found), 'memory event')}"
        )
    observed = {"memory_events": len(found), "forbidden": [event.event_id for event in foreign]}
    return verdict(not foreign and not unproven, message, observed=observed, events=foreign or found)


class MemoryUpdate(Params, frozen=True, kw_only=True):
    expected_memory_fact: str | None = None
    """What the write must mention; if absent, any write counts."""
    correction: str | None = None
    """A pattern for the message that corrects the agent; writes before it do not count."""
    group_id: str | None = None
    """The scenario's when absent."""
    path: str | None = None


def memory_update_on_correction(trace: Trace, params: MemoryUpdate) -> Verdict:
    """After the user corrected it, the agent wrote the correction to the group's memory."""
    group_id = _group_of(trace, params.group_id)
    correction = _correction(trace, params.correction)
    since = correction.seq if isinstance(correction, TraceEvent) else 0
    writes = [
        event
        for event in of_type(trace, "memory_write")
        if event.group_id == group_id and event.seq > since and params.path in (None, event.data.get("path"))
    ]
    fact, searcher = params.expected_memory_fact, Searcher()
    good = [event for event in writes if fact is None or _is_mentioned(event, fact, searcher)]
    wanted = f"expected a memory write in group {group_id}" + (
        f" that mentions {quote(fact)}" if fact else ""
    )
    events = ([correction] if isinstance(correction, TraceEvent) else []) + (good or writes)
    observed = {"writes": len(writes), "matching": len(good)}
    if correction is None:
        message = (
            f"{wanted} after a correction, found no message that matches {quote(params.correction or '')}"
        )
        return verdict(False, message, observed=observed, events=events)
    message = f"{wanted}, found {'it' if good else 'none'}{at(good)}"
    message += "" if good else f" among {count_of(len(writes), 'write')}{at(writes)}"
    return verdict(bool(good), message, observed=observed, events=events)


def _correction(trace: Trace, pattern: str | None) -> TraceEvent | bool | None:
    """The event of the correcting message; ``True`` without a pattern or event, ``None`` without a match."""
    if pattern is None:
        return True
    searcher = Searcher()
    for event in reversed(of_type(trace, "message_received")):
        if any(searcher.search(pattern, text) for text in strings_in(event.data.get("content"))):
            return event
    texts = (text for message in trace.input_messages for text in strings_in(message.content))
    return True if any(searcher.search(pattern, text) for text in texts) else None


def _is_mentioned(event: TraceEvent, fact: str, searcher: Searcher) -> bool:
    return any(searcher.contains(text, fact) for text in strings_in(event.data))


class StateMutationAllowed(Params, frozen=True, kw_only=True):
    paths: list[str] | None = None
    """Globs: ``*`` stays within a directory, ``**`` does not."""
    kinds: list[str] | None = None
    """``memory_read``, ``memory_write``, or a kind that the agent defines, such as ``file_write``."""


def state_mutation_allowed(trace: Trace, params: StateMutationAllowed) -> Verdict:
    """The agent touched only allowed state, by path and by kind."""
    if params.paths is None and params.kinds is None:
        raise UsageError("params: give paths or kinds")
    found = of_type(trace, *MEMORY_TYPES, "state_mutation")
    searcher = Searcher()
    forbidden = [event for event in found if not _is_allowed(event, params, searcher)]
    allowed = [
        f"{name} {', '.join(of)}" for name, of in (("paths", params.paths), ("kinds", params.kinds)) if of
    ]
    listed = "; ".join(f"{_kind(event)} {event.data.get('path') or '(no path)'}" for event in forbidden[:5])
    message = (
        f"expected state to be touched only in {' and '.join(allowed) or 'nothing'}, "
        f"found {listed or 'nothing else'}{at(forbidden)}"
    )
    observed = {"touched": len(found), "forbidden": [_describe(event) for event in forbidden]}
    return verdict(not forbidden, message, observed=observed, events=forbidden or found)


def _is_allowed(event: TraceEvent, params: StateMutationAllowed, searcher: Searcher) -> bool:
    if params.kinds is not None and _kind(event) not in params.kinds:
        return False
    if params.paths is None:
        return True
    path = event.data.get("path")
    if not isinstance(path, str):
        return False
    plain_path = normpath(path)  # `allowed/../secret` is not below `allowed`
    return any(searcher.search(_glob(glob), plain_path, ignore_case=False) for glob in params.paths)


def _kind(event: TraceEvent) -> str:
    return str(event.data.get("kind")) if event.type == "state_mutation" else event.type


def _describe(event: TraceEvent) -> dict[str, object]:
    return {"event": event.event_id, "kind": _kind(event), "path": event.data.get("path")}


def _glob(glob: str) -> str:
    """The pattern of a whole path."""
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", normpath(glob) if glob else glob)
    return r"\A" + "".join(signs.get(part) or re.escape(part) for part in parts) + r"\z"
