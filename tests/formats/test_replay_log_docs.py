"""What the format pages show is what the readers read."""

import io
import json
import re
from pathlib import Path

import pytest

from reenact import canonical
from reenact.formats.dialects import DIALECTS, dialect_of
from reenact.formats.hashes import params_hash, trajectory_hash
from reenact.formats.receipt import LegacyReceipt, Receipt, read_receipt
from reenact.formats.replay_log import ReplayReader

PAGES = Path(__file__).parents[2] / "docs" / "formats"
LOG_PAGE = (PAGES / "replay-log.md").read_text("utf-8")
RECEIPT_PAGE = (PAGES / "receipt.md").read_text("utf-8")


def blocks(page: str, language: str) -> list[bytes]:
    return [
        text.encode() for text in re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    ]


LOGS = blocks(LOG_PAGE, "jsonl")
EVENTS = blocks(LOG_PAGE, "json")
RECEIPTS = blocks(RECEIPT_PAGE, "json")


def test_every_fenced_example_is_one_that_is_read():
    """No block of another language hides an example from these tests."""
    for page, found in ((LOG_PAGE, LOGS + EVENTS), (RECEIPT_PAGE, RECEIPTS)):
        assert len(re.findall(r"^```", page, re.MULTILINE)) == 2 * len(found)


@pytest.mark.parametrize("data", LOGS)
def test_example_logs_are_read_and_canonical(data):
    """Each log is read to its end, and each of its lines is as the page says a line is."""
    events = list(ReplayReader(lambda: io.BytesIO(data)))
    assert len(events) == 8
    assert all(canonical.encode(json.loads(line)) == line for line in data.splitlines())


def test_example_events_cover_both_dialects():
    """Every event type of each dialect has its example."""
    shown = {(dialect_of(json.loads(text)).name, type(event_of(text)).__name__) for text in EVENTS}
    known = {(name, kind.__name__) for name, dialect in DIALECTS.items() for kind in dialect.kind.__args__}
    assert shown == known


def event_of(text: bytes):
    value = json.loads(text)
    return dialect_of(value).from_json(value)


def test_example_hashes_are_real():
    """Every hash has the form of one, and each params_hash is that of the params beside it."""
    for page in (LOG_PAGE, RECEIPT_PAGE):
        for text in re.findall(r"sha256:[0-9A-Za-z]+", page):
            assert canonical.is_digest(text)
    values = [json.loads(text) for text in EVENTS] + [
        json.loads(line) for log in LOGS for line in log.splitlines()
    ]
    calls = [value for value in values if "params" in value]
    assert len(calls) == 5
    assert all(call["params_hash"] == params_hash(call["params"]) for call in calls)


def test_example_receipts_are_read():
    """The page shows the least receipt, a full one and a legacy one."""
    assert [type(read_receipt(text, "receipt.md")) for text in RECEIPTS] == [Receipt, Receipt, LegacyReceipt]


def test_example_receipt_names_the_example_log():
    """The trajectory hash on both pages is that of the log shown."""
    real = trajectory_hash(io.BytesIO(LOGS[0]), file="replay-log.md")
    assert f"`{real}`" in LOG_PAGE
    assert read_receipt(RECEIPTS[1], "receipt.md").trajectory_hash == real


@pytest.mark.parametrize("page", [LOG_PAGE, RECEIPT_PAGE], ids=["replay-log", "receipt"])
def test_clauses_are_numbered_in_order(page):
    """A clause can be cited: within each section the numbers run from 1 without a gap."""
    for number, section in re.findall(r"^## (\d+)\. .*?\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL):
        clauses = re.findall(rf"^{number}\.(\d+)\. ", section, re.MULTILINE)
        assert [int(clause) for clause in clauses] == list(range(1, len(clauses) + 1))
        assert clauses
