"""Actions, verifiable records and packs of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.make.case import (
    Case,
    Change,
    Event,
    Found,
    changed,
    document,
    document_case,
    lines_of,
)
from reenact.formats.verifiable import CODEC as RECORD
from reenact.formats.verifiable import pack_digest, verifiable_record

ACTION: Event = {
    "agent_id": "support",
    "action_id": "act-1",
    "occurred_at_unix_ms": "1779177600000",
    "model": {"provider": "anthropic", "name": "claude-sonnet-4-5"},
    "input": {"messages": [{"role": "user", "content": "Where is my order?"}]},
    "output": {"content": "On its way."},
}
RECORDED: Event = RECORD.to_json(verifiable_record(ACTION))


def _set(path: str, value: Any) -> Change:
    """A change that sets a member, dotted for members of members."""

    def change(action: Event) -> None:
        *parents, last = path.split(".")
        for name in parents:
            action = action.setdefault(name, {})
        action[last] = value

    return change


BROKEN: tuple[tuple[str, str, Change, str, str], ...] = (
    ("field-missing", "A required field is missing.", lambda a: a.pop("model"), "missing_field", "$.model"),
    ("field-empty", "An id says nothing.", _set("action_id", ""), "empty_field", "$.action_id"),
    (
        "time-no-text",
        "Times are text.",
        _set("occurred_at_unix_ms", 1),
        "invalid_type",
        "$.occurred_at_unix_ms",
    ),
    ("null", "Null is not absent.", _set("params", None), "invalid_type", "$.params"),
    ("top-level-extra", "No extras at the top.", _set("mood", 1), "unexpected_field", "$.mood"),
    ("hot", "Above 2.", _set("params.temperature", 2.5), "number_above_maximum", "$.params.temperature"),
    ("negative", "Below 0.", _set("params.max_tokens", -1), "number_below_minimum", "$.params.max_tokens"),
    ("stop-no-text", "Stops are texts.", _set("params.stop", ["a", 1]), "invalid_type", "$.params.stop[1]"),
    (
        "no-messages",
        "One message at least.",
        _set("input.messages", []),
        "array_too_small",
        "$.input.messages",
    ),
    (
        "usage-negative",
        "Tokens are 0 or more.",
        _set("output.usage.input_tokens", -1),
        "number_below_minimum",
        "$.output.usage.input_tokens",
    ),
)


def _extras(action: Event) -> None:
    action.update(params={"top_k": 4}, context=None)
    action["output"].update(refusal="none")


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

    yield document_case("action.json", ACTION, "good-unknown", "Extras are kept where they may be.", _extras)
    for name, about, change, code, path in BROKEN:
        yield document_case("action.json", ACTION, name, about, change, Found(code, path=path))
    yield Case(
        "lines",
        "A file with one action per line; the second is not JSON, the third is rejected.",
        "actions.jsonl",
        {"actions.jsonl": lines_of([ACTION]) + b"{half\n" + lines_of([ACTION | {"agent_id": ""}])},
        (Found("line_unreadable", 2), Found("empty_field", 3, "$.agent_id")),
    )


RECORDS: tuple[tuple[Any, ...], ...] = (
    ("version-unknown", "Another version is refused.", _set("vdr_version", "1"), "version"),
    ("algorithm-unknown", "Another algorithm.", _set("receipt.alg", "sha-512"), "algorithm"),
    ("digest-missing", "A digest is missing.", lambda r: r["receipt"].pop("input_digest"), "input_digest"),
    (
        "digest-upper-case",
        "Digests are lower-case.",
        lambda r: r["receipt"].update(output_digest=r["receipt"]["output_digest"].upper()),
        "output_digest",
    ),
    (
        "subject-rejected",
        "The subject is no acceptable action, and its digests are those of another.",
        lambda r: r["subject"].update(agent_id=""),
        "subject",
        "subject_digest",
        "record_digest",
    ),
    (
        "subject-without-model",
        "Of a subject without a model there is no digest of the input.",
        lambda r: r["subject"].pop("model"),
        "subject",
        "subject_digest",
        "record_digest",
        "input_digest",
    ),
    (
        "number-not-exact",
        "RFC 8785 cannot hold this number, so the subject is rejected and there are no digests.",
        lambda r: r["subject"].update(context=2**53 + 1),
        "subject",
        "subject_digest",
        "record_digest",
    ),
)


def record_cases() -> Iterator[Case]:
    yield document_case("record.json", RECORDED, "good", "A verifiable record.")
    yield document_case(
        "record.json",
        RECORDED,
        "good-unknown",
        "2.6: members that nobody knows are kept.",
        lambda record: (record.update(mood="calm"), record["receipt"].update(mood="calm")),
    )
    yield document_case(
        "record.json",
        RECORDED,
        "capsule-another",
        "2.5a: made by another capsule than ours, which is told of.",
        lambda record: record["receipt"].update(capsule_digest="0" * 64),
        Found("capsule_digest", severity="warning"),
    )
    yield document_case(
        "record.json",
        RECORDED,
        "capsule-no-digest",
        "2.5a: what names the capsule is a digest.",
        lambda record: record.update(capsule_digest="ABC"),
        Found("capsule_digest"),
    )
    large = changed(ACTION, lambda action: action.update(params={"seed": 1e16}))
    text = document(RECORD.to_json(verifiable_record(large)))
    for name, seed in (("good-exponent", b"1e16"), ("good-digits", b"10000000000000000")):
        about = f"2.4: {seed.decode()} is the same double for every reader."
        files = {"record.json": text.replace(b"1e+16", seed)}
        yield Case(name, about, "record.json", files)
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
    for name, about, change, *checks in RECORDS:
        yield document_case("record.json", RECORDED, name, about, change, *map(Found, checks))


def pack_cases() -> Iterator[Case]:
    good, other = RECORDED, RECORD.to_json(verifiable_record(ACTION | {"action_id": "act-2"}))
    bad = changed(other, lambda record: record["receipt"].update(input_digest="0" * 64))
    digest = {"pack": pack_digest([good["receipt"]["record_digest"], other["receipt"]["record_digest"]])}
    yield Case(
        "good",
        "A pack of two records.",
        "pack.jsonl",
        {"pack.jsonl": lines_of([good, other])},
        options=digest,
    )
    yield Case(
        "good-repeated",
        "Order and repetition do not change the digest of a pack; it may be one array.",
        "pack.json",
        {"pack.json": document([other, good, other])},
        options=digest,
    )
    yield Case(
        "line-unreadable",
        "A line is no JSON.",
        "pack.jsonl",
        {"pack.jsonl": lines_of([good]) + b"{half\n"},
        (Found("line_unreadable", 2),),
    )
    yield Case(
        "one-bad",
        "A pack is as good as its records.",
        "pack.jsonl",
        {"pack.jsonl": lines_of([good, bad])},
        (Found("input_digest", 2),),
    )
