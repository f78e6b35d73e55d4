"""``reenact capsules``: a list of capsules, or the fields of one."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
import msgspec

from reenact.catalog import CapsuleSummary, list_capsules
from reenact.check.actions.capsule import Capsule
from reenact.check.actions.registry import find_capsule
from reenact.check.actions.schema import (
    ArraySchema,
    EnumSchema,
    Field,
    NumberSchema,
    ObjectSchema,
    Schema,
    member_path,
)
from reenact.cli.terminal import printable


@click.command("capsules")
@click.argument("capsule_id", metavar="[ID]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print manifests and digests as JSON.")
def command(capsule_id: str | None, as_json: bool) -> None:
    """List the capsules (rules for values), or describe one.

    ID is the capsule to describe. The digest identifies the manifest: capsules with the same digest
    take and give the same fields.
    """
    if capsule_id is not None:
        capsule = find_capsule(capsule_id)
        found: object = {"digest": capsule.digest, "manifest": capsule.manifest_json()}
        lines = _page(capsule)
    else:
        capsules = list_capsules()
        found = msgspec.to_builtins(capsules)
        lines = map(_line, capsules)
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for line in lines:
        click.echo(printable(line))


def _line(capsule: CapsuleSummary) -> str:
    if capsule.error:
        return f"{capsule.id}  ({capsule.error})"
    return f"{capsule.id}  {capsule.version}  {capsule.digest[:12]}  {capsule.summary}"


def _page(capsule: Capsule) -> Iterator[str]:
    manifest = capsule.manifest
    yield f"{manifest.id}  {manifest.name}, version {manifest.version}"
    yield f"  {manifest.summary}"
    yield f"  profile {manifest.profile}, logic {manifest.logic_version}, tags {', '.join(manifest.tags)}"
    yield f"  digest  {capsule.digest}"
    for title, schema in (("takes", manifest.input_schema), ("gives", manifest.output_schema)):
        yield ""
        yield f"{title}: {schema.description}"
        rows = [*_rows(schema, "")]
        width = max((len(name) for name, _, _ in rows), default=0)
        kinds = max((len(kind) for _, kind, _ in rows), default=0)
        for name, kind, description in rows:
            yield f"  {name:<{width}}  {kind:<{kinds}}  {description}".rstrip()


def _rows(schema: Schema, path: str) -> Iterator[tuple[str, str, str]]:
    """Each field as path, type and description, depth first."""
    if isinstance(schema, ArraySchema):
        yield from _rows(schema.items, f"{path}[]")
    elif isinstance(schema, ObjectSchema):
        for field in schema.fields:
            below = member_path(path, field.name)
            yield f"{below}{'' if field.required else '?'}", _kind(field), field.description
            yield from _rows(field.schema, below)


def _kind(field: Field) -> str:
    schema = field.schema
    name = str(schema.__struct_config__.tag)
    if isinstance(schema, NumberSchema) and schema.minimum is not None:
        return f"number {schema.minimum:g}…" + (f"{schema.maximum:g}" if schema.maximum is not None else "")
    if isinstance(schema, EnumSchema):
        return f"one of {', '.join(schema.values)}"
    if isinstance(schema, ArraySchema) and schema.minimum:
        return f"array, {schema.minimum} or more"
    return f"{name}, no others" if isinstance(schema, ObjectSchema) and not schema.extras else name
