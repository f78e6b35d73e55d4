"""What an agent sees of HTTP is the same in replay, whatever client it uses, and nothing goes out."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest

import reenact
from reenact.errors import Diverged
from tests.seams.http.clients import Client, Failed, attempt
from tests.seams.http.site import CHUNKS, PAGE, Site


def record(path: Path, work: Callable[[], Any]) -> Any:
    with reenact.capture(path, redact="none") as run:
        result = work()
    assert run.warnings == []
    return result


def replay(path: Path, work: Callable[[], Any], web: Site) -> Any:
    before = web.connections
    with reenact.replay(path) as run:
        result = work()
    # Newer Pythons tell that the site, which is part of the project here, was not asked.
    assert (run.divergences, [note for note in run.notes if "site.py" not in note]) == ([], [])
    assert web.connections == before
    return result


def twice(path: Path, work: Callable[[], Any], web: Site) -> Any:
    """The result of *work* when it was recorded; in replay it is the same."""
    recorded = record(path, work)
    assert replay(path, work, web) == recorded
    return recorded


@pytest.mark.parametrize("page", ["page", "bytes", "status/404", "status/503"])
def test_a_whole_answer_is_the_same(tmp_path: Path, client: Client, web: Site, page: str) -> None:
    """Status, reason, headers in their order, and body."""
    seen = twice(tmp_path / "run", lambda: client.get(f"{web.url}/{page}"), web)
    assert seen.content
    assert [name.lower() for name, _ in seen.headers][:2] == ["server", "date"]


def test_an_answer_without_a_body_is_the_same(tmp_path: Path, client: Client, web: Site) -> None:
    """HEAD announces a length and sends nothing; 204 announces nothing."""
    head = twice(tmp_path / "head", lambda: client.head(f"{web.url}/page"), web)
    assert head.content == b""
    assert (
        dict(head.headers)["Content-Length"].isdecimal() if "Content-Length" in dict(head.headers) else True
    )
    assert twice(tmp_path / "204", lambda: client.get(f"{web.url}/nothing"), web).status == 204


def test_redirects_and_cookies_are_the_clients_own(tmp_path: Path, client: Client, web: Site) -> None:
    """Each hop is a call of its own; both cookies of the first one are kept."""
    seen = twice(tmp_path / "run", lambda: client.get(f"{web.url}/moved"), web)
    assert seen.content.decode() == PAGE
    assert seen.history == 1
    assert seen.cookies in (("first", "second"), ())  # urllib3 keeps none
    assert len(calls_in(tmp_path / "run")) == 2


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
def test_a_coded_body_is_the_same_decoded_and_raw(
    tmp_path: Path, client: Client, web: Site, coding: str
) -> None:
    """The client decodes in replay what it decoded when recorded; who reads raw bytes gets those bytes."""
    url = f"{web.url}/coded/{coding}"
    assert twice(tmp_path / "decoded", lambda: client.get(url), web).content.decode() == PAGE
    raw = twice(tmp_path / "raw", lambda: client.raw(url), web)
    assert len(raw) < len(PAGE)


def test_a_coding_the_client_may_not_know_is_the_same(tmp_path: Path, client: Client, web: Site) -> None:
    """Some decode Zstandard, some hand it over as it is, one refuses it."""
    url = f"{web.url}/coded/zstd"
    twice(tmp_path / "decoded", lambda: attempt(lambda: client.get(url)), web)
    twice(tmp_path / "raw", lambda: attempt(lambda: client.raw(url)), web)


def test_a_coded_body_is_recorded_readable(tmp_path: Path, client: Client, web: Site) -> None:
    """A reader of the recording needs no decompressor."""
    record(tmp_path / "run", lambda: client.get(f"{web.url}/coded/gzip"))
    [outcome] = outcomes_in(tmp_path / "run")
    text = outcome["value"].get("body") or "".join(outcome["pieces"])
    assert text == PAGE


def test_a_stream_has_the_same_chunks(tmp_path: Path, client: Client, web: Site) -> None:
    """Also where a chunk ends within an event or a character."""
    assert twice(tmp_path / "run", lambda: client.pieces(f"{web.url}/stream", 99), web) == list(CHUNKS)


@pytest.mark.parametrize("count", [1, 2])
def test_a_stream_may_be_left_half_read(tmp_path: Path, client: Client, web: Site, count: int) -> None:
    """What was read is there again; the call counts as answered."""
    pieces = twice(tmp_path / "run", lambda: client.pieces(f"{web.url}/stream", count), web)
    assert pieces == list(CHUNKS[:count])


def test_reading_on_where_the_recording_stopped_is_a_divergence(
    tmp_path: Path, client: Client, web: Site
) -> None:
    """Nobody knows what would have come."""
    record(tmp_path / "run", lambda: client.pieces(f"{web.url}/stream", 1))
    with pytest.raises(Diverged, match="read further"), reenact.replay(tmp_path / "run"):
        client.pieces(f"{web.url}/stream", 99)


@pytest.mark.parametrize("page", ["broken", "short"])
def test_a_connection_lost_halfway_fails_the_same(
    tmp_path: Path, client: Client, web: Site, page: str
) -> None:
    """With the same exception, message and cause."""
    failed = twice(tmp_path / "run", lambda: attempt(lambda: client.get(f"{web.url}/{page}")), web)
    assert isinstance(failed, Failed)


def test_a_stream_that_breaks_gives_what_came_first(tmp_path: Path, client: Client, web: Site) -> None:
    """The pieces before the break are there, then the exception."""
    assert twice(tmp_path / "run", lambda: client.pieces(f"{web.url}/broken", 1), web) == [b"hello"]
    failed = twice(tmp_path / "on", lambda: attempt(lambda: client.pieces(f"{web.url}/broken", 2)), web)
    assert isinstance(failed, Failed)


def test_a_timeout_fails_the_same(tmp_path: Path, client: Client, web: Site) -> None:
    failed = twice(tmp_path / "run", lambda: attempt(lambda: client.waits(f"{web.url}/slow")), web)
    assert isinstance(failed, Failed)
    assert "Timeout" in failed.kind.__name__


def test_a_refused_connection_fails_the_same(tmp_path: Path, client: Client, web: Site) -> None:
    failed = twice(tmp_path / "run", lambda: attempt(lambda: client.waits("http://127.0.0.1:9/")), web)
    assert isinstance(failed, Failed)


async def cancelled_by_httpx2(url: str) -> list[bytes]:
    async with httpx2.AsyncClient(verify=False) as client, client.stream("GET", url) as response:
        return await _until_cancelled(response.aiter_bytes())


async def cancelled_by_aiohttp(url: str) -> list[bytes]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return await _until_cancelled(response.content.iter_any())


async def _until_cancelled(chunks: Any) -> list[bytes]:
    found = [await anext(chunks)]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(chunks)
    return found


@pytest.mark.parametrize("work", [cancelled_by_httpx2, cancelled_by_aiohttp])
def test_a_reader_cancelled_within_a_stream_is_cancelled_again(
    tmp_path: Path, web: Site, work: Callable[[str], Any]
) -> None:
    """What came before is there; then nothing comes until the reader's own patience ends."""
    assert twice(tmp_path / "run", lambda: asyncio.run(work(f"{web.url}/stalling")), web) == [b"hello"]


@pytest.mark.parametrize("work", [cancelled_by_httpx2, cancelled_by_aiohttp])
def test_a_call_cancelled_before_its_answer_is_cancelled_again(
    tmp_path: Path, web: Site, work: Callable[[str], Any]
) -> None:
    async def impatient() -> str:
        try:
            await asyncio.wait_for(work(f"{web.url}/slow"), 0.05)
        except TimeoutError:
            return "gave up"
        return "got it"

    assert twice(tmp_path / "run", lambda: asyncio.run(impatient()), web) == "gave up"


BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "json": ({"json": {"a": 1, "b": [2.5, None]}}, {"json": {"b": [2.5, None], "a": 1}}),
    "json-text": (
        {"content": b'{"a": 1}', "headers": {"content-type": "application/json"}},
        {"content": b'{\n  "a": 1\n}', "headers": {"content-type": "application/json"}},
    ),
    "form": ({"form": {"a": "1 2", "b": "ü"}}, {"form": {"a": "1 2", "b": "ü"}}),
    "multipart": (
        {"files": {"f": ("a.bin", b"\x00\xff\r\n--")}},
        {"files": {"f": ("a.bin", b"\x00\xff\r\n--")}},
    ),
    "binary": ({"content": bytes(range(256))}, {"content": bytes(range(256))}),
    "compressed": (
        {
            "content": gzip.compress(b'{"a": 1}', mtime=1),
            "headers": {"content-type": "application/json", "content-encoding": "gzip"},
        },
        {
            "content": gzip.compress(b'{"a": 1}', mtime=2),
            "headers": {"content-type": "application/json", "content-encoding": "gzip"},
        },
    ),
    "generator": ({"chunks": [b"ab", b"cd"]}, {"chunks": [b"a", b"bcd"]}),
    "headers": ({"json": 1, "headers": {"x-id": "1"}}, {"json": 1, "headers": {"x-id": "2"}}),
}
"""What is sent when recorded, and in replay: the same meaning."""


@pytest.mark.parametrize("body", BODIES)
def test_a_body_of_the_same_meaning_matches(tmp_path: Path, client: Client, web: Site, body: str) -> None:
    """Key order, white space, the boundary, the chunks, the compressor and the headers do not matter."""
    first, second = BODIES[body]
    recorded = record(tmp_path / "run", lambda: client.post(f"{web.url}/", **first))
    assert recorded.startswith(b"got")
    assert replay(tmp_path / "run", lambda: client.post(f"{web.url}/", **second), web) == recorded


def test_a_streamed_body_arrives_whole(tmp_path: Path, client: Client, web: Site) -> None:
    """It is read before it is sent, and sent all the same."""
    record(tmp_path / "run", lambda: client.post(f"{web.url}/", chunks=iter([b"ab", b"cd"])))
    assert web.bodies[-1] == b"abcd"


OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "json": ({"json": {"a": 1}}, {"json": {"a": 2}}),
    "form": ({"form": {"a": "1"}}, {"form": {"a": "2"}}),
    "multipart": ({"files": {"f": ("a", b"1")}}, {"files": {"f": ("b", b"1")}}),
    "binary": ({"content": b"\x00\xff"}, {"content": b"\x00\xfe"}),
    "generator": ({"chunks": [b"ab"]}, {"chunks": [b"ba"]}),
}


@pytest.mark.parametrize("body", OTHERS)
def test_a_body_of_another_meaning_diverges(tmp_path: Path, client: Client, web: Site, body: str) -> None:
    first, second = OTHERS[body]
    record(tmp_path / "run", lambda: client.post(f"{web.url}/", **first))
    with pytest.raises(Diverged, match="differs"), reenact.replay(tmp_path / "run"):
        attempt(lambda: client.post(f"{web.url}/", **second))


def test_another_address_diverges(tmp_path: Path, client: Client, web: Site) -> None:
    record(tmp_path / "run", lambda: client.get(f"{web.url}/page?a=1"))
    with pytest.raises(Diverged), reenact.replay(tmp_path / "run"):
        attempt(lambda: client.get(f"{web.url}/page?a=2"))


def calls_in(path: Path) -> list[dict[str, Any]]:
    return [event["data"] for event in events_in(path) if "request" in event["data"]]


def outcomes_in(path: Path) -> list[dict[str, Any]]:
    return [event["data"] for event in events_in(path) if "value" in event["data"]]


def events_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
