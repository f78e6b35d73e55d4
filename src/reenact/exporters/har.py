"""Exports a run's HTTP traffic as HAR 1.2: requests to models and to the network, with their answers."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from reenact._version import __version__
from reenact.canonical import JsonValue
from reenact.formats import capture
from reenact.formats.dialects.losses import Loss
from reenact.formats.record import ABSENT
from reenact.store.reader import CaptureReader
from reenact.values.codec import from_json

_TIMINGS: Final = {"send": 0, "wait": 0, "receive": 0}
_CallEvent = capture.LlmRequest | capture.Nondeterministic


def document_of(reader: CaptureReader, note_loss: Callable[[Loss], None]) -> dict[str, object]:
    """The archive; its comment names the capture."""
    manifest = reader.manifest
    waiting: dict[str, _CallEvent] = {}
    entries = []
    for event in reader.events():
        if isinstance(event, capture.LlmRequest) or _is_asked(event):
            assert isinstance(event, capture.LlmRequest | capture.Nondeterministic)
            waiting[str(event.data.callId)] = event
        elif (
            isinstance(event, capture.LlmResponse | capture.Nondeterministic) and event.data.callId in waiting
        ):
            call = waiting.pop(str(event.data.callId))
            try:
                entry = _entry_of(reader, call, event, note_loss)
            except (LookupError, TypeError, AttributeError):
                tag = str(type(call).__struct_config__.tag)
                note_loss(Loss(call.seq, tag, None, "it is not HTTP as clients use it"))
                continue
            if entry is not None:
                entries.append(entry)
        elif isinstance(event, capture.ToolCall | capture.StateMutation | capture.Nondeterministic):
            tag = str(type(event).__struct_config__.tag)
            note_loss(Loss(event.seq, tag, None, "an archive has only HTTP"))
    for call in waiting.values():
        note_loss(Loss(call.seq, str(type(call).__struct_config__.tag), None, "it was never answered"))
    hashed, profile = manifest.integrity.eventsHash, manifest.redaction.profile
    comment = f"capture {manifest.captureId}, {hashed}, redaction {profile}"
    creator = {"name": "reenact", "version": __version__}
    return {"log": {"version": "1.2", "creator": creator, "entries": entries, "comment": comment}}


def _is_asked(event: capture.CaptureEvent) -> bool:
    return (
        isinstance(event, capture.Nondeterministic)
        and event.data.source == "network"
        and event.data.request is not ABSENT
    )


def _entry_of(
    reader: CaptureReader,
    call: _CallEvent,
    outcome: capture.LlmResponse | capture.Nondeterministic,
    note_loss: Callable[[Loss], None],
) -> dict[str, JsonValue] | None:
    kind = str(type(call).__struct_config__.tag)
    request = None if call.data.request is ABSENT else from_json(reader.resolve(call.data.request))
    stored = outcome.data.response if isinstance(outcome, capture.LlmResponse) else outcome.data.value
    answer = None if stored is ABSENT else from_json(reader.resolve(stored))
    if not isinstance(request, dict) or "url" not in request:
        note_loss(Loss(call.seq, kind, "request", "it is not known as it was sent"))
        return None
    if not isinstance(answer, dict) or "status" not in answer:
        note_loss(Loss(outcome.seq, kind, None, "it failed before there was an answer"))
        return None
    recorded_headers = call.data.headers if isinstance(call.data.headers, dict) else {}
    headers = [
        {"name": name, "value": value} for name, value in recorded_headers.items() if isinstance(value, str)
    ]
    post = _post_of(request, str(recorded_headers.get("content-type", "")))
    if "parts" in request:
        note_loss(Loss(call.seq, kind, "request", "the bytes of a multipart body are not kept"))
    pieces = outcome.data.pieces
    body = _body_of(answer, None if pieces is ABSENT else from_json(reader.resolve(pieces)))
    sent: dict[str, Any] = {
        "method": request["method"],
        "url": request["url"],
        "httpVersion": answer["httpVersion"],
        "cookies": _cookies_in(headers, "cookie"),
        "headers": headers,
        "queryString": _query_of(request["url"]),
        "headersSize": -1,
        "bodySize": -1,
    }
    if post is not None:
        sent["postData"] = post
    return {
        "startedDateTime": datetime.fromtimestamp(call.ts / 1000, UTC).isoformat(),
        "time": outcome.ts - call.ts,
        "request": sent,
        "response": _response_of(answer, body),
        "cache": {},
        "timings": _TIMINGS | {"wait": outcome.ts - call.ts},
        "comment": f"events {call.seq} and {outcome.seq}",
    }


def _query_of(url: str) -> list[dict[str, str]]:
    return [
        {"name": name, "value": value}
        for name, value in parse_qsl(urlsplit(url).query, keep_blank_values=True)
    ]


def _post_of(request: dict[str, Any], content_type: str) -> dict[str, JsonValue] | None:
    if "body" in request:
        text = msgspec.json.encode(request["body"]).decode()
    elif "form" in request:
        text = urlencode([tuple(pair) for pair in request["form"]])
    elif "text" in request:
        text = str(request["text"])
    elif "bytes" in request:
        coded = base64.b64encode(request["bytes"]).decode()
        return {"mimeType": content_type, "text": coded, "encoding": "base64"}
    else:
        return None
    return {"mimeType": content_type, "text": text}


def _body_of(answer: dict[str, JsonValue], pieces: object) -> bytes:
    parts = pieces if isinstance(pieces, list) else [answer.get("body", "")]
    return b"".join(
        part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogateescape") for part in parts
    )


def _value_of(headers: list[dict[str, str]], name: str) -> str:
    return next((each["value"] for each in headers if each["name"].lower() == name), "")


def _cookies_in(headers: list[dict[str, str]], name: str) -> list[dict[str, str]]:
    """The cookies of these headers; the attributes of a ``set-cookie`` header are left out."""
    cookies = []
    for header in headers:
        if header["name"].lower() == name:
            pairs = header["value"].split(";")
            for pair in pairs[:1] if name == "set-cookie" else pairs:
                key, _, value = pair.strip().partition("=")
                cookies.append({"name": key, "value": value})
    return cookies


def _response_of(answer: dict[str, Any], body: bytes) -> dict[str, JsonValue]:
    headers = [
        {"name": name, "value": value} for header in answer["headers"] for name, value in header.items()
    ]
    content: dict[str, JsonValue] = {"size": len(body), "mimeType": _value_of(headers, "content-type")}
    try:
        content["text"] = body.decode()
    except UnicodeDecodeError:
        content |= {"text": base64.b64encode(body).decode(), "encoding": "base64"}
    return {
        "status": answer["status"],
        "statusText": answer["reason"],
        "httpVersion": answer["httpVersion"],
        "cookies": _cookies_in(headers, "set-cookie"),
        "headers": headers,
        "content": content,
        "redirectURL": _value_of(headers, "location"),
        "headersSize": -1,
        "bodySize": -1,
    }
