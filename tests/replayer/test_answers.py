"""Recorded answers under this run's names, whole and in pieces."""

from __future__ import annotations

import json

from reenact.replayer.answers import Substitution

NAMES = Substitution([("77a9a98b41c2", "0c1d2e3f4a5b"), ("shortname1x", "muchlongername2")])


def told(pieces: list[str], member: str) -> str:
    """What the events of a stream say in *member*, put together."""
    events = [json.loads(line[6:]) for line in "".join(pieces).splitlines() if line.startswith("data: ")]
    return "".join(event[member] for event in events if member in event)


def test_names_in_values() -> None:
    """In texts, keys, lists and bytes."""
    value = {"id": "x-77a9a98b41c2", "77a9a98b41c2": [b"\xff77a9a98b41c2", 7, None]}
    assert NAMES.rename_in_value(value) == {
        "id": "x-0c1d2e3f4a5b",
        "0c1d2e3f4a5b": [b"\xff0c1d2e3f4a5b", 7, None],
    }


def test_a_short_name_is_one_where_it_stands_alone() -> None:
    """Not within another word."""
    assert NAMES.rename_in_value("shortname1x and ashortname1xb") == "muchlongername2 and ashortname1xb"


def test_a_name_that_is_cut_between_two_pieces() -> None:
    """Pieces are cut where they were."""
    assert NAMES.rename_in_pieces(["see 77a9", "a98b41c2 now"]) == ["see 0c1d", "2e3f4a5b now"]
    assert NAMES.rename_in_pieces([b"see 77a9", b"a98b41c2 now"]) == [b"see 0c1d", b"2e3f4a5b now"]


def test_a_name_that_a_model_writes_in_several_events() -> None:
    """Each event says some letters of it, in JSON of its own; each piece is still one event."""
    parts = ["I am 77", "a9a98", "b41c2", "."]
    pieces = [f'data: {{"index": 0, "text": "{part}"}}\n\n' for part in parts]
    renamed = NAMES.rename_in_pieces(pieces)
    assert told(renamed, "text") == "I am 0c1d2e3f4a5b."
    assert [piece.count("data:") for piece in renamed] == [1, 1, 1, 1]
    assert [len(piece) for piece in renamed] == [len(piece) for piece in pieces]


def test_a_longer_name_in_several_events() -> None:
    """What does not fit goes into the last piece that had some of the old one."""
    pieces = [f'data: {{"delta": "{part}"}}\n\n' for part in ("(sho", "rtna", "me1x", ")")]
    renamed = NAMES.rename_in_pieces(pieces)
    assert told(renamed, "delta") == "(muchlongername2)"
    assert [piece.endswith("\n\n") for piece in renamed] == [True] * 4


def test_texts_of_two_places_are_kept_apart() -> None:
    """Two calls of tools that are written at the same time."""
    events = [(0, "77a9a9"), (1, "8b41c2"), (0, "8b41c2"), (1, "77a9a9")]
    pieces = [f'data: {{"index": {index}, "text": "{part}"}}\n\n' for index, part in events]
    renamed = "".join(NAMES.rename_in_pieces(pieces))
    assert '"index": 0, "text": "0c1d2e"' in renamed
    assert '"index": 1, "text": "8b41c2"' in renamed
