"""The environment: recorded where a run asks for it."""

from __future__ import annotations

import os
import subprocess
from os import environ, getenv
from pathlib import Path
from typing import Any

import pytest

import reenact

ALL = [*("time", "random", "uuid", "secrets", "subprocess", "files"), "environ"]


def agent() -> list[Any]:
    with pytest.raises(KeyError):
        os.environ["REENACT_TEST_MISSING"]
    return [
        os.environ["REENACT_TEST_CITY"],
        os.environ.get("REENACT_TEST_CITY"),
        environ.get("REENACT_TEST_MISSING", "default"),
        getenv("REENACT_TEST_CITY"),
        os.getenv("REENACT_TEST_MISSING", "other"),
        "REENACT_TEST_CITY" in os.environ,
        "REENACT_TEST_MISSING" in os.environ,
        dict(os.environ)["REENACT_TEST_CITY"],
        (os.environ | {"A": "1"})["A"],
        len(os.environ),
    ]


def test_reads_are_the_recorded_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another environment in replay makes no difference."""
    monkeypatch.setenv("REENACT_TEST_CITY", "Ulm")
    with reenact.capture(tmp_path / "run", sources=ALL):
        recorded = agent()
    monkeypatch.setenv("REENACT_TEST_CITY", "Oslo")
    monkeypatch.setenv("REENACT_TEST_MISSING", "no more")
    with reenact.replay(tmp_path / "run"):
        assert agent() == recorded
    assert recorded[:6] == ["Ulm", "Ulm", "default", "Ulm", "other", True]


def test_a_key_is_hidden_and_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known by the variable's name; replay gives its placeholder."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-pattern-anybody-knows")
    with reenact.capture(tmp_path / "run", sources=["environ"]):
        assert os.environ["OPENAI_API_KEY"] == "not-a-pattern-anybody-knows"
    assert "anybody-knows" not in (tmp_path / "run" / "events.jsonl").read_text()
    monkeypatch.delenv("OPENAI_API_KEY")
    with reenact.replay(tmp_path / "run"):
        assert os.environ["OPENAI_API_KEY"].startswith("<secret:")


def test_by_default_it_is_left_alone(tmp_path: Path) -> None:
    """The name means the real mapping."""
    real = os.environ
    with reenact.capture(tmp_path / "run"):
        assert os.environ is real


def test_writing_is_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set, changed and deleted variables are those of the process, and of its children."""
    monkeypatch.setenv("REENACT_TEST_CITY", "Ulm")
    with reenact.capture(tmp_path / "run", sources=["environ"]):
        os.environ["REENACT_TEST_CITY"] = "Oslo"
        shown = subprocess.run("echo $REENACT_TEST_CITY", shell=True, stdout=subprocess.PIPE, env=os.environ)
        del os.environ["REENACT_TEST_CITY"]
        with pytest.raises(TypeError):
            os.environ[1]
    assert shown.stdout == b"Oslo\n"
    assert "REENACT_TEST_CITY" not in os.environ
