"""Capture directories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from conformance.make.case import (
    OTHER,
    Case,
    Change,
    Event,
    Found,
    as_it_is,
    changed,
    document,
    lines_of,
)
from reenact import canonical
from reenact.formats.capture import manifest_codec, write_manifest

BLOB = canonical.encode("x" * 64)
BLOB_DIGEST = canonical.digest_of_bytes(BLOB)
EVENTS: list[Event] = [
    {"type": "run_start", "data": {"argv": ["agent.py"], "cwd": "/work", "python": "3.11.7"}},
    {"type": "tool_call", "data": {"callId": "c1", "tool": "search", "args": {"query": "tea"}, "lane": "0"}},
    {
        "type": "tool_result",
        "data": {"callId": "c1", "ok": True, "result": {"$blob": BLOB_DIGEST, "bytes": len(BLOB)}},
    },
    {"type": "tool_call", "data": {"callId": "c2", "tool": "send", "args": {"to": "ann"}, "lane": "0"}},
    {
        "type": "tool_result",
        "data": {"callId": "c2", "ok": False, "error": {"type": "builtins:TimeoutError", "message": "slow"}},
    },
    {"type": "run_end", "data": {"status": "ok", "finalOutput": "tea it is"}},
]
EVENTS = [
    {"version": 1, "captureId": "cap_1", "runId": "run_1", "seq": seq, "ts": 1771113600000 + seq, **event}
    for seq, event in enumerate(EVENTS, 1)
]


def manifest_of(events: bytes, **fields: Any) -> bytes:
    value = {
        "version": 1,
        "captureId": "cap_1",
        "runId": "run_1",
        "createdAt": 1771113600000,
        "completedAt": 1771113600010,
        "mode": "capture",
        "model": {"provider": "none", "model": "none"},
        "eventCount": events.count(b"\n"),
        "eventLogPath": "events.jsonl",
        "redaction": {"enabled": False, "profile": "none"},
        "integrity": {"algorithm": "sha256", "eventsHash": canonical.digest_of_bytes(events)},
        "status": "ok",
    }
    return write_manifest(manifest_codec.from_json(value | fields))


def capture_case(
    name: str,
    about: str,
    change: Change = as_it_is,
    *found: Found,
    manifest: bytes | None = None,
    blobs: dict[str, bytes] | None = None,
    forged: bool = False,
) -> Case:
    """*forged* cases have a manifest that was made to fit; in the others the change shows by the hash too."""
    events = lines_of(changed(EVENTS, change))
    whole = lines_of(EVENTS)
    files = {
        "capture/events.jsonl": events,
        "capture/manifest.json": manifest or manifest_of(events if forged else whole),
    }
    for digest, data in ({BLOB_DIGEST: BLOB} if blobs is None else blobs).items():
        files[f"capture/blobs/sha256/{digest[7:9]}/{digest[9:]}"] = data
    if events != whole and not forged:
        found = (*found, Found("events_changed"))
    return Case(name, about, "capture", files, found)


MANIFESTS: tuple[tuple[str, str, Event, str], ...] = (
    ("version-newer", "A newer version.", {"version": 2}, "$.version"),
    ("status-unknown", "No such status.", {"status": "fine"}, "$.status"),
    ("count-no-number", "A count is a number.", {"eventCount": "six"}, "$.eventCount"),
    (
        "volatile-unknown",
        "A rule with a member that nobody knows may cover less.",
        {"volatile": [{"path": "$.x", "when": "noon"}]},
        "$.volatile[0]",
    ),
)


def _numbered(events: list[Event]) -> list[Event]:
    return [
        {"version": 1, "captureId": "cap_1", "runId": "run_1", "seq": seq, "ts": 1771113600000 + seq, **event}
        for seq, event in enumerate(events, 1)
    ]


def _asked(call_id: str, request: Event, **more: Any) -> Event:
    data = {"callId": call_id, "provider": "anthropic", "model": "m", "inputHash": OTHER, "lane": "0"}
    return {"type": "llm_request", "data": data | {"request": request} | more}


def _answered(call_id: str, **more: Any) -> Event:
    data = {"callId": call_id, "provider": "anthropic", "model": "m", "stopReason": "end_turn", "usage": None}
    return {"type": "llm_response", "data": data | more}


QUESTION = [{"role": "user", "content": "Hi"}]
ANSWERED = [*QUESTION, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "More"}]
LONGEST = [*ANSWERED, {"role": "assistant", "content": "Yes"}]
SECOND = {"body": {"messages": ANSWERED, "model": "m"}}
THIRD = {"body": {"messages": LONGEST, "model": "m"}}


def _ref(call_id: str, *path: str, items: int | None = None, then: Any = None) -> Event:
    ref: Event = {"call": call_id, "path": list(path)}
    return {"$ref": ref} if items is None else {"$ref": ref | {"items": items}, "then": then}


SHARED: list[Event] = [
    _asked("c1", {"body": {"messages": QUESTION, "model": "m"}}),
    _answered("c1", response={"$json": '{"z":1,"a":[2.50]}'}),
    _asked(
        "c2",
        {"body": {"messages": _ref("c1", "body", "messages", items=1, then=ANSWERED[1:]), "model": "m"}},
        requestHash=canonical.digest(SECOND),
    ),
    _answered("c2", response={"$blob": BLOB_DIGEST, "bytes": len(BLOB)}),
    _asked(
        "c3",
        {
            "body": {
                "messages": _ref("c2", "body", "messages", items=3, then=LONGEST[3:]),
                "model": _ref("c1", "body", "model"),
            }
        },
        requestHash=canonical.digest(THIRD),
    ),
    _answered("c3", response=None),
]
RESOLVED: Event = {
    "c1": {"request": {"body": {"messages": QUESTION, "model": "m"}}, "response": {"a": [2.5], "z": 1}},
    "c2": {"request": SECOND, "response": "x" * 64},
    "c3": {"request": THIRD, "response": None},
}
STREAMED: list[Event] = [
    _asked("c1", {"body": {"stream": True}}, lane="0.1"),
    _asked("c2", {"body": {"stream": True}}, lane="0.2/1", parent="c9"),
    _answered("c2", pieces=["one", {"$py": "bytes", "value": "/w=="}], opened=3, opening=1),
    _answered("c1", pieces=[], opened=3, opening=2, cancelled=True, inline=True),
    {
        "type": "tool_call",
        "data": {"callId": "c4", "tool": "t", "args": {"$$mine": 1}, "lane": "g/p~", "derived": True},
    },
    {
        "type": "tool_result",
        "data": {"callId": "c4", "ok": True, "result": {"$py": "tuple", "value": [1, 2]}, "derived": True},
    },
    {
        "type": "nondeterministic",
        "data": {"source": "clock", "key": "now", "value": 1.5, "lane": "1"},
    },
    {
        "type": "nondeterministic",
        "data": {"source": "http", "key": "get", "callId": "c5", "request": {}, "lane": "0.1:2"},
    },
    {
        "type": "nondeterministic",
        "data": {"source": "http", "key": "get", "callId": "c5", "value": {"$py": "opaque", "type": "x"}},
    },
    {
        "type": "state_mutation",
        "data": {"type": "memory_write", "group_id": "g", "path": "notes.md", "lane": "0~"},
    },
]


def written_case(name: str, about: str, middle: list[Event], *found: Found, **more: Any) -> Case:
    """A capture of other events, whose manifest fits."""
    start = {"type": "run_start", "data": {"argv": ["agent.py"], "cwd": "/work", "python": "3.11.7"}}
    end = {"type": "run_end", "data": {"status": "ok"}}
    events = lines_of(_numbered([start, *middle, end]))
    files = {"capture/events.jsonl": events, "capture/manifest.json": manifest_of(events)}
    if BLOB_DIGEST.encode() in events:
        files[f"capture/blobs/sha256/{BLOB_DIGEST[7:9]}/{BLOB_DIGEST[9:]}"] = BLOB
    return Case(name, about, "capture", files | more.pop("files", {}), found, **more)


def payload_cases() -> Iterator[Case]:
    """Captures whose payloads stand elsewhere; ``resolved`` says what they stand for."""
    yield written_case(
        "good",
        "4.1 to 4.3: blobs, texts, and references to earlier requests, one of which refers itself.",
        SHARED,
        files={"resolved.json": document(RESOLVED)},
        options={"resolved": "resolved.json"},
    )
    for name, about, change, path in (
        (
            "call-unknown",
            "4.2: there is no such call.",
            lambda ref: ref["$ref"].update(call="c9"),
            "$.c2.request",
        ),
        (
            "items-missing",
            "4.2: the member has fewer items.",
            lambda ref: ref["$ref"].update(items=9),
            "$.c2.request",
        ),
        (
            "path-missing",
            "4.2: there is no such member.",
            lambda ref: ref["$ref"].update(path=["x"]),
            "$.c2.request",
        ),
        (
            "circle",
            "4.2: a call refers to itself.",
            lambda ref: ref["$ref"].update(call="c2"),
            "$.c2.request",
        ),
    ):
        events = changed(
            SHARED[:4], lambda events, change=change: change(events[2]["data"]["request"]["body"]["messages"])
        )
        yield written_case(
            name,
            about,
            events,
            Found("payload", path=path),
            files={"resolved.json": document({"c2": {}})},
            options={"resolved": "resolved.json"},
        )


def capture_cases() -> Iterator[Case]:
    yield capture_case("good", "A whole capture with a blob.")
    yield written_case("good-streams", "3.4 to 3.6, 4.4, 4.5: lanes, streams, derived calls, tags.", STREAMED)
    yield written_case(
        "stream-answered-twice",
        "3.3: a call has one outcome, also a stream.",
        [*STREAMED[:4], STREAMED[3]],
        Found("second_outcome", 6),
    )
    yield capture_case(
        "line-changed",
        "An event was changed.",
        lambda events: events[1]["data"]["args"].update(query="coffee"),
    )
    yield capture_case(
        "line-removed",
        "A call was cut out.",
        lambda events: events.pop(1),
        *(Found("sequence", line) for line in range(2, 6)),
        Found("outcome_without_call", 2),
        Found("event_count"),
    )
    yield capture_case(
        "lines-swapped",
        "A call and its outcome changed places.",
        lambda events: events.insert(1, events.pop(2)),
        Found("sequence", 2),
        Found("sequence", 3),
        Found("outcome_without_call", 2),
        Found("no_outcome", 3, severity="warning"),
    )
    yield capture_case(
        "cut-off",
        "The end was cut off.",
        lambda events: events.pop(),
        Found("no_end"),
        Found("event_count"),
    )
    yield capture_case(
        "line-of-another-run",
        "An event of another run was put in, and the manifest made to fit.",
        lambda events: events[3].update(runId="run_2"),
        Found("foreign_event", 4),
        forged=True,
    )
    yield capture_case(
        "outcome-twice",
        "A call has two outcomes, and the manifest was made to fit.",
        lambda events: events[4]["data"].update(callId="c1"),
        Found("second_outcome", 5),
        Found("no_outcome", 4, severity="warning"),
        forged=True,
    )
    yield capture_case(
        "behind-the-end",
        "An event stands behind run_end, and the manifest was made to fit.",
        lambda events: events.append(
            EVENTS[3] | {"seq": 7, "ts": EVENTS[5]["ts"], "data": {"callId": "c3", "tool": "x", "args": {}}}
        ),
        Found("after_end", 7),
        Found("no_outcome", 7, severity="warning"),
        forged=True,
    )
    yield capture_case(
        "no-start",
        "The first event is not run_start, and the manifest was made to fit.",
        lambda events: (events.pop(0), [event.update(seq=seq) for seq, event in enumerate(events, 1)]),
        Found("no_start", 1),
        forged=True,
    )
    yield capture_case(
        "call-twice",
        "Two calls have one id, and the manifest was made to fit.",
        lambda events: (events[3]["data"].update(callId="c1"), events[4]["data"].update(callId="c1")),
        Found("second_call", 4),
        forged=True,
    )
    yield capture_case(
        "time-back",
        "An event is a minute older than the one before it, and the manifest was made to fit.",
        lambda events: events[4].update(ts=events[4]["ts"] - 60_000),
        Found("time", 5, severity="warning"),
        forged=True,
    )
    yield capture_case(
        "type-unknown",
        "There is no such event, and the manifest was made to fit.",
        lambda events: events[1].update(type="dream"),
        Found("event_unreadable", 2, "$.type"),
        Found("outcome_without_call", 3),
        forged=True,
    )
    yield capture_case(
        "field-missing",
        "An event lacks its id, and the manifest was made to fit.",
        lambda events: events[5].pop("runId"),
        Found("event_unreadable", 6, "$.runId"),
        Found("no_end"),
        forged=True,
    )
    yield capture_case(
        "start-twice",
        "A second run_start was put in, and the manifest made to fit.",
        lambda events: (
            events.insert(3, EVENTS[0] | {"ts": EVENTS[3]["ts"]}),
            [event.update(seq=seq) for seq, event in enumerate(events, 1)],
        ),
        Found("second_start", 4),
        forged=True,
    )
    yield capture_case(
        "recording-failed",
        "The disk was full, and recording ended before the run did.",
        lambda events: events.pop(),
        Found("recording_failed"),
        manifest=manifest_of(
            lines_of(EVENTS[:-1]), status="error", error="recording failed: No space left on device"
        ),
        forged=True,
    )
    good = manifest_of(lines_of(EVENTS))
    unhashed = changed(json.loads(good), lambda manifest: manifest["integrity"].pop("manifestHash"))
    for name, about, fields, path in MANIFESTS:
        case = capture_case(name, about, manifest=canonical.encode(unhashed | fields))
        yield case._replace(findings=(Found("manifest_unreadable", path=path),))
    unhashed_case = capture_case(
        "manifest-unhashed",
        "The digest of the manifest was cut out, so that it could be changed.",
        manifest=canonical.encode(unhashed | {"exitStatus": 0}),
    )
    yield unhashed_case._replace(findings=(Found("manifest_hash"),))
    added = capture_case(
        "recovered-added", "The mark of a recovery was put into a run that was not interrupted."
    )
    mark = {"capture/recovered.json": b'{"recoveredAt":1771113600020,"removedBytes":0}\n'}
    yield added._replace(files=added.files | mark, findings=(Found("recovered_mark"),))
    extra = capture_case("extra-files", "Files that belong to no capture are worth a word.")
    strangers = {"capture/notes.txt": b"mine", "capture/blobs/sha256/notes.txt": b"mine"}
    warnings = (Found("extra_file", severity="warning"),) * 2
    yield extra._replace(files=extra.files | strangers, findings=warnings)
    out = canonical.encode(unhashed | {"eventLogPath": "../events.jsonl"})
    yield capture_case("path-out", "A path leads out of the directory.", manifest=out)._replace(exit=2)
    yield capture_case(
        "manifest-changed",
        "The manifest was changed after it was written.",
        manifest=good.replace(b'"createdAt":1771113600000', b'"createdAt":1771113600001'),
    )._replace(findings=(Found("manifest_changed"),))
    yield capture_case(
        "manifest-of-another-run",
        "The manifest of another run was put in.",
        manifest=manifest_of(lines_of(EVENTS), runId="run_2"),
    )._replace(findings=(Found("foreign_manifest"),))
    yield capture_case("blob-missing", "A blob is missing.", as_it_is, Found("blob_missing", 3), blobs={})
    yield capture_case(
        "blob-damaged",
        "A blob has other bytes than its name says.",
        as_it_is,
        Found("blob_damaged", 3),
        blobs={BLOB_DIGEST: b"other"},
    )
    other = b'"unused"'
    yield capture_case(
        "blob-unused",
        "A blob that no event names is worth a word.",
        as_it_is,
        Found("blob_unused", severity="warning"),
        blobs={BLOB_DIGEST: BLOB, canonical.digest_of_bytes(other): other},
    )
    yield Case(
        "empty", "A directory without a manifest is no capture.", "capture", {"capture/.keep": b""}, exit=2
    )
