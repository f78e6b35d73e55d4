"""``reenact schema``: the list and the schemas."""

import json

from reenact.cli import main
from reenact.formats.schemas import SCHEMAS, json_schema


def test_without_a_name_the_formats_are_listed(capsys):
    """One line each: the name and what it is."""
    assert main(["schema"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [
        [name, SCHEMAS[name].summary] for name in sorted(SCHEMAS)
    ]


def test_the_list_as_json(capsys):
    """Names and summaries in one object."""
    assert main(["schema", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {name: entry.summary for name, entry in SCHEMAS.items()}


def test_a_name_gives_its_schema(capsys):
    """As the library gives it."""
    assert main(["schema", "capture-event"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema("capture-event")


def test_an_unknown_name_is_wrong_usage(capsys):
    """Exit 3 and the names there are."""
    assert main(["schema", "capture"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("reenact: no format is called 'capture'; choose from action")
