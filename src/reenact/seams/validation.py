"""Validates a tool's arguments against a JSON Schema before the function runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import PurePath
from typing import Any, Literal, TypeAlias, get_type_hints
from urllib.parse import urlsplit

import msgspec

from reenact.boundary import Call, current_lane
from reenact.errors import CheckFailed
from reenact.formats.json_schema import compile_schema, find_violations
from reenact.providers import read_request
from reenact.values.codec import to_text
from reenact.values.tags import strip_tags

JsonSchema: TypeAlias = dict[str, Any]
ToolSchema: TypeAlias = JsonSchema | Literal["signature", "offered"] | None
"""Where the schema of a tool's arguments comes from."""


class InvalidArguments(CheckFailed):
    """A tool was called with arguments that its schema does not allow; *problems* names each place."""

    def __init__(self, tool: str, problems: list[str]) -> None:
        self.tool = tool
        self.problems = problems
        super().__init__(f"{tool}: {'; '.join(problems)}")


def with_validation(
    fn: Callable[..., object], call: Callable[..., Call], schema: ToolSchema
) -> Callable[..., object]:
    """*fn*, but it runs only if its arguments fit *schema*.

    Works for all kinds of functions: a coroutine or generator is created, not started, after the check.
    """
    if schema == "signature":
        schema = schema_of_signature(fn)
    if isinstance(schema, dict):
        _validator(msgspec.json.encode(schema))  # refuse an invalid schema at the decorator, not at a call

    def checked(*args: object, **kwargs: object) -> object:
        made = call(args, kwargs)
        wanted = _offered_schema(made.name) if schema == "offered" else schema
        if isinstance(wanted, dict):
            problems = _problems(made.request, wanted)
            if problems:
                raise InvalidArguments(made.name, problems)
        return fn(*args, **kwargs)

    return checked


def schema_of_signature(fn: Callable[..., object]) -> JsonSchema:
    """The schema that the annotations of *fn* describe; a parameter without one may be anything."""
    import inspect

    hints = _hints(inspect.unwrap(fn))
    properties: JsonSchema = {}
    required: list[str] = []
    definitions: JsonSchema = {}
    allows_more = False
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.name in ("self", "cls") or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            allows_more = True
            continue
        properties[parameter.name] = _schema_of_type(hints.get(parameter.name, Any), definitions)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    schema: JsonSchema = {"type": "object", "properties": properties, "required": required}
    if not allows_more:
        schema["additionalProperties"] = False
    return {**schema, "$defs": definitions} if definitions else schema


def _hints(fn: Callable[..., object]) -> dict[str, object]:
    """The types of the parameters, without those whose names exist only for type checkers."""
    try:
        return get_type_hints(fn, include_extras=True)
    except NameError:
        written = getattr(fn, "__annotations__", {})
        return {name: hint for name, hint in written.items() if not isinstance(hint, str)}


def _schema_of_type(kind: object, definitions: JsonSchema) -> JsonSchema:
    """The schema of one type; empty, which allows anything, if the type has none."""

    def schema_of_class(known: type) -> JsonSchema:
        """The schema of a class that msgspec does not know; a pydantic model describes itself."""
        if isinstance(known, type) and issubclass(known, PurePath):
            return {"type": "string"}
        describe = getattr(known, "model_json_schema", None)
        if describe is None:
            return {"title": str(getattr(known, "__name__", known))}  # msgspec rejects an empty schema
        schema: JsonSchema = describe()
        definitions.update(schema.pop("$defs", {}))
        return schema

    try:
        (schema,), found = msgspec.json.schema_components(
            [kind], schema_hook=schema_of_class, ref_template="#/$defs/{name}"
        )
    except (TypeError, ValueError):
        return {}
    definitions |= found
    return schema


def _offered_schema(tool: str) -> JsonSchema | None:
    """The schema that the run's latest model call offered for *tool*; ``None`` if it offered none."""
    lane = current_lane()
    asked = None if lane is None else lane.context.latest_model_request
    if not isinstance(asked, dict):
        return None
    request = read_request(urlsplit(str(asked.get("url", ""))).path, asked.get("body"))
    for offered in () if request is None else request.tools:
        if offered.name == tool and isinstance(offered.schema, dict):
            return offered.schema
    return None


def _problems(arguments: object, schema: JsonSchema) -> list[str]:
    return find_violations(_validator(msgspec.json.encode(schema)), _json_of(arguments))


def _json_of(arguments: object) -> object:
    """*arguments* as a caller would write them in JSON: a date as its text, a data class as an object."""
    try:
        return msgspec.json.decode(msgspec.json.encode(arguments, enc_hook=_plain_form))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return strip_tags(msgspec.json.decode(to_text(arguments)))


def _plain_form(value: object) -> object:
    """The JSON form of a value that msgspec does not know; if it has none, the form that a recording uses."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, PurePath):
        return str(value)
    bases: tuple[type[Any], ...] = (str, int, float, dict, list, tuple)
    for base in bases:
        if isinstance(value, base):
            return base(value)
    return strip_tags(msgspec.json.decode(to_text(value)))


@cache
def _validator(schema: bytes) -> object:
    return compile_schema(msgspec.json.decode(schema), "schema of a tool")
