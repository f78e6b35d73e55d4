"""``reenact schema``: the formats' JSON Schemas."""

from __future__ import annotations

import json

import click

from reenact.formats.schemas import SCHEMAS, json_schema


@click.command("schema")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the list of names as one JSON object.")
def command(name: str | None, as_json: bool) -> None:
    """Print the JSON Schema of a format.

    Without NAME, list the formats that have one.
    """
    if name is not None:
        click.echo(json.dumps(json_schema(name), indent=2, ensure_ascii=False))
    elif as_json:
        click.echo(json.dumps({known: SCHEMAS[known].summary for known in sorted(SCHEMAS)}, indent=2))
    else:
        width = max(map(len, SCHEMAS))
        for known in sorted(SCHEMAS):
            click.echo(f"{known:<{width}}  {SCHEMAS[known].summary}")
