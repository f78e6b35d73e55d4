"""What the agent asks about its machine is the recorded machine's in replay."""

from __future__ import annotations

import gc
import getpass
import json
import os
import platform
import resource
import shutil
import socket
import time
import timeit
import tracemalloc
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import reenact

KEPT: list[object] = []


def facts() -> list[Any]:
    return [
        gc.get_count(),
        getpass.getuser(),
        os.cpu_count(),
        os.getloadavg(),
        os.statvfs("/"),
        os.times(),
        os.uname(),
        platform.node(),
        platform.platform(),
        platform.uname(),
        resource.getrusage(resource.RUSAGE_SELF),
        shutil.disk_usage("/"),
        socket.gethostname(),
        time.clock_gettime(time.CLOCK_BOOTTIME),
        time.clock_gettime_ns(time.CLOCK_MONOTONIC),
        timeit.default_timer(),
        tracemalloc.get_traced_memory(),
    ]


def test_facts_are_the_recorded_ones(tmp_path: Path) -> None:
    """Of the same types, with members that have names."""
    with reenact.capture(tmp_path / "run"):
        recorded = facts()
    KEPT.append([0] * 1_000_000)
    with reenact.replay(tmp_path / "run"):
        again = facts()
    assert again == recorded
    assert [*map(type, again)] == [*map(type, recorded)]
    assert again[9].processor == recorded[9].processor


def test_another_machine_is_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was recorded on a server replays on a laptop."""
    with reenact.capture(tmp_path / "run"):
        recorded = platform.node(), os.uname(), os.cpu_count()
    monkeypatch.setattr(platform, "node", lambda: "laptop")
    monkeypatch.setattr(os, "cpu_count", lambda: 999)
    with reenact.replay(tmp_path / "run"):
        assert (platform.node(), os.uname(), os.cpu_count()) == recorded


def test_a_fact_about_something_else_is_another(tmp_path: Path) -> None:
    """The arguments count: the disk of another folder is not that of the root."""
    with reenact.capture(tmp_path / "run"):
        shutil.disk_usage("/")
    with pytest.raises(reenact.Diverged, match="disk_usage"), reenact.replay(tmp_path / "run"):
        shutil.disk_usage("/tmp")


def test_a_folder_of_the_run_is_the_same_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The events have no path of this machine, and a replay in another folder asks the same."""
    for name in ("here/data", "there/data"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "here"))
    with reenact.capture(tmp_path / "run"):
        recorded = shutil.disk_usage(Path.cwd()), os.statvfs(str(Path.cwd() / "data"))
    assert str(tmp_path) not in (tmp_path / "run" / "events.jsonl").read_text()
    monkeypatch.chdir(tmp_path / "there")
    with reenact.replay(tmp_path / "run"):
        assert (shutil.disk_usage(Path.cwd()), os.statvfs(str(Path.cwd() / "data"))) == recorded


def test_a_fake_may_return_anything(tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run"), mock.patch("socket.gethostname", return_value=None):
        assert socket.gethostname() is None
    with reenact.replay(tmp_path / "run"), mock.patch("socket.gethostname", return_value=None):
        assert socket.gethostname() is None


def test_an_error_is_raised_again(tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run"), pytest.raises(FileNotFoundError) as recorded:
        shutil.disk_usage(tmp_path / "missing")
    with reenact.replay(tmp_path / "run"), pytest.raises(FileNotFoundError) as again:
        shutil.disk_usage(tmp_path / "missing")
    assert again.value.errno == recorded.value.errno


def test_the_number_of_the_process_is_the_real_one(tmp_path: Path) -> None:
    """It may be used to send a signal, which must not reach another process."""
    with reenact.capture(tmp_path / "run"):
        os.getpid()
    with reenact.replay(tmp_path / "run"):
        assert os.getpid() == int(Path("/proc/self").readlink().name)


def test_a_capture_without_this_source_still_replays(tmp_path: Path) -> None:
    """One made before it was recorded names the sources that it has."""
    with reenact.capture(tmp_path / "run", sources=["time"]):
        time.time()
        platform.node()
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert manifest["standIns"]["sources"] == ["time"]
    with reenact.replay(tmp_path / "run"):
        time.time()
        platform.node()
