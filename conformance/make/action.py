"""Actions, verifiable records and packs of them."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.make.case import (
    Case,
    Event,
    Found,
    changed,
    document_case,
    lines_of,
)
from reenact.formats.verifiable import CODEC as RECORD
from reenact.formats.verifiable import verifiable_record

ACTION: Event = {
    "agent_id": "support",
    "action_id": "act-1",
    "occurred_at_unix_ms": "1779177600000",
    "model": {"provider": "anthropic", "name": "claude-sonnet-4-5"},
    "input": {"messages": [{"role": "user", "content": "Where is my order?"}]},
    "output": {"content": "On its way."},
}
RECORDED: Event = RECORD.to_json(verifiable_record(ACTION))


def action_cases() -> Iterator[Case]:
    yield document_case("action.json", ACTION, "good", "An action that is accepted.")
    yield document_case(
        "action.json",
        ACTION,
        "two-problems",
        "Problems come in the order of the schema.",
        lambda action: (action.update(output={}), action["model"].update(mood="calm")),
        Found("unexpected_field", path="$.model.mood"),
        Found("empty_output", path="$.output"),
    )


def record_cases() -> Iterator[Case]:
    yield document_case("record.json", RECORDED, "good", "A verifiable record.")
    yield document_case(
        "record.json",
        RECORDED,
        "output-changed",
        "What the model said was changed; every digest that covers it is named.",
        lambda record: record["subject"]["output"].update(content="Lost."),
        *(Found(name) for name in ("subject_digest", "record_digest", "output_digest")),
    )
    yield document_case(
        "record.json",
        RECORDED,
        "profile-changed",
        "The profile is part of the record's identity.",
        lambda record: record.update(profile="other"),
        Found("profile"),
        Found("record_digest"),
    )
    yield document_case(
        "record.json",
        RECORDED,
        "good-anchor",
        "An anchor is covered by no digest, so it may be added later.",
        lambda record: record.update(anchor={"log": "x"}),
    )


def pack_cases() -> Iterator[Case]:
    good, other = RECORDED, RECORD.to_json(verifiable_record(ACTION | {"action_id": "act-2"}))
    bad = changed(other, lambda record: record["receipt"].update(input_digest="0" * 64))
    yield Case("good", "A pack of two records.", "pack.jsonl", {"pack.jsonl": lines_of([good, other])})
    yield Case(
        "one-bad",
        "A pack is as good as its records.",
        "pack.jsonl",
        {"pack.jsonl": lines_of([good, bad])},
        (Found("input_digest", 2),),
    )
