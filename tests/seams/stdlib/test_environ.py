"""The environment: recorded where a run asks for it."""

from __future__ import annotations

import json
import os
import subprocess
from os import environ, getenv
from pathlib import Path
from typing import Any

import pytest

import reenact

GOLDEN = Path(__file__).parents[2] / "golden" / "capture"
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


def settings() -> list[str | None]:
    city, missing = os.environ["REENACT_TEST_CITY"], os.getenv("REENACT_TEST_MISSING", "none")
    return [city, missing, os.environ.get("OPENAI_API_KEY")]


def test_a_read_is_an_event_of_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable's name and what was found; what is not named is not told."""
    monkeypatch.setenv("REENACT_TEST_CITY", "Ulm")
    with reenact.capture(tmp_path / "run", environ=["REENACT_TEST_CITY"]):
        settings()
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert [event["data"] for event in events if event["type"] == "state_mutation"] == [
        {
            "type": "env_read",
            "details": {"name": "REENACT_TEST_CITY"},
            "value": {"REENACT_TEST_CITY": "Ulm"},
            "lane": "0",
        }
    ]


def test_reads_in_the_older_form_are_replayed() -> None:
    """They were values of chance once; the capture was made then."""
    with reenact.replay(GOLDEN / "environ-as-chance") as run:
        run.final_output = settings()
    assert run.final_output[:2] == ["Ulm", "none"]
    assert run.final_output[2].startswith("<secret:")
    other = 'expected "REENACT_TEST_MISSING", observed "OPENAI_API_KEY"'
    with pytest.raises(reenact.Diverged, match=other), reenact.replay(GOLDEN / "environ-as-chance"):
        os.environ.get("REENACT_TEST_CITY")
        os.environ.get("OPENAI_API_KEY")
