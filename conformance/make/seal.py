"""Seals alone, and captures and logs held against them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final

from conformance.make.capture import EVENTS, capture_cases
from conformance.make.case import (
    OTHER,
    Case,
    Change,
    Event,
    Found,
    as_it_is,
    changed,
    document,
    lines_of,
    set_fields,
)
from conformance.make.receipt import TRAJECTORY
from conformance.make.replay_log import LOG
from conformance.make.sealed import KEY, OTHER_KEY, SEED, seal_of_log
from reenact import canonical
from reenact.check.seals.keys import key_id, public_pem
from reenact.check.seals.sealing import event_leaves, tree_of
from reenact.formats.seal import PAYLOAD_TYPE, to_be_signed

CAPTURE_FILES: Final = next(capture_cases()).files
OF_LOG: Final[Event] = seal_of_log(TRAJECTORY)
OF_CAPTURE: Final[Event] = {
    **seal_of_log(),
    "capture": {
        "captureId": "cap_1",
        "runId": "run_1",
        "manifestHash": canonical.digest_of_bytes(CAPTURE_FILES["capture/manifest.json"]),
        "eventsHash": canonical.digest_of_bytes(lines_of(EVENTS)),
        "events": {
            "count": len(EVENTS),
            "root": tree_of(event_leaves(map(canonical.encode, EVENTS), SEED)).root,
        },
    },
}


def envelope(payload: Event, *keys: Any) -> Event:
    """A DSSE envelope, signed with each of *keys*."""
    text = canonical.encode(payload)
    signed = to_be_signed(PAYLOAD_TYPE, text)
    return {
        "payload": b64encode(text).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [
            {"keyid": key_id(key.public_key()), "sig": b64encode(key.sign(signed)).decode()} for key in keys
        ],
    }


GOOD: Final = envelope(OF_CAPTURE, KEY)


def _sign(index: int, **fields: str) -> Change:
    return lambda value: value["signatures"][index].update(fields)


SIGNED: tuple[tuple[str, str, Event, str | None], ...] = (
    ("good", "The seal of a capture.", GOOD, None),
    ("good-log", "The seal of a log alone.", envelope(OF_LOG, KEY), None),
    (
        "good-two-signers",
        "One of two signatures is the one asked for.",
        envelope(OF_LOG, OTHER_KEY, KEY),
        None,
    ),
    ("another-key", "Signed with another key.", envelope(OF_LOG, OTHER_KEY), "seal_signature"),
    (
        "payload-of-another",
        "The signature is that of another payload.",
        GOOD | {"payload": envelope(OF_LOG)["payload"]},
        "seal_signature",
    ),
    ("signature-cut", "A signature has 64 bytes.", changed(GOOD, _sign(0, sig="AAAA")), "seal_signature"),
)
INVALID: tuple[tuple[str, str, Event, str], ...] = (
    (
        "type-foreign",
        "The envelope holds something else.",
        GOOD | {"payloadType": "text/plain"},
        "$.payloadType",
    ),
    ("unsigned", "Nobody signed it.", envelope(OF_LOG), "$.signatures"),
    ("payload-no-base64", "The payload is not base64.", GOOD | {"payload": "%"}, "$.payload"),
    (
        "signature-no-base64",
        "A signature is not base64.",
        changed(GOOD, _sign(0, sig="%")),
        "$.signatures[0].sig",
    ),
    (
        "signature-other-base64",
        "Bits that mean nothing are 0, so that no other text stands for the same bytes.",
        changed(GOOD, _sign(0, sig=GOOD["signatures"][0]["sig"][:-3] + "x==")),
        "$.signatures[0].sig",
    ),
    ("version-newer", "A newer version.", envelope(OF_LOG | {"version": 2}, KEY), "$.version"),
    (
        "time-no-time",
        "What should be a time is none.",
        envelope(OF_LOG | {"sealedAt": "now"}, KEY),
        "$.sealedAt",
    ),
    (
        "dialect-unknown",
        "No such dialect.",
        envelope(changed(OF_LOG, lambda seal: seal["log"].update(dialect="own")), KEY),
        "$.log.dialect",
    ),
    (
        "count-missing",
        "A tree has a count.",
        envelope(changed(OF_CAPTURE, lambda seal: seal["capture"]["events"].pop("count")), KEY),
        "$.capture.events.count",
    ),
)


def seal_cases() -> Iterator[Case]:
    for name, about, value, code in SIGNED:
        files = {"SEAL.json": document(value), "signer.pub": public_pem(KEY.public_key())}
        yield Case(name, about, "SEAL.json", files, (Found(code),) if code else (), {"key": "signer.pub"})
    for name, about, value, found in (
        (
            "good-unknown",
            "Other members mean nothing.",
            GOOD | {"mood": "calm"},
            Found("unknown_member", path="$.mood", severity="warning"),
        ),
        (
            "good-hint-wrong",
            "The key decides, not the hint.",
            changed(GOOD, _sign(0, keyid="sha256:0")),
            Found("seal_keyid", path="$.signatures", severity="warning"),
        ),
    ):
        files = {"SEAL.json": document(value), "signer.pub": public_pem(KEY.public_key())}
        yield Case(name, about, "SEAL.json", files, (found,), {"key": "signer.pub"})
    for name, about, value, path in INVALID:
        yield Case(name, about, "SEAL.json", {"SEAL.json": document(value)}, (Found("invalid", path=path),))
    yield from _held_captures()
    yield from _held_logs()


def _held(
    name: str, about: str, artifact: str, files: dict[str, bytes], seal: Event, code: str | None
) -> Case:
    sealed = {"SEAL.json": document(envelope(seal, KEY)), "signer.pub": public_pem(KEY.public_key())}
    options = {"seal": "SEAL.json", "key": "signer.pub"}
    return Case(name, about, artifact, files | sealed, (Found(code),) if code else (), options)


def _held_captures() -> Iterator[Case]:
    for name, about, fields, code in (
        ("held-good", "A capture and its seal.", {}, None),
        ("held-events-changed", "Other events were sealed.", {"eventsHash": OTHER}, "seal_events"),
        ("held-manifest-changed", "Another manifest was sealed.", {"manifestHash": OTHER}, "seal_manifest"),
        ("held-another-run", "Another run was sealed.", {"runId": "run_2"}, "seal_foreign"),
    ):
        seal = OF_CAPTURE | {"capture": OF_CAPTURE["capture"] | fields}
        yield _held(name, about, "capture", CAPTURE_FILES, seal, code)
    yield _held(
        "held-log-seal", "The seal is that of a log.", "capture", CAPTURE_FILES, OF_LOG, "seal_foreign"
    )


def _held_logs() -> Iterator[Case]:
    for name, about, change, seal, code in (
        ("held-good-log", "A log and its seal.", as_it_is, OF_LOG, None),
        ("held-log-changed", "The log was changed.", set_fields(0, producer="me"), OF_LOG, "seal_log"),
        ("held-capture-seal", "The seal is that of a capture.", as_it_is, OF_CAPTURE, "seal_foreign"),
    ):
        yield _held(name, about, "REPLAY.jsonl", {"REPLAY.jsonl": lines_of(changed(LOG, change))}, seal, code)
