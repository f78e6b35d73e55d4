"""The capture's manifest and events: what is written is read back, and nothing else is taken for it."""

from __future__ import annotations

import io
import json
import re
import tracemalloc
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec.inspect as inspect
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact import canonical
from reenact.errors import DigestMismatch, FormatError, UnknownVersion
from reenact.formats import capture
from reenact.formats.capture import (
    EVENT_TYPES,
    CaptureEvent,
    CaptureManifest,
    event_codec,
    manifest_codec,
    read_events,
    read_manifest,
    read_seed,
    seed_codec,
    with_own_digest,
    write_manifest,
)
from reenact.formats.record import upgrade

FILE = "run/manifest.json"
MANIFEST: dict[str, Any] = {
    "version": 1,
    "captureId": "cap_1",
    "runId": "run_1",
    "createdAt": 1763190000000,
    "completedAt": 1763190001000,
    "mode": "capture",
    "model": {"provider": "none", "model": "none"},
    "eventCount": 2,
    "eventLogPath": "events.jsonl",
    "redaction": {"enabled": True, "profile": "default", "salt": "00"},
    "integrity": {"algorithm": "sha256", "eventsHash": "sha256:" + "0" * 64},
    "status": "ok",
}
DATA: dict[str, dict[str, Any]] = {
    "run_start": {"argv": ["agent.py"], "cwd": "/work", "python": "3.11.7"},
    "run_end": {"status": "ok"},
    "llm_request": {"callId": "c1", "provider": "p", "model": "m", "inputHash": "sha256:" + "0" * 64},
    "llm_response": {"callId": "c1", "provider": "p", "model": "m", "stopReason": None, "usage": None},
    "tool_call": {"callId": "c1", "tool": "search", "args": {"q": "x"}},
    "tool_result": {"callId": "c1", "ok": True, "result": 1},
    "state_mutation": {"type": "file_write"},
    "nondeterministic": {"source": "clock", "key": "now", "value": 1.5},
}


def event(seq: int = 1, kind: str = "run_start", **changes: Any) -> dict[str, Any]:
    head = {"version": 1, "captureId": "cap_1", "runId": "run_1", "seq": seq, "ts": 1763190000000}
    return head | {"type": kind, "data": DATA[kind]} | changes


def text_of(value: Any) -> bytes:
    return json.dumps(value).encode()


def log_of(*events: Any) -> bytes:
    return b"".join(line if isinstance(line, bytes) else text_of(line) + b"\n" for line in events)


def without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: child for key, child in value.items() if key != name}


# What is written is read back

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), children, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def values_of(info: inspect.Type) -> st.SearchStrategy[Any]:
    """JSON values of a field's type; records carry fields that nobody knows."""
    match info:
        case inspect.StructType():
            return records_of(info)
        case inspect.UnionType():
            return st.one_of([values_of(option) for option in info.types if _is_written(option)])
        case inspect.LiteralType():
            return st.sampled_from(info.values)
        case inspect.ListType():
            return st.lists(values_of(info.item_type), max_size=3)
        case inspect.DictType():
            return st.dictionaries(NAMES, values_of(info.value_type), max_size=3)
        case inspect.IntType():
            return st.integers(info.ge if info.ge is not None else -(2**63), 2**63 - 1)
    simple: dict[type[Any], st.SearchStrategy[Any]] = {
        inspect.StrType: NAMES,
        inspect.BoolType: st.booleans(),
        inspect.FloatType: st.floats(allow_nan=False, allow_infinity=False),
        inspect.NoneType: st.none(),
        inspect.AnyType: JSON_VALUES,
    }
    return simple[type(info)]


def _is_written(option: inspect.Type) -> bool:
    return not isinstance(option, inspect.CustomType) and "Unset" not in type(option).__name__


def records_of(info: inspect.StructType) -> st.SearchStrategy[dict[str, Any]]:
    fields = [field for field in info.fields if field.name != "extra"]
    names = {field.encode_name for field in fields} | {info.tag_field}
    tag = {} if info.tag_field is None else {info.tag_field: st.just(info.tag)}
    known = st.fixed_dictionaries(
        tag | {field.encode_name: values_of(field.type) for field in fields if field.required},
        optional={field.encode_name: values_of(field.type) for field in fields if not field.required},
    )
    unknown = st.dictionaries(NAMES.filter(lambda name: name not in names), JSON_VALUES, max_size=2)
    return st.builds(lambda some, others: others | some, known, unknown)


EVENT_KINDS = {kind.__struct_config__.tag: kind for kind in CaptureEvent.__args__}


def test_every_event_type_has_its_record():
    """The names of the types are those of the records, and one sample each is in the tables here."""
    assert set(EVENT_KINDS) == set(EVENT_TYPES) == set(DATA)


@pytest.mark.parametrize("kind", EVENT_TYPES)
@given(data=st.data())
def test_an_event_is_read_back_with_everything_it_said(kind: str, data: st.DataObject):
    """Fields nobody knows survive at every level; the written text is canonical."""
    value = data.draw(values_of(inspect.type_info(EVENT_KINDS[kind])))
    found = event_codec.from_bytes(text_of(value))
    written = event_codec.to_bytes(found)
    assert event_codec.from_bytes(written) == found
    assert json.loads(written) == value
    assert written == canonical.encode(value)


@given(value=values_of(inspect.type_info(CaptureManifest)))
def test_a_manifest_is_read_back_with_everything_it_said(value: dict[str, Any]):
    """As for events; its own digest is stated anew."""
    manifest = manifest_codec.from_json(value)
    written = write_manifest(manifest)
    assert read_manifest(written, file=FILE) == with_own_digest(manifest)
    assert without(json.loads(written), "integrity") == without(value, "integrity")


def test_the_seed_of_a_run_is_read_back():
    """The open manifest lacks what only the end knows."""
    value = {
        name: MANIFEST[name]
        for name in MANIFEST
        if name not in ("integrity", "eventCount", "status", "completedAt")
    }
    seed = read_seed(text_of(value), file=FILE)
    assert seed_codec.to_json(seed) == value


def test_an_unknown_field_that_looks_internal_is_kept():
    """The name under which the reader keeps unknown fields is no way past it."""
    value = event(data=DATA["run_start"] | {"\u2061extra": {"argv": 5}})
    assert event_codec.to_json(event_codec.from_bytes(text_of(value))) == value


# What is not a manifest

BAD_MANIFESTS: dict[str, tuple[bytes, str | None, str]] = {
    "empty file": (b"", None, "not JSON"),
    "binary": (b"\x00\x01\x02\x89PNG", None, "not UTF-8"),
    "truncated": (text_of(MANIFEST)[:-9], None, "not JSON: .* at column"),
    "invalid UTF-8": (b'{"version": 1, "captureId": "\xff"}', None, "not UTF-8 at byte 29"),
    "an array": (b"[]", "$", "expected an object"),
    "a number": (b"7", "$", "expected an object"),
    "duplicate key": (b'{"version": 1, "version": 1}', "$", "the key 'version' appears twice"),
    "duplicate key inside": (
        text_of(MANIFEST).replace(b'"profile"', b'"enabled": true, "profile"'),
        "$.redaction",
        "the key 'enabled' appears twice",
    ),
    "NaN": (text_of(MANIFEST | {"createdAt": float("nan")}), None, "NaN is not a JSON number"),
    "huge integer": (text_of(MANIFEST | {"x": 2**64}), "$.x", "does not fit into 64 bits"),
    "lone surrogate": (b'{"version": 1, "captureId": "\\ud800"}', "$.captureId", "lone surrogate"),
    "nested 10,000 deep": (
        b'{"version":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        None,
        "nested deeper than 254",
    ),
    "nested 300 deep": (
        b'{"version":' + b"[" * 300 + b"]" * 300 + b"}",
        "$.version" + "[0]" * 253,
        "nested deeper than 254",
    ),
    "no version": (text_of(without(MANIFEST, "version")), "$.version", "version is missing"),
    "version of another type": (text_of(MANIFEST | {"version": "1"}), "$.version", "must be an integer"),
    "version true": (text_of(MANIFEST | {"version": True}), "$.version", "must be an integer"),
    "no run": (text_of(without(MANIFEST, "runId")), "$.runId", "required, but missing"),
    "count of another type": (text_of(MANIFEST | {"eventCount": "2"}), "$.eventCount", "expected `int`"),
    "negative count": (text_of(MANIFEST | {"eventCount": -1}), "$.eventCount", ">= 0"),
    "unknown mode": (text_of(MANIFEST | {"mode": "off"}), "$.mode", "invalid enum value 'off'"),
    "unknown status": (text_of(MANIFEST | {"status": "fine"}), "$.status", "invalid enum value 'fine'"),
    "model of another type": (text_of(MANIFEST | {"model": "m"}), "$.model", "expected `object`"),
    "no profile": (
        text_of(MANIFEST | {"redaction": {"enabled": True}}),
        "$.redaction.profile",
        "required, but missing",
    ),
    "unknown algorithm": (
        text_of(MANIFEST | {"integrity": {"algorithm": "md5", "eventsHash": "x"}}),
        "$.integrity.algorithm",
        "invalid enum value 'md5'",
    ),
    "warnings of another type": (
        text_of(MANIFEST | {"warnings": ["w", 1]}),
        "$.warnings[1]",
        "expected `str`",
    ),
}


@pytest.mark.parametrize("name", BAD_MANIFESTS)
def test_a_bad_manifest_is_refused_with_its_place(name: str):
    """File, JSON path and reason are all there."""
    text, json_path, reason = BAD_MANIFESTS[name]
    with pytest.raises(FormatError, match=reason) as caught:
        read_manifest(text, file=FILE)
    assert type(caught.value) is FormatError
    assert (caught.value.file, caught.value.json_path) == (FILE, json_path)
    assert str(caught.value).startswith(f"{FILE}: {json_path or ''}")


def test_a_byte_order_mark_is_tolerated():
    """Some editors write one; it is no part of the value."""
    assert read_manifest(b"\xef\xbb\xbf" + text_of(MANIFEST), file=FILE).runId == "run_1"


def test_a_changed_manifest_is_refused():
    """Where the manifest states its own digest, the digest must hold."""
    text = write_manifest(manifest_codec.from_json(MANIFEST))
    with pytest.raises(DigestMismatch, match=f"{FILE}: the manifest was changed after it was written"):
        read_manifest(text.replace(b'"status":"ok"', b'"status":"error"'), file=FILE)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_no_manifest(text: bytes):
    """Whatever the bytes, the only error is ours."""
    with pytest.raises(FormatError):
        read_manifest(text, file=FILE)


# What is not an event log

LOG = "run/events.jsonl"
GOOD = text_of(event(1)) + b"\n"
BAD_LOGS: dict[str, tuple[bytes, int, str | None, str]] = {
    "binary": (b"\x89PNG\x00\xff\n", 1, None, "not UTF-8"),
    "truncated last line": (GOOD + text_of(event(2))[:-20], 2, None, "not JSON"),
    "truncated first line": (text_of(event(1))[:40] + b"\n", 1, None, "not JSON"),
    "invalid UTF-8": (GOOD + b'{"\xff": 1}\n', 2, None, "not UTF-8"),
    "not an object": (GOOD + b"[]\n", 2, "$", "expected `object`"),
    "duplicate key": (
        GOOD + text_of(event(2)).replace(b'{"version"', b'{"seq": 2, "version"') + b"\n",
        2,
        "$",
        "twice",
    ),
    "nested 10,000 deep": (
        GOOD + b'{"data":' * 10_000 + b"1" + b"}" * 10_000 + b"\n",
        2,
        None,
        "nested deeper",
    ),
    "unknown event type": (
        log_of(event(1), event(2) | {"type": "thought"}),
        2,
        "$.type",
        "invalid value 'thought'",
    ),
    "no event type": (log_of(event(1), without(event(2), "type")), 2, "$.type", "required, but missing"),
    "no data": (log_of(without(event(1), "data")), 1, "$.data", "required, but missing"),
    "no call id": (
        log_of(event(1, "tool_call", data={"tool": "t", "args": 1})),
        1,
        "$.data.callId",
        "required",
    ),
    "seq of another type": (log_of(event("1")), 1, "$.seq", "expected `int`"),
    "ts of another type": (log_of(event(1, ts="now")), 1, "$.ts", "expected `int | float`"),
    "ok of another type": (
        log_of(event(1, "tool_result", data={"callId": "c", "ok": 1})),
        1,
        "$.data.ok",
        "`bool`",
    ),
    "does not begin at 1": (log_of(event(2)), 1, "$.seq", "expected 1, found 2"),
    "gap in seq": (log_of(event(1), event(3)), 2, "$.seq", "expected 2, found 3"),
    "repeated seq": (log_of(event(1), event(1)), 2, "$.seq", "expected 2, found 1"),
}


def read_log(text: bytes, **options: Any) -> list[CaptureEvent]:
    return [found for _, found in read_events(io.BytesIO(text), file=LOG, **options)]


@pytest.mark.parametrize("name", BAD_LOGS)
def test_a_bad_log_is_refused_with_its_place(name: str):
    """File, line, JSON path and reason are all there."""
    text, line, json_path, reason = BAD_LOGS[name]
    with pytest.raises(FormatError, match=reason) as caught:
        read_log(text)
    assert (caught.value.file, caught.value.line, caught.value.json_path) == (LOG, line, json_path)
    assert str(caught.value).startswith(f"{LOG}:{line}: {json_path or ''}")


GOOD_LOGS: dict[str, tuple[bytes, int]] = {
    "empty": (b"", 0),
    "one event": (GOOD, 1),
    "BOM": (b"\xef\xbb\xbf" + GOOD, 1),
    "CRLF": (GOOD.replace(b"\n", b"\r\n") + text_of(event(2)) + b"\r\n", 2),
    "no last line end": (GOOD + text_of(event(2)), 2),
    "blank lines": (b"\n" + GOOD + b"  \n" + text_of(event(2)) + b"\n\n", 2),
}


@pytest.mark.parametrize("name", GOOD_LOGS)
def test_what_is_tolerated_around_lines(name: str):
    """Read, but never written."""
    text, count = GOOD_LOGS[name]
    assert [found.seq for found in read_log(text)] == list(range(1, count + 1))


def test_an_over_long_line_is_refused():
    """A limit holds for each line, whatever is behind it."""
    text = log_of(event(1), event(2, data={"cwd": "x" * 500}), event(3))
    with pytest.raises(FormatError, match="longer than 400 bytes") as caught:
        read_log(text, max_line_bytes=400)
    assert (caught.value.file, caught.value.line) == (LOG, 2)


def test_lenient_reading_reports_every_bad_line_and_goes_on():
    """A long line, a wrong one and a gap are each said once; the rest is read."""
    long = event(2, data={"cwd": "x" * 500})
    text = log_of(event(1), long, b"{\n", event(4), event(5), event(9), event(10))
    errors: list[FormatError] = []
    found = read_log(text, max_line_bytes=400, on_error=errors.append)
    assert [(error.line, error.json_path) for error in errors] == [(2, None), (3, None), (6, "$.seq")]
    assert [event.seq for event in found] == [1, 4, 5, 10]


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_nothing_but_a_format_error(text: bytes):
    """Whatever the bytes, the only error is ours; a lenient reading reports it, a strict one raises it."""
    errors: list[FormatError] = []
    read_log(text, on_error=errors.append)
    assert all(error.file == LOG and error.line is not None for error in errors)
    with nullcontext() if not errors else pytest.raises(FormatError, match=re.escape(str(errors[0]))):
        read_log(text)


@given(place=st.integers(0, len(GOOD) - 1), byte=st.integers(0, 255))
def test_a_changed_byte_raises_nothing_but_a_format_error(place: int, byte: int):
    """Also where the rest of the line is right."""
    with suppress(FormatError):
        read_log(GOOD[:place] + bytes([byte]) + GOOD[place + 1 :])


# Versions


def test_a_newer_manifest_is_refused_with_what_to_install():
    """Half-reading it would be worse."""
    with pytest.raises(UnknownVersion, match=r"version 2 is newer .* install a newer reenact") as caught:
        read_manifest(text_of(MANIFEST | {"version": 2, "model": 7}), file=FILE)
    assert (caught.value.file, caught.value.json_path) == (FILE, "$.version")


@pytest.mark.parametrize("on_error", [None, lambda error: None], ids=["strict", "lenient"])
def test_a_newer_event_is_refused_with_what_to_install(on_error: Callable[[FormatError], None] | None):
    """Also by a lenient reading: what it would pass over is not damage."""
    text = log_of(event(1), event(2) | {"version": 3, "type": "thought"})
    with pytest.raises(UnknownVersion, match=r"version 3 is newer .* install a newer reenact") as caught:
        read_log(text, on_error=on_error)
    assert (caught.value.file, caught.value.line, caught.value.json_path) == (LOG, 2, "$.version")


def test_a_version_that_was_never_published_is_refused():
    """There is no step from it."""
    with pytest.raises(UnknownVersion, match="version 0 was never published"):
        read_manifest(text_of(MANIFEST | {"version": 0}), file=FILE)


STEPS = {
    1: lambda value: value | {"version": 2, "name": value["title"]},
    2: lambda value: without(value, "title") | {"version": 3},
    3: lambda value: value | {"version": 4, "tags": []},
}
UPGRADES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "from the oldest": ({"version": 1, "title": "a"}, {"version": 4, "name": "a", "tags": []}),
    "from the middle": ({"version": 3, "name": "a"}, {"version": 4, "name": "a", "tags": []}),
    "current": ({"version": 4, "name": "a"}, {"version": 4, "name": "a"}),
}


@pytest.mark.parametrize("name", UPGRADES)
def test_older_versions_are_upgraded_step_by_step(name: str):
    """One function per step; the value given is left as it is."""
    old, new = UPGRADES[name]
    before = dict(old)
    assert upgrade(old, field="version", current=4, steps=STEPS, what="thing") == new
    assert old == before


def test_manifests_and_events_are_upgraded_when_they_are_read(monkeypatch: pytest.MonkeyPatch):
    """An older file is read like one of today, whole."""
    monkeypatch.setitem(capture._MANIFEST_UPGRADES, 0, lambda value: MANIFEST | {"runId": value["run"]})
    monkeypatch.setitem(
        capture._EVENT_UPGRADES,
        0,
        lambda value: event(value["number"], runId=value["run"], data={"cwd": "/old"}),
    )
    assert read_manifest(b'{"version": 0, "run": "r0"}', file=FILE).runId == "r0"
    found = read_log(b'{"version": 0, "number": 1, "run": "r0"}\n')
    assert [(old.seq, old.runId, old.data.cwd) for old in found] == [(1, "r0", "/old")]


# Memory


def write_log(path: Path, size_bytes: int) -> None:
    line = canonical.encode(event(1, data={"cwd": "x" * 4000}))
    before, after = line.split(b'"seq":1')
    with path.open("wb") as stream:
        for seq in range(1, size_bytes // len(line) + 1):
            stream.write(b'%b"seq":%d%b\n' % (before, seq, after))


def peak_bytes(path: Path, read: Callable[[BinaryIO], int]) -> int:
    with path.open("rb") as stream:
        tracemalloc.start()
        try:
            assert read(stream) > 1000
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@pytest.mark.slow
def test_reading_takes_flat_memory(tmp_path: Path):
    """Ten times the file takes no more memory: what holds for 50 MB holds for 1 GB."""
    peaks = []
    for size_bytes in (5_000_000, 50_000_000):
        write_log(tmp_path / "events.jsonl", size_bytes)
        peaks.append(
            peak_bytes(
                tmp_path / "events.jsonl",
                lambda stream: sum(1 for _ in read_events(stream, file=LOG)),
            )
        )
    assert peaks[1] < peaks[0] * 1.2
    assert peaks[1] < 1_000_000
