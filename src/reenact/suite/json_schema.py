"""JSON Schema, offline and bounded: no schema is fetched, and patterns run in a linear engine."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from reenact.canonical import child_path
from reenact.errors import UsageError

_SHOWN_PROBLEMS: Final = 20
_SHOWN_CHARACTERS: Final = 200


def schema_problems(value: Any, schema: Any) -> list[str]:
    """Where *value* breaks *schema*, each with its path; :class:`UsageError` for a schema that is none."""
    import jsonschema_rs  # few tests need it

    try:
        validator = jsonschema_rs.validator_for(
            schema, retriever=_refuse_fetching, pattern_options=jsonschema_rs.RegexOptions()
        )
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise UsageError(f"params.schema: not a JSON Schema: {_first_line(error)}") from None
    found = [_problem(error) for error in validator.iter_errors(value)]
    return sorted(found)[:_SHOWN_PROBLEMS]


def _refuse_fetching(address: str) -> NoReturn:
    raise ValueError(f"{address} is not fetched; put it under $defs")


def _problem(error: Any) -> str:
    path = "$"
    for step in error.instance_path:
        path = child_path(path, step)
    return f"{path}: {error.message:.{_SHOWN_CHARACTERS}}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:_SHOWN_CHARACTERS]
