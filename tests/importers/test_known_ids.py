"""What is known of the ids of a source of any size."""

from __future__ import annotations

import pytest

import reenact
from reenact.importers.known_ids import KnownIds
from tests.importers.test_mutations import LINES, calls_in, losses_in, text_of


def test_the_latest_text_of_each_id_is_known(monkeypatch):
    """Also of those that left memory, and of those that came again after that."""
    monkeypatch.setattr("reenact.importers.known_ids._MOST_IN_MEMORY", 7)
    known = KnownIds()
    for number in range(100):
        known[f"id {number}"] = f"lane {number}"
    for number in range(0, 100, 3):
        known[f"id {number}"] = "other"
    told = {number: known.get(f"id {number}") for number in range(101)}
    assert told == {number: f"lane {number}" if number % 3 else "other" for number in range(100)} | {
        100: None
    }
    assert ("id 99" in known, "id 100" in known) == (True, False)


@pytest.mark.parametrize("name", LINES)
def test_a_transcript_is_imported_the_same_if_its_ids_leave_memory(tmp_path, monkeypatch, name):
    """With entries that are told twice, and results that are."""
    text = text_of(name)
    (tmp_path / "it").write_bytes(text + text)
    before = reenact.import_runs(tmp_path / "it", tmp_path / "before")
    monkeypatch.setattr("reenact.importers.known_ids._MOST_IN_MEMORY", 1)
    after = reenact.import_runs(tmp_path / "it", tmp_path / "after")
    assert (calls_in(after), losses_in(after)) == (calls_in(before), losses_in(before))
