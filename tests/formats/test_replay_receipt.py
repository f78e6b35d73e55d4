"""The replay receipt as a format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from reenact.errors import FormatError
from reenact.formats.replay_receipt import read_replay_receipt, receipt_codec
from reenact.formats.schemas import json_schema

PAGE = Path(__file__).parents[2] / "docs" / "formats" / "replay-receipt.md"
EXAMPLE = re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]


def test_the_documented_receipt_is_read_and_written_again() -> None:
    """What the page shows is what the reader takes; unknown members survive."""
    value = json.loads(EXAMPLE) | {"new": {"inside": 1}}
    receipt = read_replay_receipt(json.dumps(value).encode(), file="receipt.json")
    assert json.loads(receipt_codec.to_bytes(receipt)) == value
    Draft202012Validator(json_schema("replay-receipt")).validate(value)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"verdict": "fine"}, "$.verdict"),
        ({"schema": "reenact.replay-receipt.v2"}, "$.schema"),
        ({"capture": {}}, "$.capture.captureId"),
    ],
)
def test_a_wrong_receipt_is_refused_with_its_place(change: dict[str, object], place: str) -> None:
    """The file and the JSON path are named."""
    with pytest.raises(FormatError) as caught:
        read_replay_receipt(json.dumps(json.loads(EXAMPLE) | change).encode(), file="receipt.json")
    assert (caught.value.file, caught.value.json_path) == ("receipt.json", place)
