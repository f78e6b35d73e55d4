"""The name and arguments of a tool call as actions hold it, in any of the shapes that are about."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from reenact.errors import FormatError
from reenact.formats.json_text import read_json

_ARGUMENTS: Final = ("arguments", "args", "input")


class NamedCall(NamedTuple):
    name: str
    arguments: Any
    """Not always an object: what could not be read as one stands as it was sent."""


def call_of(call: Any) -> NamedCall | None:
    """The call in *call*; ``None`` where it names no tool, or where readers could see different ones.

    Taken are ``{"name", "arguments"}``, the same with ``args`` or ``input``, and OpenAI's
    ``{"function": {"name", "arguments"}}`` with the arguments as JSON text.
    """
    if type(call) is not dict:
        return None
    if "function" in call:
        return call_of(call["function"]) if "name" not in call and _is_flat(call["function"]) else None
    name, given = call.get("name"), [key for key in _ARGUMENTS if key in call]
    if type(name) is not str or len(given) > 1:
        return None
    arguments = call[given[0]] if given else {}
    return NamedCall(name, _decoded(arguments) if type(arguments) is str else arguments)


def _is_flat(function: Any) -> bool:
    return type(function) is dict and "function" not in function


def _decoded(text: str) -> Any:
    try:
        return read_json(text.encode()) if text else {}
    except (FormatError, UnicodeEncodeError):
        return text
