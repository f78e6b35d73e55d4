"""In replay nothing goes live, from the first fixture of the test to its last teardown."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.pytest_plugin.conftest import Suite

pytest_plugins = ["pytester"]


@pytest.fixture
def port() -> Iterator[int]:
    """A port that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def dialling(port: int, mark: str = "@pytest.mark.reenact") -> str:
    """A test that connects, by way of a fixture's setup, its own body or the fixture's teardown."""
    return f"""
import os, socket

def dial(phase):
    if VARIANT == phase:
        try: socket.create_connection(("127.0.0.1", {port})).close()
        except reenact.LiveCallBlocked: pass

@pytest.fixture
def dialler():
    dial("setup")
    yield
    dial("teardown")

{mark}
def test_one(dialler):
    search("a")
    dial("body")
"""


@pytest.mark.parametrize("phase", ["setup", "body", "teardown"])
def test_a_connection_is_refused_in_every_phase(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, port: int, phase: str
) -> None:
    """Also where the agent swallows the refusal."""
    suite.write(test_it=dialling(port))
    suite.run("--reenact=record").assert_outcomes(passed=1)
    monkeypatch.setenv("VARIANT", phase)
    suite.run("--reenact=off").assert_outcomes(passed=1)
    result = suite.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [f"*connecting to 127.0.0.1:{port} is refused in replay; *", "reenact: 1 diverged"]
    )


@pytest.mark.parametrize("phase", ["setup", "body", "teardown"])
@pytest.mark.parametrize("allow", ["'loopback'", "[PORT]", "[80, PORT]"])
def test_ports_that_the_test_needs_can_be_allowed(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, port: int, phase: str, allow: str
) -> None:
    """By number, or all of this host."""
    suite.write(test_it=dialling(port, f"@pytest.mark.reenact(allow={allow.replace('PORT', str(port))})"))
    suite.run("--reenact=record").assert_outcomes(passed=1)
    monkeypatch.setenv("VARIANT", phase)
    suite.run().assert_outcomes(passed=1)


def test_unix_sockets_and_commands_can_be_allowed(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """By path, and by the first words; another command is another call."""
    path = str(tmp_path_factory.mktemp("s") / "s")
    suite.write(
        test_it=f"""
import os, socket

def run(*words):
    child = os.posix_spawnp(words[0], words, os.environ)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

@pytest.mark.reenact(allow=[{path!r}, ("true", "well")])
def test_one():
    search("a")
    with socket.socket(socket.AF_UNIX) as client: client.connect({path!r})
    run("true", VARIANT or "well", "done")
"""
    )
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        suite.run("--reenact=record").assert_outcomes(passed=1)
        suite.run().assert_outcomes(passed=1)
        monkeypatch.setenv("VARIANT", "ill")
        suite.run().stdout.fnmatch_lines(["process/true differs at *: expected *well*, observed *ill*"])


def test_a_tool_called_in_teardown_is_refused_with_the_remedy(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is over by then, unless the fixture requests it."""
    fixture = "@pytest.fixture\ndef assistant({argument}):\n    yield\n    search('delete')\n"
    test = "@pytest.mark.reenact\ndef test_one(assistant):\n    search('a')\n"
    suite.write(test_it=fixture.format(argument="") + test)
    suite.run("--reenact=record").assert_outcomes(passed=1)
    monkeypatch.setenv("VARIANT", "offline")
    result = suite.run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*test_it.py:6 in assistant: calling tool search is refused after the run; *",
            "  teardown     is recorded for fixtures that request reenact_run",
            "reenact: 1 diverged",
        ]
    )
    suite.write(test_it=fixture.format(argument="reenact_run") + test)
    monkeypatch.delenv("VARIANT")
    suite.run("--reenact=record").assert_outcomes(passed=1)
    monkeypatch.setenv("VARIANT", "offline")
    suite.run().assert_outcomes(passed=1)


def test_the_run_s_own_values_are_refused_in_teardown_too(suite: Suite) -> None:
    """A clock read after the run has no recorded value."""
    suite.write(
        test_it="""
import reenact.run

@pytest.fixture
def timed():
    yield
    reenact.run.Run().clock.now()

@pytest.mark.reenact
def test_one(timed):
    search("a")
"""
    )
    suite.run("--reenact=record").assert_outcomes(passed=1)
    suite.run().stdout.fnmatch_lines(["*recording a nondeterministic is refused after the run; *"])


def test_an_async_teardown_is_guarded_too(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in a context that pytest-asyncio copied while the run was open."""
    suite.write(
        test_it="""
@pytest.fixture
async def assistant():
    yield
    await ask("delete")

@pytest.mark.reenact
async def test_one(assistant):
    await ask("a")
"""
    )
    loops = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")
    options = ("-p", "pytest_asyncio.plugin", *loops)
    suite.run("--reenact=record", *options).assert_outcomes(passed=1)
    monkeypatch.setenv("VARIANT", "offline")
    result = suite.run(*options)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*in assistant: calling tool ask is refused after the run; *"])


def test_the_next_test_is_not_guarded(suite: Suite, port: int) -> None:
    """A test without a mark stays what it was."""
    suite.write(
        test_it=f"""
import socket

@pytest.mark.reenact
def test_one():
    search("a")

def test_two():
    search("b")
    socket.create_connection(("127.0.0.1", {port})).close()
"""
    )
    suite.run("--reenact=record").assert_outcomes(passed=2)
    suite.run().assert_outcomes(passed=2)
