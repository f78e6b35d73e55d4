"""Chat histories repeat: each message is written once, and every request can be had back whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reenact
from reenact.boundary import Call, crossing
from reenact.canonical import digest, digest_of_bytes, encode_clean
from reenact.errors import FormatError
from reenact.formats.capture import LlmRequest
from reenact.recorder.payloads import Sharing
from reenact.store.reader import CaptureReader
from tests.recorder.recording import recorded_by

SYSTEM = "You route support requests to the right team, and you are brief about it. " * 8
TOOLS = [
    {"name": f"tool_{number}", "description": "Finds orders by number or customer. " * 4, "input_schema": {}}
    for number in range(6)
]


def ask(body: Any, answer: Any) -> Any:
    """One model call as the HTTP seam makes it."""
    request = {"method": "POST", "url": "https://api.example/v1/messages", "body": body}
    facts = {"provider": "p", "model": "m", "inputHash": "h"}
    with crossing(Call("llm", "POST", request, facts)) as step:
        if step.live:
            step.answer = answer
            step.facts = {"provider": "p", "model": "m", "stopReason": "end", "usage": {"output_tokens": 5}}
    return step.answer


def user(turn: int) -> dict[str, Any]:
    """What an agent mostly tells its model: the result of a tool."""
    return {"role": "user", "content": f"Result {turn}: " + f"order {turn * 7919} waits for stock. " * 45}


def assistant(turn: int) -> dict[str, Any]:
    return {"role": "assistant", "content": f"Answer {turn}: " + f"order {turn * 104729} has shipped. " * 20}


def chat(turns: int) -> list[dict[str, Any]]:
    """A chat of so many turns; the answers come from the model, the history from the agent."""
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        messages = [*messages, user(turn)]
        body = {"model": "m", "max_tokens": 100, "system": SYSTEM, "tools": TOOLS, "messages": messages}
        messages = [*messages, ask(body, assistant(turn))]
    return messages


def size_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def requests_in(path: Path) -> list[Any]:
    reader = CaptureReader(path)
    calls = [event for event in reader.events() if isinstance(event, LlmRequest)]
    return [reader.resolve(call.data.request) for call in calls]


def test_a_long_chat_costs_at_most_twice_its_messages(tmp_path: Path):
    """At 50, 100 and 200 turns, and twice the turns cost twice the bytes."""
    sizes = []
    for turns in (50, 100, 200):
        with reenact.capture(tmp_path / str(turns)):
            messages = chat(turns)
        sizes.append(size_bytes(tmp_path / str(turns)))
        distinct = len(encode_clean([SYSTEM, TOOLS])) + len(encode_clean(messages))
        assert sizes[-1] <= 2 * distinct
    assert sizes[1] / sizes[0] == pytest.approx(2, rel=0.05)
    assert sizes[2] / sizes[1] == pytest.approx(2, rel=0.05)


def test_every_request_of_a_long_chat_can_be_had_back(tmp_path: Path):
    """In order, in reverse and each by itself; the digest beside it is that of the whole."""
    with reenact.capture(tmp_path / "run"):
        chat(200)
    reader = CaptureReader(tmp_path / "run")
    calls = [event.data for event in reader.events() if isinstance(event, LlmRequest)]
    assert [digest(reader.resolve(call.request)) for call in calls] == [call.requestHash for call in calls]
    backwards = CaptureReader(tmp_path / "run")
    for call in reversed(calls):
        assert digest(backwards.resolve(call.request)) == call.requestHash
    last = CaptureReader(tmp_path / "run").resolve(calls[-1].request)
    assert (
        last["body"]["messages"]
        == [message for turn in range(200) for message in (user(turn), assistant(turn))][:-1]
    )


def test_a_chain_of_a_thousand_references_is_followed(tmp_path: Path):
    """The longest run is as readable as the shortest; nothing is called recursively."""
    with recorded_by(tmp_path / "run"):
        for turn in range(1200):
            with crossing(Call("llm", "", {"messages": list(range(1000, 1000 + turn))})) as step:
                step.answer = turn
    assert requests_in(tmp_path / "run")[-1] == {"messages": list(range(1000, 2199))}


def test_a_long_chat_replays(tmp_path: Path):
    """Matching is on the whole request, however it is stored."""
    with reenact.capture(tmp_path / "run"):
        recorded = chat(60)
    with reenact.replay(tmp_path / "run"):
        assert chat(60) == recorded


def test_a_message_changed_in_the_middle_is_found(tmp_path: Path):
    """The difference is named in the request as the agent made it, not as it is stored."""
    first, second = [user(1), user(2)], [user(1), user(2), user(3)]
    with reenact.capture(tmp_path / "run"):
        ask({"messages": first}, 1)
        ask({"messages": second}, 2)
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(tmp_path / "run"):
        ask({"messages": first}, 1)
        ask({"messages": [user(1), user(9), user(3)]}, 2)
    assert caught.value.divergence.json_path == "$.data.request.body.messages[1].content"


def test_a_large_first_message_is_stored_once(tmp_path: Path):
    """Also where the first request consists of it alone."""
    document = {"role": "user", "content": "x" * 100_000}
    with reenact.capture(tmp_path / "run"):
        ask({"messages": [document]}, 1)
        ask({"messages": [document, user(1), user(2)]}, 2)
    assert size_bytes(tmp_path / "run") < 120_000
    assert requests_in(tmp_path / "run")[1]["body"]["messages"] == [document, user(1), user(2)]


def test_what_is_small_is_repeated():
    """A reference would be longer than what it stands for."""
    sharing = Sharing()
    body = {"stop": ["a", "b"], "tags": ["x"], "n": 1, "empty": [], "text": "short"}
    assert sharing.shrink("c1", body) == body
    assert sharing.shrink("c2", body) == body


def test_what_is_large_is_referred_to():
    """A list that grew refers to its beginning, another value to the place where it stands whole."""
    sharing = Sharing()
    sharing.shrink("c1", {"system": SYSTEM, "body": {"messages": [user(1)]}})
    assert sharing.shrink("c2", {"system": SYSTEM, "body": {"messages": [user(1), user(2)]}}) == {
        "system": {"$ref": {"call": "c1", "path": ["system"]}},
        "body": {
            "messages": {"$ref": {"call": "c1", "path": ["body", "messages"], "items": 1}, "then": [user(2)]}
        },
    }


def test_what_was_written_long_ago_is_forgotten(monkeypatch):
    """Then it is written again; of a chat that is longer than what is remembered, the end is still known."""
    monkeypatch.setattr("reenact.recorder.payloads._MOST_PLACES", 10)
    sharing = Sharing()
    messages = [user(turn) for turn in range(30)]
    assert sharing.shrink("c1", messages) == messages
    shared = {"$ref": {"call": "c1", "path": [], "items": 30}, "then": [user(30)]}
    assert sharing.shrink("c2", [*messages, user(30)]) == shared
    for number in range(10):
        sharing.shrink(f"other{number}", [assistant(number)])
    assert sharing.shrink("c3", messages) == messages


def test_large_payloads_are_stored_once_beside_the_log(tmp_path: Path):
    """Above the threshold a payload is a blob; equal ones share it, and the line stays short."""

    @reenact.tool
    def read(name: str) -> str:
        return "line\n" * 10_000

    with reenact.capture(tmp_path / "run", blob_threshold_bytes=1000) as run:
        for name in ("a", "b", "c"):
            read(name)
        run.memory_write("notes", "n" * 5000)
        run.final_output = "o" * 5000
    blobs = [file for file in (tmp_path / "run" / "blobs").rglob("*") if file.is_file()]
    assert len(blobs) == 3
    for blob in blobs:
        assert digest_of_bytes(blob.read_bytes()) == f"sha256:{blob.parent.name}{blob.name}"
    assert max(map(len, CaptureReader(tmp_path / "run").lines())) < 1000
    with reenact.replay(tmp_path / "run") as run:
        assert [read(name) for name in ("a", "b", "c")] == ["line\n" * 10_000] * 3
        run.memory_write("notes", "n" * 5000)
        run.final_output = "o" * 5000


@pytest.mark.parametrize("excess", [0, 1])
def test_the_threshold_is_the_largest_payload_in_place(tmp_path: Path, excess: int):
    """Its bytes are those of the JSON text."""

    @reenact.tool
    def read(size: int) -> str:
        return "x" * size

    with reenact.capture(tmp_path / "run", blob_threshold_bytes=500):
        read(498 + excess)
    assert (tmp_path / "run" / "blobs").exists() == bool(excess)


# Laws

MESSAGES = st.lists(
    st.sampled_from([user(1), user(2), assistant(1), {"role": "user"}, "text", 7]), max_size=6
)
BODIES = st.fixed_dictionaries(
    {"messages": MESSAGES},
    optional={
        "tools": st.just(TOOLS),
        "system": st.just(SYSTEM),
        "deep": st.fixed_dictionaries({"x": MESSAGES}),
    },
)


@settings(deadline=None)  # it waits for the disk
@given(
    bodies=st.lists(BODIES | MESSAGES | st.just(SYSTEM), min_size=1, max_size=6),
    threshold=st.sampled_from([0, 300, 10**6]),
)
def test_any_series_of_requests_can_be_had_back(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[Any], threshold: int
):
    """Whatever histories do: grow, shrink, fork, repeat; in place or in blobs."""
    path = tmp_path_factory.mktemp("runs") / "run"
    with recorded_by(path, threshold_bytes=threshold):
        for body in bodies:
            with crossing(Call("llm", "", body)) as step:
                step.answer = 1
    assert requests_in(path) == bodies


BAD_REFERENCES: dict[str, Any] = {
    "unknown call": {"$ref": {"call": "c99", "path": []}},
    "unknown path": {"$ref": {"call": "c1", "path": ["nowhere"]}},
    "path into a text": {"$ref": {"call": "c1", "path": ["system", "x"]}},
    "no call": {"$ref": {"path": []}},
    "no path": {"$ref": {"call": "c1"}},
    "not an object": {"$ref": 7},
    "too many items": {"$ref": {"call": "c1", "path": ["messages"], "items": 9}, "then": []},
    "items of a text": {"$ref": {"call": "c1", "path": ["system"], "items": 1}, "then": []},
    "nothing behind": {"$ref": {"call": "c1", "path": ["messages"], "items": 1}},
    "unknown blob": {"$blob": "sha256:" + "0" * 64},
    "no digest": {"$blob": "../../etc/passwd"},
    "no text": {"$json": 7},
    "not JSON": {"$json": "{"},
}


@pytest.mark.parametrize("name", BAD_REFERENCES)
def test_a_reference_that_leads_nowhere_is_a_damaged_capture(tmp_path: Path, name: str):
    """Never half a value, and never an error of Python's own."""
    with recorded_by(tmp_path / "run"), crossing(Call("llm", "", {"system": "s", "messages": [1]})) as step:
        step.answer = 1
    with pytest.raises((FormatError, reenact.StoreError)):
        CaptureReader(tmp_path / "run").resolve({"body": [BAD_REFERENCES[name]]})


def test_references_in_a_circle_are_refused(tmp_path: Path):
    """Nobody writes them; following them would never end."""
    circle = {"$ref": {"call": "x", "path": ["messages"], "items": 1}, "then": []}
    with recorded_by(tmp_path / "run") as context:
        data = {"callId": "x", "provider": "p", "model": "m", "inputHash": "h"}
        context._events.append(b"llm_request", encode_clean(data | {"request": {"messages": circle}}))
    with pytest.raises(FormatError, match="circle"):
        CaptureReader(tmp_path / "run").resolve(circle)
