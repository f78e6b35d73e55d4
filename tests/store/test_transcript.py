"""``transcript.md``: what a reviewer reads of a run."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread
from typing import Any
from wsgiref.simple_server import make_server

import httpx
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


def test_http_answers_are_told_without_headers(tmp_path: Path) -> None:
    """Dates, ids and sizes stand there; what is said is the status and the body, as far as it was read."""
    answer = {"rows": [{"name": "tea", "price": 12345678901234567890123}, {"name": "a kettle of red steel"}]}

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        is_there = environ["PATH_INFO"] == "/rows"
        body = json.dumps(answer if is_there else "no").encode()
        start_response("200 OK" if is_there else "404 Not Found", [("X-Request-Id", "req-77")])
        return [body]

    with make_server("127.0.0.1", 0, app) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with reenact.capture(tmp_path / "run"):
            httpx.get(f"{url}/rows")
            httpx.get(f"{url}/none")
            with httpx.stream("GET", f"{url}/rows") as stream:
                list(stream.iter_bytes())
        server.shutdown()
    told = transcript(tmp_path / "run").partition("## ")[2].split("## ")
    said = ["200", *json.dumps(answer, indent=2).splitlines()]
    assert [[line.strip(" ") for line in each.splitlines()[2:] if line] for each in told[1::2]] == [
        [line.strip(" ") for line in lines] for lines in (said, ["404", '"no"'], said)
    ]


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
