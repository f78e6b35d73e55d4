"""JSON Schemas of others: nothing that they refer to is fetched, and their patterns run in linear time."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from reenact.canonical import child_path
from reenact.errors import UsageError

_SHOWN_CHARACTERS: Final = 200


def compile_schema(schema: Any, name: str) -> object:
    """A validator for *schema*; :class:`UsageError`, with the schema's *name*, if it is invalid."""
    import jsonschema_rs  # slow to import, and few tools and tests need it

    try:
        return jsonschema_rs.validator_for(
            schema, retriever=_refuse_fetching, pattern_options=jsonschema_rs.RegexOptions()
        )
    except (jsonschema_rs.ValidationError, ValueError) as error:
        reason = str(error).partition("\n")[0][:_SHOWN_CHARACTERS]
        raise UsageError(f"{name}: not a JSON Schema: {reason}") from None


def find_violations(validator: Any, value: object) -> list[str]:
    """Where *value* violates the schema of *validator*, with paths."""
    return sorted(_describe(error) for error in validator.iter_errors(value))


def _refuse_fetching(address: str) -> NoReturn:
    raise ValueError(f"{address} is not fetched; put it under $defs")


def _describe(error: Any) -> str:
    path = "$"
    for step in error.instance_path:
        path = child_path(path, step)
    return f"{path}: {error.message:.{_SHOWN_CHARACTERS}}"
