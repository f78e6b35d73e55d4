"""``reenact.run``: one call for recording and replaying, whichever is due; and what a run may be told."""

from __future__ import annotations

import inspect
import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.process_state import applied_patches, open_runs

open_run: Any = reenact.run


@reenact.tool
def draw() -> int:
    return random.getrandbits(60)


def once(path: Path, **options: Any) -> tuple[str, int]:
    with open_run(path, **options) as run:
        return run.mode, draw()


@pytest.fixture(autouse=True)
def outside_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


def test_once_records_and_then_replays(tmp_path: Path) -> None:
    mode, first = once(tmp_path / "run", mode="once")
    assert mode == "capture"
    assert once(tmp_path / "run", mode="once") == ("replay", first)
    assert once(tmp_path / "run") == ("replay", first)


def test_always_records_anew_and_replaces_only_with_what_went_well(tmp_path: Path) -> None:
    _, first = once(tmp_path / "run", mode="always")
    _, second = once(tmp_path / "run", mode="always")
    assert once(tmp_path / "run", mode="never") == ("replay", second)
    assert first != second
    with pytest.raises(ZeroDivisionError), open_run(tmp_path / "run", mode="always"):
        draw()
        1 / 0  # noqa: B018
    assert once(tmp_path / "run", mode="never") == ("replay", second)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@reenact.tool
def double(number: int) -> int:
    return 2 * number + random.getrandbits(1)


def test_update_asks_only_for_what_differs(tmp_path: Path) -> None:
    """It records where there is nothing yet, and a block that fails changes nothing."""
    _, first = once(tmp_path / "run", mode="update")
    before = (tmp_path / "run" / "events.jsonl").read_bytes()
    assert once(tmp_path / "run", mode="update") == ("capture", first)
    assert (tmp_path / "run" / "events.jsonl").read_bytes() == before
    with pytest.raises(ZeroDivisionError), open_run(tmp_path / "run", mode="update"):
        double(4)
        1 / 0  # noqa: B018
    assert (tmp_path / "run" / "events.jsonl").read_bytes() == before
    with open_run(tmp_path / "run", mode="update"):
        assert draw() == first
        doubled = double(4)
    with open_run(tmp_path / "run", mode="never"):
        assert (draw(), double(4)) == (first, doubled)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("mode", ["never", "auto"])
def test_a_missing_capture_is_not_recorded_in_ci(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(reenact.UsageError, match="there is no capture"):
        once(tmp_path / "run", mode=mode)
    assert not (tmp_path / "run").exists()


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(reenact.UsageError, match="choose auto, once, always, never, update"):
        once(tmp_path / "run", mode="sometimes")


def test_it_is_switched_off_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REENACT_MODE", "off")
    assert once(tmp_path / "run", mode="never")[0] == "off"


def test_the_policy_is_that_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the call names none, as for a replay."""
    once(tmp_path / "run", mode="once")
    monkeypatch.setenv("REENACT_POLICY", "lenient")
    with open_run(tmp_path / "run", mode="never") as run:
        pass
    assert {each.code for each in run.divergences} == {"event_missing"}


@pytest.mark.parametrize("name", ["capture", "replay"])
def test_the_documented_arguments_are_the_real_ones(name: str) -> None:
    """Each with its default, in its order."""
    page = " ".join((Path(__file__).parents[2] / "docs" / "api.md").read_text().split())
    parameters = inspect.signature(getattr(reenact, name)).parameters.values()
    told = [
        each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in parameters
    ]
    assert f"`reenact.{name}({', '.join([told[0], '*', *told[1:]])})`" in page


def test_variables_of_the_environment_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are named are the recorded ones in replay; others are read as they are."""
    monkeypatch.setenv("SHOP_NAME", "Lamps")
    monkeypatch.setenv("OTHER", "before")
    with reenact.capture(tmp_path / "run", environ=["SHOP_NAME"]):
        assert (os.environ["SHOP_NAME"], os.getenv("OTHER")) == ("Lamps", "before")
        assert "PATH" in list(os.environ)
    monkeypatch.delenv("SHOP_NAME")
    monkeypatch.setenv("OTHER", "after")
    with reenact.replay(tmp_path / "run"):
        assert (os.environ["SHOP_NAME"], os.getenv("OTHER")) == ("Lamps", "after")
    assert (tmp_path / "run" / "events.jsonl").read_text().count('"env_read"') == 1


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def say_hello(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"hello")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_an_address_may_be_allowed(tmp_path: Path, port: int, host: str) -> None:
    allow = [f"{host}:{port}"]
    with reenact.capture(tmp_path / "run", allow=allow) as run:
        say_hello(port)
    assert run.warnings == []
    with reenact.replay(tmp_path / "run", allow=allow):
        say_hello(port)
    with pytest.raises(reenact.LiveCallBlocked), reenact.replay(tmp_path / "run", allow=["127.0.0.1:1"]):
        say_hello(port)


AGENT = """
import socket, sys, reenact
@reenact.tool
def tool(): return 1
tool()
socket.create_connection(("127.0.0.1", int(sys.argv[1]))).sendall(b"hello")
"""


@pytest.mark.slow
def test_a_command_may_reach_what_is_allowed(tmp_path: Path, port: int) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    agent = [sys.executable, "agent.py", str(port)]

    def reenact_cli(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "reenact", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)

    recorded = reenact_cli("record", "-o", "run", "--", *agent)
    assert "is not recorded, and a replay will refuse it" in recorded.stderr
    assert reenact_cli("replay", "run", "--", *agent).returncode == 1
    allowed = reenact_cli("replay", "run", "--allow", f"localhost:{port}", "--", *agent)
    assert allowed.returncode == 0, allowed.stderr
    assert f"nothing went live but what --allow names: localhost:{port}" in allowed.stderr
    for given in ("nonsense", "localhost:99999"):
        wrong = reenact_cli("replay", "run", "--allow", given, "--", *agent)
        assert (wrong.returncode, f"--allow {given}: is not HOST:PORT" in wrong.stderr) == (3, True)


def test_a_run_that_cannot_begin_leaves_nothing_attached(tmp_path, monkeypatch):
    def fail(self):
        raise OSError("no such machine")

    before = {*applied_patches}
    monkeypatch.setattr("reenact.run.capturing.CaptureRun.surroundings", fail)
    with pytest.raises(OSError, match="no such machine"), reenact.capture(tmp_path / "run"):
        pass
    assert (applied_patches.keys(), open_runs) == (before, {})
