"""Whom a guard stops: by its *applies*, its allow list, and while it is suspended."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes.util
import logging.handlers
import platform
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.resource_tracker import ResourceTracker

import pytest

from reenact.errors import LiveCallBlocked
from reenact.replayer import frames
from reenact.replayer.allow import Allow
from reenact.replayer.guard import Guard, suspend_guards


@pytest.fixture
def port() -> Iterator[int]:
    """A port that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def dial(port: int, host: str = "127.0.0.1") -> None:
    socket.create_connection((host, port), timeout=10).close()


def dial_and_forget(port: int) -> None:
    with suppress(LiveCallBlocked):
        dial(port)


def test_only_the_guard_that_applies_refuses(port):
    """Of two runs in one process, each is stopped by its own guard."""
    replaying = contextvars.ContextVar("replaying", default=False)
    with Guard(applies=replaying.get) as ours, Guard(applies=lambda: False) as other:
        dial(port)
        replaying.set(True)
        with pytest.raises(LiveCallBlocked):
            dial(port)
    assert (len(ours.blocked), len(other.blocked)) == (1, 0)


def test_applies_is_asked_in_the_thread_of_the_attempt(port):
    """A live run beside a replay keeps its network."""
    with Guard(applies=lambda: threading.current_thread().name == "replayed") as guard:
        for name in ("live", "replayed"):
            thread = threading.Thread(target=dial_and_forget, args=(port,), name=name)
            thread.start()
            thread.join()
    assert [call.thread for call in guard.blocked] == ["replayed"]


def test_guards_close_in_any_order(port):
    """The one still open goes on refusing."""
    first, second = Guard(), Guard()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    dial_and_forget(port)
    second.__exit__(None, None, None)
    dial(port)
    assert (len(first.blocked), len(second.blocked)) == (0, 1)


def test_a_guard_can_be_opened_again_within_itself(port):
    """The inner block's end does not open the way out."""
    guard = Guard()
    with guard:
        with guard:
            dial_and_forget(port)
        dial_and_forget(port)
    dial(port)
    assert guard.counts["connect"] == 2


def test_closing_restores_what_was_attached():
    """No method of ``socket`` and no spawn stays wrapped that was not so before."""
    wrapped = {"connect", "connect_ex", "sendto", "sendmsg"}
    before = wrapped & set(vars(socket.socket)), sys.modules["_posixsubprocess"].fork_exec
    with Guard():
        assert "connect" in vars(socket.socket)
    assert (wrapped & set(vars(socket.socket)), sys.modules["_posixsubprocess"].fork_exec) == before


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_an_allowed_loopback_port_is_reached(port, host):
    """A run lets the agent talk to what the run itself serves, by address or name."""
    with Guard(Allow(loopback_ports={port})) as guard:
        dial(port, host)
        asyncio.run(dial_async(port, host))
    assert guard.blocked == []


def test_an_allowed_port_is_allowed_on_loopback_alone(port):
    """The same port of another host is refused."""
    with Guard(Allow(loopback_ports={port})) as guard, pytest.raises(LiveCallBlocked):
        dial(port, "192.0.2.1")
    assert guard.blocked[0].target == f"192.0.2.1:{port}"


def test_a_unix_socket_is_refused_unless_listed(tmp_path):
    """Another process may sit behind it, a container daemon for one."""
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with Guard() as guard, socket.socket(socket.AF_UNIX) as sock, pytest.raises(LiveCallBlocked):
            sock.connect(path)
        with Guard(Allow(unix_sockets=[path])), socket.socket(socket.AF_UNIX) as sock:
            sock.connect(path)
    assert [call.target for call in guard.blocked] == [path]


def test_the_system_log_is_refused_like_any_socket(tmp_path):
    """A log handler that talks to a daemon goes live too."""
    with Guard() as guard, pytest.raises(LiveCallBlocked):
        logging.handlers.SysLogHandler(str(tmp_path / "log"))
    assert guard.counts["connect"] == 1


COMMANDS: dict[str, tuple[list[tuple[str, ...]], bool]] = {
    "whole command": ([("echo", "one", "two")], True),
    "first words": ([("echo", "one")], True),
    "program alone": ([("echo",)], True),
    "one of several": ([("true",), ("echo",)], True),
    "other arguments": ([("echo", "two")], False),
    "more words than run": ([("echo", "one", "two", "three")], False),
    "other path to it": ([("/bin/echo",)], False),
    "no word at all": ([()], False),
}


@pytest.mark.parametrize(("commands", "runs"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_is_allowed_by_its_first_words(commands, runs):
    """Compared word by word, as the caller wrote them."""
    with Guard(Allow(commands=commands)) as guard, suppress(LiveCallBlocked):
        assert subprocess.run(["echo", "one", "two"], capture_output=True).stdout == b"one two\n"
    assert bool(guard.blocked) is not runs


def test_the_program_really_run_is_compared():
    """``argv[0]`` is a label the caller chooses; the executable counts."""
    with Guard(Allow(commands=[("true",)])), pytest.raises(LiveCallBlocked):
        subprocess.run(["true"], executable="/bin/echo")


def start_and_stop_a_tracker() -> None:
    tracker = ResourceTracker()
    tracker.ensure_running()
    tracker._stop()


QUESTIONS: dict[str, Callable[[], object]] = {
    "platform": platform.architecture,
    "ctypes.util": lambda: ctypes.util.find_library("no-such-library"),
    "distro": lambda: pytest.importorskip("distro").LinuxDistribution(include_uname=True).uname_info(),
    "multiprocessing": start_and_stop_a_tracker,
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_questions_to_the_host_itself_are_no_live_calls(ask):
    """Libraries run ``uname`` and ``ldconfig`` on their own; that neither stops nor marks a replay."""
    with Guard() as guard:
        ask()
    assert guard.blocked == []


def test_the_agents_own_question_to_the_host_is_refused():
    """The exception is for who asks, not for what is run."""
    with Guard() as guard, pytest.raises(LiveCallBlocked):
        subprocess.run(["uname", "-p"])
    assert guard.blocked[0].target == "uname -p"


async def dial_async(port: int, host: str = "127.0.0.1") -> None:
    _, writer = await asyncio.open_connection(host, port)
    writer.close()
    await writer.wait_closed()


def test_a_suspended_guard_lets_a_sync_tool_go_live(port):
    """For its own block only."""
    with Guard() as guard:
        with suspend_guards():
            dial(port)
            subprocess.run(["true"], check=True)
        dial_and_forget(port)
    assert len(guard.blocked) == 1


async def test_a_suspended_task_leaves_its_siblings_guarded(port):
    """Two tasks interleave; only the passed-through tool goes live."""
    with Guard() as guard:
        entered, tried = asyncio.Event(), asyncio.Event()

        async def passed_through() -> None:
            with suspend_guards():
                entered.set()
                await tried.wait()
                await asyncio.create_task(dial_async(port))
                await asyncio.to_thread(dial, port)

        async def ordinary() -> None:
            await entered.wait()
            with pytest.raises(LiveCallBlocked):
                await dial_async(port)
            tried.set()

        await asyncio.gather(passed_through(), ordinary())
    assert len(guard.blocked) == 1


def test_suspension_reaches_a_thread_with_a_copied_context_only(port):
    """A bare worker thread stays guarded: nobody said that its work belongs to the tool."""
    with Guard(), ThreadPoolExecutor(1) as pool, suspend_guards():
        pool.submit(contextvars.copy_context().run, dial, port).result()
        with pytest.raises(LiveCallBlocked):
            pool.submit(dial, port).result()


def test_a_guarded_program_works_otherwise(tmp_path):
    """Event loops, pipes, threads, local servers, forks and files are not going live."""

    async def serve() -> int:
        server = await asyncio.start_server(lambda *_: None, "localhost", 0)
        async with server:
            return await asyncio.to_thread(lambda: len(server.sockets))

    with Guard() as guard:
        assert asyncio.run(serve()) > 0
        left, right = socket.socketpair()
        with left, right:
            left.sendmsg([b"x"])
            assert right.recv(1) == b"x"
        (tmp_path / "file").write_text("x")
        assert socket.getaddrinfo(None, 80)
        assert socket.getaddrinfo("::1", 80)
    assert guard.blocked == []


def test_the_place_is_the_agents_line_in_any_thread():
    """Not ``threading.py``, not the executor, not reenact."""
    with Guard() as guard, ThreadPoolExecutor(1, thread_name_prefix="worker") as pool:
        pool.submit(dial_and_forget, 9).result()
    line = dial.__code__.co_firstlineno + 1
    assert guard.blocked[0].frame == f"{__file__}:{line} in dial"
    assert guard.blocked[0].thread == "worker_0"


def test_a_thread_without_agent_code_has_no_place():
    """The loop's resolver runs library code alone, so the message names the thread."""
    with Guard() as guard, ThreadPoolExecutor(1, thread_name_prefix="resolver") as pool:
        refused = pool.submit(socket.getaddrinfo, "name.invalid", 443).exception()
    assert guard.blocked[0].frame is None
    assert str(refused).startswith("thread resolver_0: looking up name.invalid is refused")


def test_agent_frame_is_the_caller():
    """Called directly, it names the line of the call."""
    place = frames.agent_frame()
    line = test_agent_frame_is_the_caller.__code__.co_firstlineno + 2
    assert place == f"{__file__}:{line} in test_agent_frame_is_the_caller"


def test_agent_frame_looks_no_deeper_than_told():
    """A frame beyond the limit is not found."""
    assert frames.agent_frame(depth_limit=1) is None
