"""RECEIPT.json: the claims of a session about itself, in two forms; ``schema`` distinguishes them."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from reenact.canonical import JsonField, JsonValue, read_json
from reenact.errors import FormatError, UnknownVersion
from reenact.formats.dialects.common import Confidence, Milliseconds, Utility
from reenact.formats.dialects.current import Repo, ToolError
from reenact.formats.record import ABSENT, Absent, Codec, Int64, Record
from reenact.formats.rfc3339 import Time, verify_time

SideEffect: TypeAlias = str | dict[str, JsonField]
"""A tag as in the log, or an object with a tag and details."""


class ToolReceipt(Record, frozen=True, kw_only=True):
    error: ToolError | str | Absent | None = ABSENT
    latency_ms: Milliseconds
    ok: bool | Absent = ABSENT
    output_hash: str
    params_hash: str
    side_effects: list[SideEffect]
    tool: str


class VerificationReceipt(Record, frozen=True, kw_only=True):
    command: str
    cwd: str | Absent | None = ABSENT
    duration_ms: Milliseconds | Absent | None = ABSENT
    exit_code: Int64
    verification_delta: Int64 | Absent | None = ABSENT


class Receipt(Record, frozen=True, kw_only=True):
    """The form ``openagents.receipt.v1``."""

    created_at: Time | Absent = ABSENT
    payments: list[dict[str, JsonField]] | Absent = ABSENT
    policy_bundle_id: str
    repo: Repo | Absent = ABSENT
    schema: Literal["openagents.receipt.v1"]
    session_id: str
    tool_calls: list[ToolReceipt] | Absent = ABSENT
    trajectory_hash: str
    """The :func:`reenact.formats.hashes.trajectory_hash` of the log."""
    verification: list[VerificationReceipt] | Absent = ABSENT


class LegacyToolReceipt(Record, frozen=True, kw_only=True):
    id: str
    latency_ms: Milliseconds
    output_hash: str
    params_hash: str
    side_effects: list[SideEffect]
    step_utility: Utility
    tool: str


class LegacyVerification(Record, frozen=True, kw_only=True):
    commands_run: list[str]
    exit_codes: list[Int64]
    verification_delta: Int64


class LegacyReceipt(Record, frozen=True, kw_only=True):
    """The older form, which has no ``schema``."""

    completed_at: Time | Absent | None = ABSENT
    final_confidence: Confidence
    issue_number: Int64 | Absent | None = ABSENT
    plan_hash: str | Absent | None = ABSENT
    policy_bundle_id: str
    session_id: str
    signature: str | dict[str, JsonField] | Absent | None = ABSENT
    started_at: Time
    tool_calls: list[LegacyToolReceipt]
    verification: LegacyVerification | Absent | None = ABSENT


_CODEC: Final = Codec[Receipt](Receipt)
_LEGACY_CODEC: Final = Codec[LegacyReceipt](LegacyReceipt)
_SCHEMA: Final = re.compile(r"openagents\.receipt\.v([1-9][0-9]{0,5})")


def read_receipt(data: bytes, file: str) -> Receipt | LegacyReceipt:
    """The receipt in *data*, in either form; *file* is its name in errors."""
    try:
        value = read_json(data)
        receipt = _CODEC.from_json(value) if _has_schema(value) else _LEGACY_CODEC.from_json(value)
        _verify_times(receipt)
    except FormatError as error:
        raise error.at(file=file) from None
    return receipt


def write_receipt(receipt: Receipt | LegacyReceipt) -> bytes:
    """The receipt as one canonical line; raises if it is not a valid receipt."""
    text = _CODEC.to_bytes(receipt) if isinstance(receipt, Receipt) else _LEGACY_CODEC.to_bytes(receipt)
    read_receipt(text, file="RECEIPT.json")
    return text + b"\n"


def _has_schema(value: JsonValue) -> bool:
    if not isinstance(value, dict) or "schema" not in value:
        return False
    schema = _SCHEMA.fullmatch(value["schema"]) if isinstance(value["schema"], str) else None
    if schema is None:
        raise FormatError("not a receipt; expected openagents.receipt.v1", json_path="$.schema")
    if int(schema[1]) > 1:
        raise UnknownVersion(
            f"receipt version {schema[1]} is newer than 1, the newest this reenact reads; "
            "install a newer reenact",
            json_path="$.schema",
        )
    return True


def _verify_times(receipt: Receipt | LegacyReceipt) -> None:
    for field in ("created_at", "started_at", "completed_at"):
        time = getattr(receipt, field, None)
        if isinstance(time, str):
            verify_time(time, f"$.{field}")
