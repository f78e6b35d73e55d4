"""``reenact schema``: the JSON Schemas of the formats, and of what capsules take."""

from __future__ import annotations

import json

import click

from reenact.canonical import JsonValue
from reenact.check.actions.registry import capsule_ids, find_capsule
from reenact.errors import UsageError
from reenact.formats.schemas import SCHEMAS, json_schema


@click.command("schema")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the list of names as one JSON object.")
def command(name: str | None, as_json: bool) -> None:
    """Print the JSON Schema of a format.

    Without NAME, list the formats and capsules that have one.
    """
    if name is not None:
        click.echo(json.dumps(_schema(name), indent=2, ensure_ascii=False))
        return
    summaries = _summaries()
    if as_json:
        click.echo(json.dumps(summaries, indent=2))
    else:
        width = max(map(len, summaries))
        for known, summary in summaries.items():
            click.echo(f"{known:<{width}}  {summary}")


def _schema(name: str) -> dict[str, JsonValue]:
    if name in SCHEMAS:
        return json_schema(name)
    if name in capsule_ids():
        return find_capsule(name).json_schema()
    known = sorted([*SCHEMAS, *capsule_ids()])
    raise UsageError(f"no format is called {name!r}; choose from {', '.join(known)}")


def _summaries() -> dict[str, str]:
    summaries = {name: entry.summary for name, entry in SCHEMAS.items()}
    for name in capsule_ids():
        summaries.setdefault(name, _capsule_summary(name))
    return dict(sorted(summaries.items()))


def _capsule_summary(name: str) -> str:
    try:
        return find_capsule(name).manifest.summary
    except UsageError as error:  # a broken package must not hide the others
        return f"({error})"
