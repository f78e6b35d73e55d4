"""Changing a model request: another model, system prompt or temperature.

The result has the edits that restore the original request.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from reenact.canonical import JsonField, JsonValue
from reenact.errors import UsageError
from reenact.providers.meaning import Provider

Path: TypeAlias = tuple[str | int, ...]

_SYSTEM_ROLES: Final = ("system", "developer")
_MAX_TEMPERATURE: Final = 2.0
_VERTEX_VERBS: Final = ("rawPredict", "streamRawPredict")


class RequestChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """The new values for model requests."""

    model: str = ""
    system: str | None = None
    temperature: float | None = None

    @property
    def is_any(self) -> bool:
        return self != _NOTHING

    def check(self) -> None:
        """Raise :class:`UsageError` for values that no model accepts."""
        if self.model != self.model.strip() or any(mark in self.model for mark in "\r\n"):
            raise UsageError(f"model {self.model!r}: is not the name of a model")
        heat = self.temperature
        if heat is not None and not (math.isfinite(heat) and 0 <= heat <= _MAX_TEMPERATURE):
            raise UsageError(f"temperature {heat}: must be between 0 and {_MAX_TEMPERATURE:g}")

    def combine(self, before: RequestChange) -> RequestChange:
        """Combine both; this one takes precedence."""
        return RequestChange(
            self.model or before.model,
            before.system if self.system is None else self.system,
            before.temperature if self.temperature is None else self.temperature,
        )


_NOTHING: Final = RequestChange()


class Undo(msgspec.Struct, frozen=True, omit_defaults=True):
    """The original value at *path* of a request; without *was* there was none, and it is removed."""

    path: list[str | int]
    was: list[JsonField] = []


class ChangedRequest(NamedTuple):
    """A request after its change."""

    url: str
    body: dict[str, JsonField]
    undo: list[Undo]
    """The edits that restore ``{"url": …, "body": …}``; empty if nothing changed."""


def ask_otherwise(
    provider: Provider, url: str, body: dict[str, Any], change: RequestChange
) -> ChangedRequest:
    """Change the request to *url* with *body* as its wire format needs it; returns copies."""
    edit = _Edit({"url": url, "body": body})
    if change.model:
        _set_model(edit, provider, url, change.model)
    if change.system is not None:
        _set_system(edit, provider, body, change.system)
    if change.temperature is not None:
        edit.set(_temperature_path(provider, body), change.temperature)
    return ChangedRequest(edit.value["url"], edit.value["body"], edit.undo[::-1])


def undo_changes(request: object, undo: list[Undo]) -> object:
    """The original request of the agent."""
    edit = _Edit(request)
    for each in undo:
        if each.was:
            edit.set(tuple(each.path), each.was[0])
        else:
            edit.remove(tuple(each.path))
    return edit.value


class _Edit:
    """Edits a JSON value by copying the containers on the path."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.undo: list[Undo] = []

    def set(self, path: Path, new: object) -> None:
        """Set a value; missing objects on the path are created."""
        self._at(path, lambda holder, step: _put(holder, step, new), new)

    def insert(self, path: Path, new: Any) -> None:
        """Insert at the beginning of a list."""
        self.value = _copy_and_change(self.value, path, lambda holder, step: holder.insert(step, new))
        self.undo.append(Undo([*path]))

    def remove(self, path: Path) -> None:
        self.value = _copy_and_change(self.value, path, lambda holder, step: holder.pop(step))

    def _at(self, path: Path, act: Callable[[object, Any], None], new: object) -> None:
        there: Any = self.value
        for length, step in enumerate(path, 1):
            if isinstance(step, str) and step not in there:
                # Created objects on the path are removed too.
                self.undo.append(Undo([*path[:length]]))
                break
            there = there[step]
        else:
            if type(there) is type(new) and there == new:
                return
            self.undo.append(Undo([*path], [there]))
        self.value = _copy_and_change(self.value, path, act)


def _put(holder: Any, step: Any, new: object) -> None:
    holder[step] = new


def _copy_and_change(value: Any, path: Path, act: Callable[[Any, object], None]) -> object:
    copy = list(value) if isinstance(value, list) else {**value}
    step = path[0]
    if len(path) == 1:
        act(copy, step)
    else:
        below = copy.get(step, {}) if isinstance(copy, dict) else copy[int(step)]
        copy[step] = _copy_and_change(below, path[1:], act)  # type: ignore[index]  # a list's steps are numbers
    return copy


def _set_model(edit: _Edit, provider: Provider, url: str, model: str) -> None:
    if isinstance(edit.value["body"].get("model"), str):
        edit.set(("body", "model"), model)
    moved = _url_with_model(provider, url, model)
    if moved is not None:
        edit.set(("url",), moved)


def _url_with_model(provider: Provider, url: str, model: str) -> str | None:
    """The URL for services that name the model in the path; ``None`` for others."""
    parts = urlsplit(url)
    steps = parts.path.split("/")
    places = [place for place, step in enumerate(steps) if step]
    names = [steps[place] for place in places]
    verb = names[-1].rpartition(":")[2] if names else ""
    name = quote(model, safe="")
    if provider == "gemini" or verb in _VERTEX_VERBS:
        steps[places[-1]] = f"{name}:{verb}"
    elif provider == "anthropic" and names[-3:-2] == ["model"]:
        steps[places[-2]] = name
    elif provider == "openai_chat" and names[-4:-3] == ["deployments"]:
        steps[places[-3]] = name
    else:
        return None
    return urlunsplit(parts._replace(path="/".join(steps)))


def _set_system(edit: _Edit, provider: Provider, body: dict[str, JsonValue], system: str) -> None:
    if provider == "anthropic":
        edit.set(("body", "system"), system)
    elif provider == "gemini":
        name = "system_instruction" if "system_instruction" in body else "systemInstruction"
        edit.set(("body", name), {"parts": [{"text": system}]})
    elif "prompt" in body and "messages" not in body:
        edit.set(("body", "system"), system)
    elif isinstance(body.get("messages"), list):
        _set_first_message(edit, "messages", system)
    elif not isinstance(body.get("instructions"), str) and _has_system(body.get("input")):
        _set_first_message(edit, "input", system)
    else:
        edit.set(("body", "instructions"), system)


def _has_system(items: object) -> bool:
    return isinstance(items, list) and any(map(_is_system, items))


def _is_system(item: object) -> bool:
    return isinstance(item, dict) and item.get("role") in _SYSTEM_ROLES


def _set_first_message(edit: _Edit, member: str, system: str) -> None:
    """Replace the first system message, or insert one before all others."""
    messages = edit.value["body"][member]
    place = next((at for at, message in enumerate(messages) if _is_system(message)), None)
    if place is None:
        edit.insert(("body", member, 0), {"role": "system", "content": system})
    else:
        edit.set(("body", member, place, "content"), system)


def _temperature_path(provider: Provider, body: dict[str, JsonValue]) -> Path:
    if provider == "gemini":
        name = "generation_config" if "generation_config" in body else "generationConfig"
        return ("body", name, "temperature")
    return ("body", "options", "temperature") if provider == "ollama" else ("body", "temperature")
