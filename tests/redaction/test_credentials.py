"""A credential that a request has sent is hidden wherever it appears later, also without its name."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
import requests

import reenact
from reenact.redaction import Redactor
from tests.recorder.test_secrets import everything_in

KEY = "kQ7vN2xT9zLm4RbW8hYc"
PASSWORD = "gr4nit-Fjord7"
UUID = "3f2b8c1e-94d7-4a06-b5e2-7c1d9f80a6b4"


def redactor(**options: Any) -> Redactor:
    return Redactor(options.pop("profile", "default"), salt=b"salt of one capture", **options)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-api-key": KEY},
        {"authorization": f"Bearer {KEY}"},
        {"authorization": KEY},
        {"Ocp-Apim-Subscription-Key": KEY},
        {"x-functions-key": KEY},
        {"Helicone-Auth": f"Bearer {KEY}"},
        {"X-Honeycomb-Team": KEY},
        {"private-token": KEY},
        {"authorization": "Basic " + b64encode(f"ada:{KEY}".encode()).decode()},
    ],
    ids=lambda headers: next(iter(headers)),
)
def test_the_key_of_a_header_is_hidden_in_later_texts(headers: dict[str, str]):
    """A server may answer with the key in a sentence, in an error, or encoded."""
    redact = redactor()
    assert redact.redact_text(f"seen {KEY} there") == f"seen {KEY} there"
    redact.learn(headers)
    texts = [f"seen {KEY} there", json.dumps({"echo": KEY}), b64encode(f"<{KEY}>".encode()).decode()]
    for text in texts:
        assert KEY not in redact.redact_text(text)
        assert redact.redact_text(text) != text
    assert KEY.encode() not in b"".join(redact.redact_chunks([b"seen " + KEY[:7].encode(), KEY[7:].encode()]))


@pytest.mark.parametrize(
    "request_",
    [
        {"user": "ada", "password": PASSWORD},
        {"form": [["user", "ada"], ["password", PASSWORD]]},
        {"url": f"https://ada:{PASSWORD}@example.com/"},
        {"url": f"https://example.com/?access_token={PASSWORD}"},
        {"deep": [{"client_secret": PASSWORD}]},
    ],
    ids=["member", "form", "user", "query", "deep"],
)
def test_the_password_of_a_request_is_hidden_in_later_texts(request_: dict[str, Any]):
    """A tool that was called with a password may repeat it."""
    redact = redactor()
    assert PASSWORD not in redact.redact_request(canonical_json(request_)).decode()
    assert PASSWORD not in redact.redact_text(f"logged in with {PASSWORD}!")


@pytest.mark.parametrize("value", ["lm-studio", "not-needed", "EMPTY", UUID, UUID.replace("-", ""), "x" * 40])
def test_a_value_that_may_be_an_ordinary_text_is_not_learned(value: str):
    """Such a key may differ in the replay, whose texts would then differ, too."""
    redact = redactor()
    redact.learn({"authorization": f"Bearer {value}", "x-session-id": KEY, "idempotency-key": KEY})
    redact.redact_request(canonical_json({"token": value}))
    for text in (f"we use {value} here", f"session {KEY}"):
        assert redact.redact_text(text) == text


def test_without_names_nothing_is_learned():
    """The profile ``none`` hides registered values only."""
    redact = redactor(profile="none")
    redact.learn({"x-api-key": KEY})
    assert redact.redact_text(KEY) == KEY


def test_a_registered_secret_stays_hidden_when_another_is_learned():
    redact = redactor(secrets=["the-first-one"])
    redact.learn({"x-api-key": KEY})
    shown = redact.redact_text(f"the-first-one and {KEY}")
    assert "the-first-one" not in shown
    assert KEY not in shown


class _Echo(BaseHTTPRequestHandler):
    """Answers with the credentials that it was sent, as some debugging endpoints do."""

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        key = self.headers.get("x-api-key") or asked.partition("password=")[2]
        body = json.dumps({"you_sent": f"we saw {key} today"}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}/"
        listening.shutdown()


@reenact.tool
def note(text: str) -> str:
    return f"noted: {text}"


def test_a_key_that_comes_back_is_nowhere_on_disk_and_the_run_replays(tmp_path: Path, server: str):
    """What the agent does with the answer is hidden, too, and is the same in a replay."""

    def agent() -> list[str]:
        said = [httpx2.post(server, headers={"X-Api-Key": KEY}, json={}).json()["you_sent"]]
        said.append(requests.post(server, data={"password": PASSWORD}, timeout=5).json()["you_sent"])
        return [note(text) for text in said]

    with reenact.capture(tmp_path / "run") as run:
        run.final_output = agent()
    written = everything_in(tmp_path / "run")
    assert KEY.encode() not in written
    assert PASSWORD.encode() not in written
    with reenact.replay(tmp_path / "run") as run:
        run.final_output = agent()
    assert run.divergences == []


def canonical_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
