"""What the capture page shows is what the readers take."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path

from jsonschema import Draft202012Validator

from reenact.formats.capture import EVENT_TYPES, event_codec, manifest_codec, read_events, read_manifest
from reenact.formats.schemas import json_schema

TEXT = (Path(__file__).parents[2] / "docs" / "formats" / "capture.md").read_text(encoding="utf-8")
MANIFESTS = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
LOGS = re.findall(r"```jsonl\n(.*?)```", TEXT, re.DOTALL)


def test_the_manifest_on_the_page_is_read_and_written_again() -> None:
    """It follows the published schema, too."""
    for example in MANIFESTS:
        manifest = read_manifest(example.encode(), file="manifest.json")
        assert manifest_codec.to_json(manifest) == json.loads(example)
        Draft202012Validator(json_schema("capture-manifest")).validate(json.loads(example))


def test_the_events_on_the_page_are_read_and_written_again() -> None:
    """Every line is canonical, in sequence, and follows the published schema."""
    for example in LOGS:
        lines = example.encode().splitlines()
        events = [event for _, event in read_events(BytesIO(example.encode()), file="events.jsonl")]
        assert [event_codec.to_bytes(event) for event in events] == lines
        for line in lines:
            Draft202012Validator(json_schema("capture-event")).validate(json.loads(line))


def test_the_page_names_every_type_of_event() -> None:
    """None is forgotten when one is added."""
    assert all(f"`{name}`" in TEXT for name in EVENT_TYPES)
