"""``reenact schema``: print the JSON Schema of a format or capsule."""

from __future__ import annotations

import json

import click

from reenact.catalog import list_schemas, schema


@click.command("schema")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the list of names as one JSON object.")
def command(name: str | None, as_json: bool) -> None:
    """Print the JSON Schema of a format.

    Without NAME, list the formats and capsules that have one.
    """
    if name is not None:
        click.echo(json.dumps(schema(name), indent=2, ensure_ascii=False))
        return
    summaries = list_schemas()
    if as_json:
        click.echo(json.dumps(summaries, indent=2))
        return
    width = max(map(len, summaries))
    for known, summary in summaries.items():
        click.echo(f"{known:<{width}}  {summary}")
