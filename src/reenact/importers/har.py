"""HAR 1.2: HTTP traffic saved by browsers, proxies and API tools."""

from __future__ import annotations

import base64
import binascii
import re
from contextlib import suppress
from typing import Final
from urllib.parse import urlencode

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.importers.building import KnownFields, RunBuilder, iso_ms
from reenact.importers.importing import Importer, Runs
from reenact.importers.source import (
    HALF_CHARACTER,
    ForeignSource,
    JsonObject,
    Losses,
    Unfit,
    encode_text,
    expect_list,
    expect_object,
    read_value,
    type_mismatch,
)
from reenact.seams.http.message import Head, Pairs, header_value
from reenact.seams.http.request import Sent

_ENTRIES: Final = ("log", "entries")
_COOKIE: Final = KnownFields(
    "name", "value", "path", "domain", "expires", "httpOnly", "secure", "sameSite", "comment",
)  # fmt: skip
_LOG: Final = KnownFields(
    "version", "entries", "comment", creator=KnownFields("name", "version", "comment"),
    browser=KnownFields("name", "version", "comment"), pages=None,
)  # fmt: skip
_ENTRY: Final = KnownFields(
    "pageref", "startedDateTime", "time", "request", "response", "serverIPAddress", "connection", "comment",
    cache=None, timings=KnownFields("blocked", "dns", "connect", "send", "wait", "receive", "ssl", "comment"),
)  # fmt: skip
_REQUEST: Final = KnownFields(
    "method", "url", "httpVersion", "headers", "postData", "headersSize", "bodySize", "comment",
    cookies=_COOKIE, queryString=KnownFields("name", "value", "comment"),
)  # fmt: skip
_RESPONSE: Final = KnownFields(
    "status", "statusText", "httpVersion", "headers", "content", "redirectURL", "headersSize", "bodySize",
    "comment", cookies=_COOKIE,
)  # fmt: skip
_HEADER: Final = frozenset({"name", "value", "comment"})
_POST_DATA: Final = KnownFields(
    "mimeType", "text", "encoding", "comment", "_file",
    params=KnownFields("name", "value", "fileName", "contentType", "comment"),
)  # fmt: skip
_CONTENT: Final = frozenset({"size", "compression", "mimeType", "text", "encoding", "comment", "_file"})
_VERSIONS: Final = {"h2": "HTTP/2", "http/2.0": "HTTP/2", "h3": "HTTP/3", "http/3.0": "HTTP/3"}
_STATUS_DIGITS: Final = 3
_CHARSET: Final = re.compile(r'charset="?([\w-]+)', re.IGNORECASE)
_CONTROLS: Final = re.compile("[\x00-\x08\x0e-\x1f\x80-\x9f]")
"""Characters that no text has."""
_FILE_NAME: Final = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_ABOUT_THE_WIRE: Final = ("content-encoding", "content-length", "transfer-encoding")


def _recognises(source: ForeignSource) -> bool:
    if not source.head.lstrip().startswith(b"{") or not source.has("log", "entries"):
        return False
    return source.has("creator") or source.has("request", "response")


def _read(source: ForeignSource, runs: Runs) -> None:
    run = runs.open()
    run.note_missing("boundaries of streamed chunks", "tasks that made the calls")
    entries = _Entries(run, source, is_large=source.is_large)
    log: JsonObject = {}
    version_line: int | None = None
    lost: Losses = []
    for path, line, value, is_item in source.members([_ENTRIES], lost):
        if is_item:
            entries.add(value, line)
        elif len(path) == 2:
            log[path[1]] = value
            version_line = line if path[1] == "version" else version_line
        elif path and path != ("log",):
            run.count_unknown("", path)
    if not isinstance(log.get("entries"), list) or (lost and not entries.count):
        reason, at = lost[0] if lost else ("no HAR: expected log.entries", None)
        raise FormatError(reason, file=source.name, line=at)
    for reason, at in lost:
        run.note_loss(reason, at)
    run.check_fields("log", log, _LOG)
    if str(log.get("version", "1.2")) not in ("1.1", "1.2") and not lost:
        run.note_loss(f"version {log.get('version')!r} of HAR is not known; it was read as 1.2", version_line)
    entries.finish()


class _Entries:
    """Sorts entries by start time, because files list them by page; large files are not sorted."""

    def __init__(self, run: RunBuilder, source: ForeignSource, *, is_large: bool) -> None:
        self._run = run
        self._source = source
        self._is_large = is_large
        self._kept: list[tuple[float, int, int, JsonValue]] = []
        self._latest_ms = 0.0
        self.count = 0

    def add(self, entry: JsonValue, line: int) -> None:
        self.count += 1
        started_ms = _started_ms(entry)
        if not self._is_large:
            self._kept.append((started_ms, self.count, line, entry))
            return
        if started_ms < self._latest_ms:
            self._run.note_missing("the order of requests, because a large file does not list them by time")
        self._latest_ms = max(self._latest_ms, started_ms)
        self._try_entry(entry, self.count, line)

    def _try_entry(self, entry: JsonValue, number: int, line: int) -> None:
        what = f"entry {number}"
        self._run.attempt(line, _import_entry, self._run, self._source, entry, number, line, what=what)

    def finish(self) -> None:
        for _, number, line, entry in sorted(self._kept, key=lambda each: each[:2]):
            self._try_entry(entry, number, line)


def _import_entry(run: RunBuilder, source: ForeignSource, entry: JsonObject, number: int, line: int) -> None:
    run.check_fields("entry", entry, _ENTRY)
    request = expect_object("request", entry.get("request"))
    response = expect_object("response", entry.get("response"))
    run.check_fields("request", request, _REQUEST)
    run.check_fields("response", response, _RESPONSE)
    run.at(run.time_ms(entry.get("startedDateTime"), line))
    status, url, method = _status_of(response), request.get("url"), request.get("method")
    if not isinstance(url, str) or status is None:
        raise Unfit("it has no address or no status")
    if not isinstance(method, str):
        raise type_mismatch("request.method", "a text", method)
    if not url.startswith(("http://", "https://")):
        run.note_loss(f"entry {number}: only HTTP can be imported, not {url.partition(':')[0]}", line)
        return
    if status == 0:
        run.note_loss(f"entry {number}: {method} {url} was never answered", line)
        return
    content = run.check_fields("content", response.get("content") or {}, _CONTENT)
    headers = _pairs(run, response.get("headers"))
    body, is_decoded = _content_of(source, content, headers)
    if body is None:
        if _has_size(response, content):
            run.note_loss(f"entry {number}: the body of {url} was not saved", line)
        body = b""
    data = run.check_fields("postData", request.get("postData") or {}, _POST_DATA)
    for text in (content.get("text"), data.get("text")):
        if isinstance(text, str) and not encode_text(text)[1]:
            run.note_loss(f"entry {number}: {HALF_CHARACTER}", line)
    asked = _post(source, request, data)
    if asked is None:
        run.note_loss(f"entry {number}: the body of the request to {url} was not saved", line)
    head = Head(
        status,
        str(response.get("statusText") or ""),
        _http_version(response),
        _without_wire(headers, len(body)) if is_decoded else headers,
    )
    sent = Sent(method.upper(), url.partition("#")[0], _pairs(run, request.get("headers")), asked or b"")
    run.exchange(sent, head, body, is_decoded=is_decoded, answered_ms=_answered_ms(entry))


def _status_of(response: JsonObject) -> int | None:
    status = response.get("status")
    if isinstance(status, str) and status.isdecimal() and len(status) == _STATUS_DIGITS:
        return int(status)
    return status if isinstance(status, int) else None


def _http_version(response: JsonObject) -> str:
    version = str(response.get("httpVersion") or "HTTP/1.1").lower()
    return _VERSIONS.get(version, version.upper() if version.startswith("http/") else "HTTP/1.1")


def _post(source: ForeignSource, request: JsonObject, data: JsonObject) -> bytes | None:
    """The body of a request; ``None`` if it was not saved."""
    text = data.get("text")
    if isinstance(text, str) and text:
        if data.get("encoding") == "base64":
            return _from_base64(text)
        if request.get("bodySize") == len(text) and _CONTROLS.search(text):
            with suppress(UnicodeError):  # mitmproxy writes a byte as the character of that number
                return text.encode("latin-1")
        return encode_text(text)[0]
    if (attached := _attached(source, data)) is not None:
        return attached
    params = [expect_object("postData.params", each) for each in expect_list("params", data.get("params"))]
    is_form = not str(data.get("mimeType") or "").startswith("multipart/")
    if (
        params
        and is_form
        and all({"name", "value"} <= each.keys() and "fileName" not in each for each in params)
    ):
        return urlencode([(str(each["name"]), str(each["value"])) for each in params]).encode()
    size_bytes = request.get("bodySize")
    if params or (isinstance(size_bytes, int) and size_bytes > 0 and not text):
        return None
    return b""


def _content_of(source: ForeignSource, content: JsonObject, headers: Pairs) -> tuple[bytes | None, bool]:
    """The body of an answer, ``None`` if it was not saved, and whether its content coding was removed.

    Browsers save bodies as they display them: decoded, and texts as Unicode.
    """
    text, encoding = content.get("text"), content.get("encoding")
    if not isinstance(text, str):
        return _attached(source, content), True
    if encoding == "base64":
        if text.startswith("["):  # Polly keeps the pieces of an answer as they came
            pieces = expect_list("content.text", read_value(text.encode()))
            return b"".join(_from_base64(str(piece)) for piece in pieces), False
        return _from_base64(text), True
    if encoding not in (None, "", "utf-8", "utf8", "UTF-8"):
        raise Unfit(f"a body has the encoding {encoding!r}, which is not known")
    return _encode_text(text, header_value(headers, "content-type")), True


def _encode_text(text: str, content_type: str) -> bytes:
    charset = _CHARSET.search(content_type)
    if charset is not None:
        with suppress(LookupError, UnicodeError):
            return text.encode(charset[1])
    return encode_text(text)[0]


def _attached(source: ForeignSource, place: JsonObject) -> bytes | None:
    """The body that Playwright keeps in a file beside the HAR."""
    name = place.get("_file")
    if isinstance(name, str) and _FILE_NAME.fullmatch(name) and name in source.find_beside(name):
        return source.read(name)
    return None


def _has_size(response: JsonObject, content: JsonObject) -> bool:
    sizes = (content.get("size"), response.get("bodySize"))
    return any(isinstance(size, int) and size > 0 for size in sizes)


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError) as error:
        raise Unfit(f"a body is not base64: {error}") from None


def _pairs(run: RunBuilder, headers: JsonValue) -> Pairs:
    listed = [run.check_fields("header", each, _HEADER) for each in expect_list("headers", headers)]
    for each in listed:
        if "name" not in each:
            raise Unfit("a header has no name")
    found = [(str(each["name"]), _text_of(each.get("value"))) for each in listed]
    return [(name, value) for name, value in found if not name.startswith(":")]  # pseudo-headers of HTTP/2


def _text_of(value: JsonValue) -> str:
    return "" if value is None else str(value)


def _without_wire(headers: Pairs, size_bytes: int) -> Pairs:
    kept = [(name, value) for name, value in headers if name.lower() not in _ABOUT_THE_WIRE]
    return [*kept, ("content-length", str(size_bytes))]


def _started_ms(entry: JsonValue) -> float:
    return iso_ms(entry.get("startedDateTime") if isinstance(entry, dict) else None) or 0.0


def _answered_ms(entry: JsonObject) -> float | None:
    started_ms, took_ms = _started_ms(entry), entry.get("time")
    if not started_ms or not isinstance(took_ms, int | float) or took_ms < 0:
        return None
    return started_ms + took_ms


IMPORTER: Final = Importer(
    name="har", title="HAR 1.2", version=1, fidelity="replayable", recognises=_recognises, read=_read
)
