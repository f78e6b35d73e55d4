"""Real captures with secrets planted in every call: no file of the directory holds one, and they replay.

Each client really asks a server on loopback that sends secrets back, in its headers and its body.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import httpx2
import pytest
import requests
import urllib3

import reenact
from reenact.errors import LiveCallBlocked
from tests.cli.commands import PYTHON, run

from . import planted

HEADERS = {name: f"plain-{number}-secret" for number, name in enumerate(planted.HEADER_NAMES)}
HEADERS["cookie"] = f"sid={HEADERS['cookie']}"
FORM = {name: f"form-{number}-secret" for number, name in enumerate(planted.SECRET_NAMES)}
SHAPED = planted.families(random.Random("captures"))
ANSWERED = {"session": "answer-1-secret", "x-session-id": "answer-2-secret", "key": "answer-3-secret"}
TOLD = {
    "access_token": "told-1-secret",
    "pairs": [["client_secret", "told-2-secret"]],
    "text": [*SHAPED.values()],
}


class Echo(BaseHTTPRequestHandler):
    """Says in its headers and its body what must not be kept."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps(TOLD).encode()
        is_packed = "gzip" in self.path
        body = gzip.compress(body) if is_packed else body
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("set-cookie", "sid=cookie-1-secret; Path=/")
        if is_packed:
            self.send_header("content-encoding", "gzip")
        for name, value in ANSWERED.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()


def with_httpx2(url: str) -> None:
    httpx2.post(url, headers=HEADERS, data=FORM)
    httpx2.post(url, headers=HEADERS, files={"client_secret": (None, "part-1-secret")})


def with_requests(url: str) -> None:
    requests.post(url, headers=HEADERS, data=FORM, timeout=9)
    requests.post(url, headers=HEADERS, files={"client_secret": (None, "part-1-secret")}, timeout=9)


def with_urllib3(url: str) -> None:
    with urllib3.PoolManager() as pool:
        pool.request("POST", url, headers=HEADERS, fields=FORM, encode_multipart=False)
        part = {"client_secret": "part-1-secret"}
        pool.request("POST", url, headers=HEADERS, fields=part, multipart_boundary="b1")


def with_aiohttp(url: str) -> None:
    async def ask() -> None:
        async with aiohttp.ClientSession() as session:
            answer = await session.post(url, headers=HEADERS, data=FORM)
            await answer.read()

    asyncio.run(ask())


CLIENTS = {
    "httpx2": with_httpx2,
    "requests": with_requests,
    "urllib3": with_urllib3,
    "aiohttp": with_aiohttp,
}


def survivors(folder: Path) -> set[str]:
    """The planted secrets that any file below *folder* still holds."""
    secrets = [value.removeprefix("sid=") for value in HEADERS.values()]
    secrets += [*FORM.values(), *SHAPED.values(), *ANSWERED.values()]
    secrets += ["told-1-secret", "told-2-secret", "cookie-1-secret", "part-1-secret", "argument-1-secret"]
    data = b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert len(data) > 500
    return {secret for secret in secrets if planted.holds(data, secret)}


@pytest.mark.parametrize("path", ["/plain", "/gzip?api_key=form-2-secret"], ids=["plain", "gzip"])
@pytest.mark.parametrize("profile", ["default", "strict"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_leaves_no_secret_and_its_run_replays(
    client: str, profile: str, path: str, server: str, tmp_path: Path
) -> None:
    """Headers, forms, parts, answers, whichever library sends them."""
    ask: Callable[[str], None] = CLIENTS[client]
    with reenact.capture(tmp_path / "run", redact=profile):  # type: ignore[arg-type]
        ask(server + path)
    assert survivors(tmp_path) == set()
    with reenact.replay(tmp_path / "run") as run:
        ask(server + path)
    assert run.divergences == []


@pytest.mark.parametrize("profile", ["default", "strict"])
def test_a_command_line_leaves_no_secret(profile: str, tmp_path: Path) -> None:
    """Arguments of programs, as lists and as one text, and the output that repeats them."""
    words = [sys.executable, "-c", "import sys; print(sys.argv)", "--api-key", "argument-1-secret"]

    def work() -> None:
        subprocess.run([*words, "-H", "X-Session-Id: argument-1-secret"], capture_output=True, check=True)
        subprocess.run("true --client-secret argument-1-secret", shell=True, check=True)

    with reenact.capture(tmp_path / "run", redact=profile, sources=["subprocess"], modules=[__name__]):  # type: ignore[arg-type]
        work()
    assert survivors(tmp_path) == set()
    with reenact.replay(tmp_path / "run"):
        work()


def test_a_refused_program_is_named_without_its_secret(tmp_path: Path) -> None:
    """In the error, in the receipt, and in what the run keeps of it."""
    with reenact.capture(tmp_path / "run", sources=[]):
        pass
    words = ["/bin/echo", "--api-key", "argument-1-secret", "-u", "bob:argument-1-secret"]
    with (
        pytest.raises(LiveCallBlocked) as caught,
        reenact.replay(tmp_path / "run", receipt=tmp_path / "receipt.json") as run,
    ):
        subprocess.run(words, check=False)
    assert "--api-key" in str(caught.value)
    assert "argument-1-secret" not in str(caught.value)
    assert "argument-1-secret" not in str(run.blocked)
    assert survivors(tmp_path) == set()


@pytest.mark.parametrize("profile", ["default", "strict"])
def test_the_gateway_leaves_no_secret(profile: str, server: str, tmp_path: Path) -> None:
    """An agent in any language, with a key among its own arguments."""
    agent, told = tmp_path / "agent.py", tmp_path / "told.json"
    agent.write_text(
        "import sys, json, urllib.request as u\nh, f = json.load(open(sys.argv[1]))\n"
        "u.urlopen(u.Request(sys.argv[2] + '/x/form', f.encode(), h)).read()\n"
    )
    told.write_text(json.dumps([HEADERS, urlencode(FORM)]))
    words = (PYTHON, "-S", "-E", agent, told, "{gateway}", "--api-key", "argument-1-secret")
    options = ("-o", "run", "--redact", profile, "--upstream", f"x={server}")
    done = run("record", *options, "--", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told.unlink()
    assert survivors(tmp_path) == set()


HALF = "\ud83d"
"""Half of a character: JSON in UTF-8 cannot hold it, so that the text around it is kept in another form."""


@pytest.mark.parametrize("profile", ["default", "strict"])
@pytest.mark.parametrize(
    "answer",
    [
        lambda key: f"{HALF} {key}",
        lambda key: {"said": [f"the key is {key} {HALF}"]},
        lambda key: {f"{HALF} {key}": 1},
        lambda key: {"password": f"{HALF}{key}"},
        lambda key: (f"{key}{HALF}",),
    ],
)
def test_half_characters_hide_no_secret(tmp_path, profile, answer):
    """Neither as it is, nor in the form in which such a text is kept."""
    key = "ghp_" + "a1B2" * 9
    with reenact.capture(tmp_path / "run", redact=profile):
        assert reenact.tool(lambda: answer(key))() == answer(key)
    text = (tmp_path / "run" / "events.jsonl").read_text()
    assert key not in text
    assert key.encode("utf-16-le").hex() not in text
    assert "<secret:" in text or "<secret:".encode("utf-16-le").hex() in text


def test_half_characters_without_a_secret_stay(tmp_path):
    """A text that nothing is wrong with comes back to the letter."""
    said = {"text": f"{HALF} fine", f"{HALF}": [HALF]}
    give = reenact.tool(lambda: said)
    with reenact.capture(tmp_path / "run"):
        give()
    with reenact.replay(tmp_path / "run"):
        assert give() == said


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("shape", [lambda data: data, bytearray, lambda data: [{"file": data}]])
def test_wide_text_in_bytes_hides_no_secret(tmp_path, coding, shape):
    """What is not a secret in it stays; bytes stay bytes."""
    key = "ghp_" + "a1B2" * 9
    give = reenact.tool(lambda: shape(f"the key is {key}, as you know".encode(coding)))
    with reenact.capture(tmp_path / "run"):
        give()
    with reenact.replay(tmp_path / "run"):
        found = give()
    data = found[0]["file"] if isinstance(found, list) else found
    text = bytes(data).decode(coding)
    assert text.startswith("the key is <secret:github-token:")
    assert text.endswith(">, as you know")


def test_binary_data_that_looks_wide_stays(tmp_path):
    """Zeros alone make no text."""
    give = reenact.tool(lambda: bytes(range(256)) * 4 + b"\0\1\0\2" * 99)
    with reenact.capture(tmp_path / "run"):
        data = give()
    with reenact.replay(tmp_path / "run"):
        assert give() == data


def test_zeros_between_characters_hide_no_secret(tmp_path):
    """UTF-16 that was read as UTF-8 has them; a text without a secret keeps them."""
    key = "ghp_" + "a1B2" * 9
    give = reenact.tool(lambda which: "\0".join(f"the key is {key} " if which else "nothing to hide"))
    with reenact.capture(tmp_path / "run"):
        give(True)
        give(False)
    with reenact.replay(tmp_path / "run"):
        assert give(True).startswith("the key is <secret:github-token:")
        assert give(False) == "\0".join("nothing to hide")


def test_zeros_stay_where_the_secret_is_found_without(tmp_path):
    """Binary data with a key in it is not changed elsewhere."""
    key = "ghp_" + "a1B2" * 9
    give = reenact.tool(lambda: b"\0\xff\0" + f"key {key} end".encode() + b"\0\0\1")
    with reenact.capture(tmp_path / "run"):
        give()
    with reenact.replay(tmp_path / "run"):
        found = give()
    assert found.startswith(b"\0\xff\0key <secret:github-token:")
    assert found.endswith(b"> end\0\0\1")
