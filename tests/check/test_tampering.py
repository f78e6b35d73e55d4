"""A log that was tampered with fails at the line where it happened, and any byte of a proof counts."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reenact.canonical import encode
from reenact.check.artifact import verify
from reenact.check.findings import Finding, VerifyReport
from reenact.check.integrity.replay_log import check_replay_log
from reenact.errors import ReenactError
from reenact.formats.hashes import output_hash, params_hash, plan_hash
from tests.hard import HARD, chance, say

Event = dict[str, Any]

# As its specification shows it, without the hashes.
EXAMPLE = """\
{"event":"ReplayHeader","created_at":"2026-01-13T10:00:00Z","producer":"adjutant@1.2.3","replay_version":1}
{"event":"SessionStart","issue_number":42,"policy_version":"v1.2.3","session_id":"sess_abc123","t":"2026-01-13T10:00:00Z"}
{"event":"PlanStart","plan_hash":"","step_count":3,"t":"2026-01-13T10:00:01Z"}
{"event":"ToolCall","id":"tc_001","params":{"path":"src/auth.rs"},"params_hash":"","step_id":"step-1","t":"2026-01-13T10:00:02Z","tool":"file_read"}
{"event":"ToolResult","exit_code":null,"id":"tc_001","latency_ms":45,"output_hash":"","step_utility":0.8,"t":"2026-01-13T10:00:02Z"}
{"event":"StepComplete","iterations":1,"status":"Success","step_id":"step-1","t":"2026-01-13T10:00:03Z"}
{"event":"Verification","commands":["cargo check","cargo test"],"exit_codes":[0,0],"t":"2026-01-13T10:05:30Z","verification_delta":3}
{"event":"SessionEnd","confidence":0.92,"status":"Success","t":"2026-01-13T10:05:32Z","total_latency_ms":5320,"total_tool_calls":5}
"""  # noqa: E501 — lines of a log


def with_hashes() -> list[Event]:
    """The example with the hashes that its values have."""
    events = [json.loads(line) for line in EXAMPLE.splitlines()]
    events[2]["plan_hash"] = plan_hash({"steps": ["read", "fix", "test"]})
    events[3]["params_hash"] = params_hash(events[3]["params"])
    events[4]["output_hash"] = output_hash(success=True, content="fn main() {}", error=None)
    return events


def whole() -> list[Event]:
    """The example with the four calls that its totals count and it does not show, between lines 5 and 6."""
    events = with_hashes()
    others: list[Event] = []
    for number, latency_ms in enumerate((1000, 2000, 2000, 275), 2):
        params = {"path": f"src/{number}.rs"}
        name = {"id": f"tc_00{number}"}
        others += [
            events[3] | name | {"params": params, "params_hash": params_hash(params)},
            events[4] | name | {"latency_ms": latency_ms},
        ]
    return [*events[:5], *others, *events[5:]]


def found(events: list[Event]) -> list[tuple[str, int | None]]:
    text = b"".join(encode(event) + b"\n" for event in events)
    report = check_replay_log(lambda: io.BytesIO(text), file="REPLAY.jsonl")
    return [(finding.code, finding.line) for finding in report.findings if finding.severity == "error"]


def test_the_example_of_the_specification_verifies() -> None:
    """With real hashes and all the calls that its totals count."""
    assert found(whole()) == []


def test_the_example_as_printed_shows_one_of_its_five_calls() -> None:
    """Which is all that is wrong with it."""
    assert found(with_hashes()) == [("total_latency_ms", 8), ("total_tool_calls", 8)]


TOTALS = [("total_latency_ms", 14), ("total_tool_calls", 14)]
TAMPERINGS: dict[str, tuple[Callable[[list[Event]], object], list[tuple[str, int]]]] = {
    "a parameter is substituted": (lambda log: log[5]["params"].update(path="x"), [("params_hash", 6)]),
    "parameters and their hash are swapped with another call's": (
        lambda log: log[3].update(params=log[5]["params"]),
        [("params_hash", 4)],
    ),
    "a hash is substituted": (
        lambda log: log[3].update(params_hash="sha256:" + "0" * 64),
        [("params_hash", 4)],
    ),
    "a use is deleted": (lambda log: log.__delitem__(slice(5, 7)), TOTALS),
    "a call is deleted": (
        lambda log: log.pop(5),
        [("result_without_call", 6), ("total_tool_calls", 15)],
    ),
    "a use is inserted": (
        lambda log: log.__setitem__(slice(5, 5), [log[3] | {"id": "x"}, log[4] | {"id": "x"}]),
        [("total_latency_ms", 18), ("total_tool_calls", 18)],
    ),
    "a use is repeated": (
        lambda log: log.__setitem__(slice(7, 7), log[3:5]),
        [("second_call", 8), ("total_latency_ms", 18), ("total_tool_calls", 18)],
    ),
    "a result is moved before its call": (
        lambda log: log.insert(5, log.pop(6)),
        [("result_without_call", 6), ("no_result", 7)],
    ),
    "a result is given to another call": (
        lambda log: log[6].update(id="tc_001"),
        [("no_result", 6), ("second_result", 7)],
    ),
    "the header is deleted": (lambda log: log.pop(0), [("no_header", 1)]),
    "another session is mixed in": (
        lambda log: log.insert(5, log[1] | {"session_id": "sess_other"}),
        [("foreign_event", 6), ("second_start", 6)],
    ),
    "something is appended": (lambda log: log.append(log[14] | {"t": log[15]["t"]}), [("after_end", 17)]),
    "a total is changed": (lambda log: log[15].update(total_tool_calls=4), [("total_tool_calls", 16)]),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_found_at_its_line(name: str) -> None:
    """By what no longer fits, without any other file."""
    tamper, expected = TAMPERINGS[name]
    events = json.loads(json.dumps(whole()))
    tamper(events)
    assert found(events) == expected


KIT = Path(__file__).parents[2] / "conformance"
PROVEN = {
    "capture/good": ("capture",),
    "capture/good-streams": ("capture",),
    "fork/good": ("capture",),
    "workspace/good": ("capture",),
    "receipt/held-good": ("REPLAY.jsonl", "RECEIPT.json"),
    "seal/held-good": ("capture", "SEAL.json"),
    "seal/held-good-log": ("REPLAY.jsonl", "SEAL.json"),
    "published-log/good": ("PUBLISHED.jsonl", "SEAL.json"),
    "published-log/good-withheld": ("PUBLISHED.jsonl", "SEAL.json"),
    "disclosure/good": ("DISCLOSURE.json", "SEAL.json"),
    "disclosure/good-proof": ("DISCLOSURE.json", "SEAL.json"),
}
"""By case of the kit, what of it is held against a digest, a signature or a log.

Not receipts that say more of a side effect than its tag, which no log holds.
"""


def verify_case(folder: Path) -> VerifyReport:
    case = json.loads((folder / "expected.json").read_text())
    beside = {name: folder / case[name] for name in ("receipt", "seal", "key") if name in case}
    return verify(folder / case["artifact"], **beside)


def found_in(folder: Path) -> list[Finding] | None:
    """``None`` where it cannot be read at all."""
    try:
        return verify_case(folder).findings
    except ReenactError:
        return None


def means_the_same(before: bytes, after: bytes) -> bool:
    """White space is nobody's claim."""
    try:
        return bool(json.loads(before) == json.loads(after))
    except ValueError:
        return False


@pytest.mark.parametrize("case", PROVEN)
def test_one_bit_of_a_proof_is_found_wherever_it_is(case: str, tmp_path: Path) -> None:
    """One bit of every byte in the long form; a few of each file else."""
    folder = tmp_path / "case"
    shutil.copytree(KIT / case, folder)
    whole = verify_case(folder)
    assert whole.is_good
    proven = [folder / name for name in PROVEN[case]]
    files = [file for path in proven for file in ([path] if path.is_file() else sorted(path.rglob("*")))]
    missed, tried, draw = [], 0, chance(case)
    for file in filter(Path.is_file, files):
        before = file.read_bytes()
        places = range(len(before))
        for place in places if HARD else draw.sample(places, min(16, len(places))):
            after = bytearray(before)
            after[place] ^= 1 << draw.randrange(8)
            file.write_bytes(after)
            tried += 1
            is_same = file.suffix == ".json" and means_the_same(before, bytes(after))
            if found_in(folder) == whole.findings and not is_same:
                missed.append((file.name, place, bytes(after[max(0, place - 20) : place + 20])))
        file.write_bytes(before)
    say(f"a bit of {tried} bytes of {case}")
    assert missed == []
