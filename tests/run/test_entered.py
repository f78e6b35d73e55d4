"""Code of the project that a replay never entered is named."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

import reenact

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="older Pythons cannot tell")

APP = """
def answer(path):
    return f"hello {path}".encode()
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "shop_app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module("shop_app")
    del sys.modules["shop_app"]


@pytest.fixture
def url(app: ModuleType) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = app.answer(self.path)
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/lamp"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_app_that_a_replay_never_entered_is_named(tmp_path: Path, url: str) -> None:
    """Driven over a real port, its answer comes from the recording."""
    with reenact.capture(tmp_path / "run"):
        assert httpx.get(url).text == "hello /lamp"
    with reenact.replay(tmp_path / "run") as run:
        assert httpx.get(url).text == "hello /lamp"
    assert run.notes == ["nothing of shop_app.py ran in this replay, although it did when it was recorded"]
    assert run.receipt is not None
    assert run.receipt.notes == run.notes


def test_nothing_is_said_where_all_ran(tmp_path: Path, app: ModuleType) -> None:
    """Twice, because functions are told once and must be told again in the next run."""
    with reenact.capture(tmp_path / "run"):
        app.answer("x")
    for _ in range(2):
        with reenact.replay(tmp_path / "run") as run:
            app.answer("x")
        assert run.notes == []


def test_what_runs_inside_a_tool_is_not_missed(tmp_path: Path, app: ModuleType) -> None:
    """It is answered from the recording on purpose."""

    @reenact.tool
    def ask() -> str:
        return str(app.answer("x"))

    with reenact.capture(tmp_path / "run"):
        ask()
    with reenact.replay(tmp_path / "run") as run:
        ask()
    assert run.notes == []
