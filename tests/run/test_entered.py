"""Code of the project that a replay never entered is named."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import httpx
import pytest

import reenact
from reenact.run.run import Run
from reenact.seams.entered import _ByProfiling

AnyRun = TypeVar("AnyRun", bound=Run)


def of_test(run: AnyRun) -> AnyRun:
    """*run* as the pytest plugin opens it: before Python 3.12 nobody listens to others."""
    run.is_test = True
    return run


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
    with of_test(reenact.capture(tmp_path / "run")):
        assert httpx.get(url).text == "hello /lamp"
    with of_test(reenact.replay(tmp_path / "run")) as run:
        assert httpx.get(url).text == "hello /lamp"
    assert run.notes == ["nothing of shop_app.py ran in this replay, although it did when it was recorded"]
    assert run.receipt is not None
    assert run.receipt.notes == run.notes


def test_nothing_is_said_where_all_ran(tmp_path: Path, app: ModuleType) -> None:
    """Twice, because functions are reported once and must be reported again in the next run."""
    with of_test(reenact.capture(tmp_path / "run")):
        app.answer("x")
    for _ in range(2):
        with of_test(reenact.replay(tmp_path / "run")) as run:
            app.answer("x")
        assert run.notes == []


def test_what_runs_inside_a_tool_is_not_missed(tmp_path: Path, app: ModuleType) -> None:
    """It is answered from the recording on purpose."""

    @reenact.tool
    def ask() -> str:
        return str(app.answer("x"))

    with of_test(reenact.capture(tmp_path / "run")):
        ask()
    with of_test(reenact.replay(tmp_path / "run")) as run:
        ask()
    assert run.notes == []


NOT_RUN = "nothing of shop_app.py ran in this replay, although it did when it was recorded"
profiled = pytest.mark.skipif(sys.version_info >= (3, 12), reason="newer Pythons need no profiler")


def test_a_thread_that_was_there_before_is_seen(tmp_path: Path, app: ModuleType) -> None:
    """Recorded in a new worker, replayed in one of an earlier test's."""
    with ThreadPoolExecutor(1) as pool:
        with of_test(reenact.capture(tmp_path / "run")):
            pool.submit(app.answer, "x").result()
        with of_test(reenact.replay(tmp_path / "run")) as run:
            pool.submit(app.answer, "x").result()
        assert run.notes == []
        with of_test(reenact.replay(tmp_path / "run")) as run:
            pool.submit(str, "x").result()
        assert run.notes == [NOT_RUN]


@profiled
def test_nobody_listens_when_all_is_known(tmp_path: Path, app: ModuleType) -> None:
    """It costs nothing from there on, nor after the run."""
    with of_test(reenact.capture(tmp_path / "run")):
        assert sys.getprofile() is not None
        app.answer("x")
    assert sys.getprofile() is None
    with of_test(reenact.replay(tmp_path / "run")):
        assert sys.getprofile() is not None
        app.answer("x")
        assert sys.getprofile() is None


@profiled
def test_nobody_listens_outside_of_tests(tmp_path: Path, app: ModuleType) -> None:
    """What was not heard cannot be said to be missing."""
    with reenact.capture(tmp_path / "run"):
        assert sys.getprofile() is None
        app.answer("x")
    assert b'"entered"' not in (tmp_path / "run" / "events.jsonl").read_bytes()
    with reenact.replay(tmp_path / "run") as run:
        assert sys.getprofile() is None
    assert run.notes == []


@profiled
def test_nobody_listens_after_a_divergence(
    tmp_path: Path, app: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is said then of code that never ran."""
    monkeypatch.setattr(_ByProfiling, "_STRIDE", 0)

    @reenact.tool
    def look_up(word: str) -> str:
        return word

    with of_test(reenact.capture(tmp_path / "run")):
        app.answer("x")
        look_up("lamp")
    with of_test(reenact.replay(tmp_path / "run", policy="lenient")) as run:
        look_up("chair")
        len(Path("x").parts)  # runs Python code of a library
        assert sys.getprofile() is None
    assert run.divergences
    assert NOT_RUN not in run.notes


@profiled
@pytest.mark.parametrize("is_first", [True, False])
def test_a_profiler_keeps_its_hook(tmp_path: Path, app: ModuleType, is_first: bool) -> None:
    """Whoever comes later; what cannot be known is not said."""

    def profiler(*_: object) -> None:
        """Hears all."""

    with of_test(reenact.capture(tmp_path / "run")):
        app.answer("x")
    try:
        if is_first:
            sys.setprofile(profiler)
        with of_test(reenact.replay(tmp_path / "run")) as run:
            sys.setprofile(profiler)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
    assert run.notes == []
