"""Captures with the files of their run, and captures that are forks of others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.make.capture import EVENTS, manifest_of
from conformance.make.case import Case, Event, Found, lines_of
from reenact import canonical

Blobs = dict[str, bytes]


def _file(name: str, content: bytes, **more: Any) -> Event:
    blob = canonical.digest_of_bytes(content)
    return {"name": name, "kind": "file", "blob": blob, "bytes": len(content), "mode": "644", **more}


def _nameless(content: bytes) -> Event:
    return {key: value for key, value in _file("", content).items() if key != "name"}


def _stored(*contents: bytes) -> Blobs:
    return {canonical.digest_of_bytes(content): content for content in contents}


def _tree(*entries: Event) -> bytes:
    return canonical.encode({"entries": list(entries), "version": 1})


TEXT, SCRIPT, NOTES = b"tea\n", b"print('tea')\n", b"tea, and leaves\n"
SOURCES = _tree(_file("app.py", SCRIPT))
FOLDER: Event = {
    "name": "src",
    "kind": "folder",
    "tree": canonical.digest_of_bytes(SOURCES),
    "mode": "755",
}
START: tuple[Event, ...] = (
    {"name": ".env", "kind": "left-out", "why": "secret"},
    {"name": ".git", "kind": "left-out", "why": "git"},
    {"name": "latest", "kind": "link", "target": "src/app.py"},
    {"name": "model.bin", "kind": "left-out", "why": "too-large", "bytes": 20_000_000},
    _file("notes.txt", TEXT, hidden=True),
    {"name": "root", "kind": "link", "target": "src", "inside": True},
    FOLDER,
    {"nameHex": "ff"} | _nameless(SCRIPT),
)
END: tuple[Event, ...] = tuple(
    _file("notes.txt", NOTES) if entry.get("name") == "notes.txt" else entry for entry in START
)


def _capture(first: bytes, last: bytes, blobs: Blobs, **workspace: Any) -> dict[str, bytes]:
    """A run that has *first* at its start, and *last* from its only tool on."""
    trees = [canonical.digest_of_bytes(tree) for tree in (first, last)]
    changed_files = {"tree": trees[1], "after": ["c1"], "open": 0}
    events: list[Event] = [
        {
            "type": "run_start",
            "data": {"argv": ["a"], "workspace": {"tree": trees[0], "cwd": ".", "limitBytes": 9} | workspace},
        },
        {"type": "tool_call", "data": {"callId": "c1", "tool": "write", "args": {}, "lane": "0"}},
        {"type": "tool_result", "data": {"callId": "c1", "ok": True, "result": None}},
        {
            "type": "state_mutation",
            "data": {"type": "workspace", "derived": True, "details": changed_files},
        },
        {"type": "run_end", "data": {"status": "ok", "finalOutput": None}},
    ]
    lines = lines_of(
        [
            {"version": 1, "captureId": "cap_1", "runId": "run_1", "seq": seq, "ts": seq, **event}
            for seq, event in enumerate(events, 1)
        ]
    )
    files = {"events.jsonl": lines, "manifest.json": manifest_of(lines, workspaceEnd=trees[1])}
    return files | {f"blobs/sha256/{name[7:9]}/{name[9:]}": data for name, data in blobs.items()}


def _case(name: str, about: str, files: dict[str, bytes], *found: Found, **more: Any) -> Case:
    inside = {f"capture/{path}": data for path, data in files.items()}
    return Case(name, about, "capture", inside, found, **more)


def workspace_cases() -> Iterator[Case]:
    first, last = _tree(*START), _tree(*END)
    blobs = _stored(first, last, SOURCES, TEXT, SCRIPT, NOTES)

    def without(content: bytes, instead: bytes | None = None) -> dict[str, bytes]:
        digest = canonical.digest_of_bytes(content)
        rest = {name: data for name, data in blobs.items() if name != digest}
        return _capture(first, last, rest | ({} if instead is None else {digest: instead}))

    yield _case("good", "1 to 10: a folder, files, links, what was left out.", _capture(first, last, blobs))
    in_git = _tree({**_file("a", TEXT), "git": "5" * 40})
    yield _case(
        "good-git",
        "7, 8: the content of a file is in git, so that no blob has it.",
        _capture(in_git, in_git, _stored(in_git), commit="6" * 40),
    )
    yield _case(
        "content-missing", "1, 7: the content of a file at the end.", without(NOTES), Found("blob_missing", 4)
    )
    yield _case(
        "content-damaged", "1, 7: another content.", without(TEXT, b"rum\n"), Found("blob_damaged", 1)
    )
    yield _case(
        "tree-missing",
        "2: the tree of a folder; nobody knows what was below.",
        without(SOURCES),
        Found("blob_missing", 1),
    )
    for name, about, entries in (
        ("name-leads-out", "5: `..` is no name.", [_file("..", TEXT)]),
        ("name-of-a-path", "5: a name has no slash.", [_file("a/b", TEXT)]),
        ("name-twice", "2: one name twice.", [_file("a", TEXT), _file("a", TEXT)]),
        ("names-unordered", "2: names stand in order.", [_file("b", TEXT), _file("a", TEXT)]),
        ("name-in-hex", "4: what is UTF-8 is written as text.", [{"nameHex": "61"} | _nameless(TEXT)]),
        ("name-both-ways", "4: a name is given once.", [{"nameHex": "ff"} | _file("a", TEXT)]),
        ("kind-unknown", "3: no such kind.", [{"name": "a", "kind": "pipe"}]),
        ("mode-no-octal", "3: a mode has three octal digits.", [_file("a", TEXT) | {"mode": "689"}]),
        ("blob-no-digest", "3: a blob is named by its digest.", [_file("a", TEXT) | {"blob": "tea"}]),
        (
            "link-leads-out",
            "3: a target inside the tree stays there.",
            [{"name": "a", "kind": "link", "target": "../b", "inside": True}],
        ),
    ):
        odd = _tree(*entries)
        yield _case(name, about, _capture(odd, odd, _stored(odd)), Found("tree_unreadable", 1))


FORK_ID = {"captureId": "cap_2", "runId": "run_2"}
SHARED = 3


def fork_cases() -> Iterator[Case]:
    parent = lines_of(EVENTS)
    own: list[Event] = [
        EVENTS[3] | FORK_ID,
        EVENTS[4] | FORK_ID | {"data": {"callId": "c2", "ok": True, "result": "sent"}},
        EVENTS[5] | FORK_ID,
    ]
    whole = lines_of([*(event | FORK_ID for event in EVENTS[:SHARED]), *own])
    shared = lines_of(EVENTS[:SHARED])
    fork: Event = {
        "parent": {
            "captureId": "cap_1",
            "path": "../parent",
            "events": SHARED,
            "eventHash": canonical.digest_of_bytes(lines_of(EVENTS[SHARED - 1 : SHARED]).rstrip(b"\n")),
            "eventsHash": canonical.digest_of_bytes(shared),
            "logHash": canonical.digest_of_bytes(parent),
        },
        "at": 4,
        "change": {"kind": "outcome"},
        "stored": "suffix",
        "shares": {"prefix": 1, "recording": 0, "nearest": 0, "live": 0},
    }
    blob = EVENTS[2]["data"]["result"]["$blob"]
    blob_file = f"blobs/sha256/{blob[7:9]}/{blob[9:]}"
    content = canonical.encode("x" * 64)

    def case(
        name: str,
        about: str,
        *found: Found,
        events: bytes = lines_of(own),
        before: bytes = parent,
        with_parent: bool = True,
        exit_status: int | None = None,
        told: Event = fork["parent"],
        stored: str = "suffix",
    ) -> Case:
        of = fork | {"parent": told, "stored": stored}
        files = {
            "capture/events.jsonl": events,
            "capture/manifest.json": manifest_of(whole, fork=of, **FORK_ID),
        }
        if with_parent:
            files |= {
                "parent/events.jsonl": before,
                "parent/manifest.json": manifest_of(parent),
                f"parent/{blob_file}": content,
            }
        if stored == "whole":
            files[f"capture/{blob_file}"] = content
        return Case(name, about, "capture", files, found, exit=exit_status)

    yield case("good", "2.11: the first events, and a blob, are the parent's.")
    yield case(
        "events-changed",
        "2.11: one of the fork's own events was changed.",
        Found("events_changed"),
        events=lines_of(own).replace(b'"sent"', b'"lost"'),
    )
    yield case(
        "parent-changed-later",
        "2.12: the parent was changed behind the shared events, which the fork does not need.",
        Found("parent_differs", severity="warning"),
        before=parent.replace(b"tea it is", b"rum it is"),
    )
    yield case(
        "parent-goes-on",
        "2.12: a fork that does not say what its parent was like behind the shared events.",
        before=parent.replace(b"tea it is", b"rum it is"),
        told={name: value for name, value in fork["parent"].items() if name != "logHash"},
    )
    yield case(
        "parent-event-wrong",
        "2.12: the digest of the last shared event is that of another.",
        Found("parent_event"),
        told=fork["parent"] | {"eventHash": canonical.digest_of_bytes(b"another")},
    )
    yield case(
        "whole-parent-changed",
        "2.12: all events are the fork's own; its parent was changed.",
        Found("parent_differs", severity="warning"),
        events=whole,
        before=parent.replace(b'"tea"', b'"rum"'),
        stored="whole",
    )
    yield case(
        "parent-changed",
        "2.12: the parent was changed before they part.",
        Found("parent_changed"),
        before=parent.replace(b'"tea"', b'"rum"'),
    )
    yield case("parent-missing", "2.12: the parent is not there.", with_parent=False, exit_status=2)
