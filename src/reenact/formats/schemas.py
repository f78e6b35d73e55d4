"""JSON Schema of every format, generated from its types."""

from __future__ import annotations

from importlib import import_module
from inspect import cleandoc
from typing import Any, Final, NamedTuple

import msgspec

from reenact.canonical import JsonValue
from reenact.errors import UsageError
from reenact.formats.record import Record

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_EXTRA: Final = dict(zip(Record.__struct_fields__, Record.__struct_encode_fields__, strict=True))["extra"]


class Format(NamedTuple):
    """The module and type of a format; the module is imported when its schema is requested."""

    module: str
    """Below ``reenact.formats``."""
    kind: str
    """The name of a record type, or of a tagged union of some."""
    summary: str
    version: int = 1
    keeps_unknown_tags: bool = False
    """Whether readers skip records with an unknown tag."""
    closed: tuple[str, ...] = ()
    """The record types in which an unknown field is an error."""


_CASE_TYPES: Final = (
    "AdapterInput",
    "Assertion",
    "CaseScenario",
    "Expected",
    "Reporting",
    "TestCase",
    "Tools",
)
_POLICY_TYPES: Final = ("Budgets", "Condition", "Models", "PolicyFile", "Rule")

SCHEMAS: Final[dict[str, Format]] = {
    "action": Format("action", "Action", "One recorded agent action.", closed=("Action", "Model")),
    "bundle": Format("bundle", "Bundle", "A replay bundle: what happened in one run, for tests."),
    "capture-event": Format("capture", "CaptureEvent", "One line of a capture's events.jsonl."),
    "capture-manifest": Format("capture", "CaptureManifest", "The manifest.json of a finished capture."),
    "dataset-manifest": Format("dataset", "DatasetManifest", "What stands beside the rows of a dataset."),
    "disclosure": Format("seal", "Disclosure", "One event of a sealed run, with proof."),
    "policy": Format("policy", "PolicyFile", "What an agent's actions may do.", closed=_POLICY_TYPES),
    "receipt": Format("receipt", "Receipt", "What a session claims it did (RECEIPT.json)."),
    "receipt-legacy": Format("receipt", "LegacyReceipt", "The older shape of RECEIPT.json."),
    "replay-log": Format(
        "dialects.current", "AnyEvent", "One line of a REPLAY.jsonl.", keeps_unknown_tags=True
    ),
    "replay-log-legacy": Format(
        "dialects.legacy",
        "AnyEvent",
        "One line of a REPLAY.jsonl in the older dialect.",
        keeps_unknown_tags=True,
    ),
    "replay-receipt": Format("replay_receipt", "ReplayReceipt", "What a replay proved."),
    "result": Format("result", "TestResult", "The result of one test case."),
    "seal": Format("seal", "Seal", "What is signed of a run."),
    "shadow": Format("shadow", "ShadowReport", "What became of recorded runs with a changed agent."),
    "shadow-steps": Format("shadow", "StepsReport", "What models answer when they are asked again."),
    "suite-summary": Format("result", "SuiteSummary", "The results of a whole suite."),
    "test-case": Format("testcase", "TestCase", "A test.yaml: assertions over one run.", closed=_CASE_TYPES),
    "trace": Format("trace", "Trace", "The normalized trace of one run."),
    "verifiable-record": Format("verifiable", "VerifiableRecord", "An action with its digests."),
}


def json_schema(name: str) -> dict[str, JsonValue]:
    """The JSON Schema (2020-12) of the format *name*; :class:`UsageError` if it is unknown."""
    if name not in SCHEMAS:
        raise UsageError(f"no format is called {name!r}; choose from {', '.join(sorted(SCHEMAS))}")
    entry = SCHEMAS[name]
    kind = getattr(import_module(f"reenact.formats.{entry.module}"), entry.kind)
    return describe(name, kind, entry)


def describe(name: str, kind: JsonValue, entry: Format) -> dict[str, JsonValue]:
    """The schema of *kind* with the title *name*; allows unknown fields if readers keep them."""
    generated = msgspec.json.schema(kind)
    definitions = generated.pop("$defs", {})
    discriminator = generated.pop("discriminator", None)
    if entry.keeps_unknown_tags:
        generated["anyOf"].append(_any_other_tag(discriminator))
    head = {
        "$schema": DIALECT,
        "$id": f"urn:reenact:schema:{name}:{entry.version}",
        "title": name,
        "description": entry.summary,
    }
    body: dict[str, JsonValue] = _tidy(generated)
    tidied = {defined: _tidy(definitions[defined]) for defined in sorted(definitions)}
    for closed in entry.closed:
        tidied[closed]["additionalProperties"] = False
    return head | body | {"$defs": tidied}


def _any_other_tag(discriminator: dict[str, Any]) -> dict[str, JsonValue]:
    field, known = discriminator["propertyName"], sorted(discriminator["mapping"])
    return {
        "type": "object",
        "properties": {field: {"type": "string", "not": {"enum": known}}},
        "required": [field],
    }


def _tidy(schema: object) -> Any:
    """*schema* without the internal field for extras, and with unknown fields allowed."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidy = {key: _tidy(value) for key, value in schema.items() if key != _EXTRA}
    if "anyOf" in tidy:
        tidy.pop("discriminator", None)  # a keyword of OpenAPI, not of JSON Schema
    if tidy.get("additionalProperties") is False:
        tidy["additionalProperties"] = True
    if isinstance(tidy.get("description"), str):
        tidy["description"] = cleandoc(tidy["description"])
    return tidy
