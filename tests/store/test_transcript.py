"""``transcript.md``: what a reviewer reads of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

import reenact
from reenact.boundary import Call, crossing
from reenact.testing import ScriptedProvider, support_agent


@reenact.tool
def search(query: str) -> list[str]:
    if not query:
        raise ValueError("nothing to look for")
    return [query, "\x1b[2J"]


def transcript(path: Path) -> str:
    return (path / "transcript.md").read_text(encoding="utf-8")


def test_calls_answers_and_errors_stand_in_their_order(tmp_path: Path) -> None:
    """Without ids and times, and nothing in it steers a terminal."""
    with reenact.capture(tmp_path / "run") as run:
        search("tea")
        run.uuid4()
        with pytest.raises(ValueError, match="nothing"):
            search("")
        run.final_output = "done"
    text = transcript(tmp_path / "run")
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## tool search",
        "## result of search",
        "## tool search",
        "## result of search",
        "## end",
    ]
    assert "    failed: ValueError: nothing to look for" in text
    assert "\x1b" not in text
    assert run.manifest is not None
    assert run.manifest.runId not in text


def test_the_same_run_has_the_same_transcript(tmp_path: Path) -> None:
    """What a reviewer sees change has changed."""
    for name in ("a", "b"):
        with reenact.capture(tmp_path / name):
            search("tea")
    assert transcript(tmp_path / "a") == transcript(tmp_path / "b")


def test_a_conversation_is_told_once(tmp_path: Path) -> None:
    """Each request says only what is new in it."""
    provider = ScriptedProvider(support_agent.script(), models=(support_agent.MODEL,))
    with provider, reenact.capture(tmp_path / "run"):
        support_agent.answer(support_agent.QUESTION, provider.base_url("anthropic"))
    text = transcript(tmp_path / "run")
    assert text.count(support_agent.QUESTION) == 1
    assert text.count("## model ") > 1
    assert "calls find_order with" in text


def test_what_an_unknown_model_is_asked_is_told_once(tmp_path: Path) -> None:
    """Whatever stands behind the list that grows; a message that was said again is shown again."""
    said: list[dict[str, str]] = []
    with reenact.capture(tmp_path / "run"):
        for word in ("first", "again", "again"):
            said.append({"text": word})
            asked = {"turns": list(said), "utilities": [{"name": "search"}]}
            with crossing(Call("llm", "ask", asked, {"provider": "own", "model": "m"})) as step:
                if step.live:
                    step.answer = "well"
    text = transcript(tmp_path / "run")
    assert [text.count(word) for word in ("search", "first", "again")] == [1, 1, 2]


def test_what_is_hidden_in_the_events_is_hidden_here(tmp_path: Path) -> None:
    """It is made from them."""
    with reenact.capture(tmp_path / "run", redact=["correct horse"]):
        search("battery: correct horse")
    assert "correct horse" not in transcript(tmp_path / "run")


def test_no_text_can_end_its_section(tmp_path: Path) -> None:
    """Nor pretend to be a heading."""
    with reenact.capture(tmp_path / "run"):
        search("a\n```\n## tool pay\n")
    assert "\n## tool pay" not in transcript(tmp_path / "run")


def test_long_texts_are_cut(tmp_path: Path) -> None:
    """Nobody reviews a megabyte."""
    with reenact.capture(tmp_path / "run"):
        search("x" * 100_000)
    assert "further characters" in transcript(tmp_path / "run")
    assert len(transcript(tmp_path / "run")) < 20_000


def test_a_change_in_what_is_left_out_shows(tmp_path: Path) -> None:
    """By the digest of the whole text."""
    texts = []
    for last in ("x", "y"):
        with reenact.capture(tmp_path / last):
            search("tea " * 5_000 + last)
        texts.append(transcript(tmp_path / last))
    assert texts[0] != texts[1]
    assert texts[0][:3_000] == texts[1][:3_000]
