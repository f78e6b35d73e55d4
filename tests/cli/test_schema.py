"""``reenact schema``: the list and the schemas."""

import json

import pytest

from reenact.check.actions.action import ACTION
from reenact.cli import main
from reenact.formats.schemas import SCHEMAS, json_schema

SUMMARIES = {name: entry.summary for name, entry in SCHEMAS.items()} | {
    ACTION.manifest.id: ACTION.manifest.summary
}


def test_without_a_name_the_formats_are_listed(capsys):
    """One line each: the name and what it is, capsules among them."""
    assert main(["schema"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [
        [name, SUMMARIES[name]] for name in sorted(SUMMARIES)
    ]


def test_the_list_as_json(capsys):
    """Names and summaries in one object."""
    assert main(["schema", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == SUMMARIES


SHOWN = {"capture-event": json_schema("capture-event"), ACTION.manifest.id: ACTION.json_schema()}


@pytest.mark.parametrize("name", SHOWN)
def test_a_name_gives_its_schema(name, capsys):
    """As the library gives it: of a format, or of what a capsule takes."""
    assert main(["schema", name]) == 0
    assert json.loads(capsys.readouterr().out) == SHOWN[name]


def test_an_unknown_name_is_wrong_usage(capsys):
    """Exit 3 and the names there are."""
    assert main(["schema", "capture"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("reenact: no format is called 'capture'; choose from action")
