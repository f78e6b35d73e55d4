"""The scripted model of these agents: what it says follows from the request alone.

Asked about cities, it calls a tool that takes a city, once for each; asked for an object of a schema, it
fills it; otherwise it answers in words made of what it was told.
"""

from __future__ import annotations

import json
from hashlib import sha256

from reenact.testing import Reply, Request, ToolCall, Turn

CITIES = ("Paris", "Rome", "Oslo", "Lima", "Cairo", "Tokyo", "Quito", "Delhi")
ONE_BY_ONE = "one at a time"
_SCHEMAS = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema")
_HANDING_OVER = ("transfer", "handoff", "hand_off", "delegate", "ask_")


def answer(request: Request) -> Turn:
    """What the model says to *request*."""
    tools = tools_of(request.body)
    left = cities_left(request)
    if calls := _calls(tools, left, ONE_BY_ONE in everything_said(request)):
        return pace(request, Reply(tool_calls=calls))
    for name, schema in tools.items():
        if name.startswith(("final", "submit_result")) or _is_forced(request.body, name):
            return pace(request, Reply(tool_calls=[ToolCall(name, fill(schema, in_words(request)))]))
    if schema := schema_of(request.body):
        return pace(request, Reply(json.dumps(fill(schema, in_words(request)))))
    return pace(request, Reply(in_words(request)))


def pace(request: Request, reply: Reply) -> Reply:
    """*reply* after a short while that depends on the request, so that parallel ones overtake each other."""
    figure = int.from_bytes(sha256(request.raw).digest()[:2], "big")
    object.__setattr__(reply, "delay_ms", 5 + figure % 60)
    return reply


def in_words(request: Request) -> str:
    """An answer that could not be another request's."""
    results = [result.text for message in request.messages for result in message.tool_results]
    if results:
        return "It is so: " + "; ".join(results)
    return "You said: " + " ".join(request.user_text.split()[-8:])


def everything_said(request: Request) -> str:
    return " ".join(message.text for message in request.messages if message.role == "user")


def cities_left(request: Request) -> list[str]:
    """Those the user named and no tool has answered for, in their order."""
    said = everything_said(request)
    named = sorted((city for city in CITIES if city in said), key=said.index)
    return named[sum(len(message.tool_results) for message in request.messages) :]


def tools_of(body: dict) -> dict[str, dict]:
    """The schema of each tool's arguments, in any provider's form."""
    found = {}
    for tool in body.get("tools") or ():
        for each in tool.get("functionDeclarations") or (tool.get("function") or tool,):
            if "name" in each:
                found[each["name"]] = next((each[name] for name in _SCHEMAS if each.get(name)), {})
    return found


def schema_of(body: dict) -> dict | None:
    """The schema that the answer must have, in any provider's form."""
    chat = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    responses = ((body.get("text") or {}).get("format") or {}).get("schema")
    gemini = body.get("generationConfig") or {}
    messages = ((body.get("output_config") or {}).get("format") or body.get("output_format") or {}).get(
        "schema"
    )
    ollama = body.get("format") if isinstance(body.get("format"), dict) else None
    return (
        chat
        or responses
        or messages
        or ollama
        or gemini.get("responseJsonSchema")
        or gemini.get("responseSchema")
    )


def fill(schema: dict, text: str, whole: dict | None = None, name: str = "") -> object:
    """A value of *schema*: texts are *text*, or a city where one is asked for."""
    whole = schema if whole is None else whole
    schema = _resolved(schema, whole)
    if "const" in schema or schema.get("enum"):
        return schema.get("const", (schema.get("enum") or [None])[0])
    if inner := schema.get("properties"):
        asked = schema.get("required") or list(inner)
        return {key: fill(inner[key], text, whole, key) for key in inner if key in asked}
    kind = schema.get("type")
    match str(kind[0] if isinstance(kind, list) else kind).lower():
        case "array":
            return [fill(schema.get("items") or {}, text, whole, name)]
        case "integer" | "number":
            return len(text)
        case "string" | "none":
            city = next((city for city in CITIES if city in text), CITIES[0])
            return city if name == "city" else text
        case other:
            return {"boolean": True, "object": {}}.get(other)


def _resolved(schema: dict, whole: dict) -> dict:
    """*schema* where it refers elsewhere, or offers a choice: the first."""
    if "$ref" in schema:
        found = whole
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return _resolved(found, whole)
    for several in ("anyOf", "oneOf", "allOf"):
        if schema.get(several):
            return _resolved(schema[several][0], whole)
    return schema


def _calls(tools: dict[str, dict], left: list[str], one_by_one: bool) -> list[ToolCall]:
    for name, schema in tools.items():
        if left and "city" in schema.get("properties", {}):
            chosen = left[:1] if one_by_one else left
            return [ToolCall(name, {**fill(schema, city), "city": city}) for city in chosen]
    for name, schema in tools.items():
        if left and name.startswith(_HANDING_OVER):
            return [ToolCall(name, fill(schema, left[0]) if schema.get("properties") else {})]
    return []


def _is_forced(body: dict, name: str) -> bool:
    choice = body.get("tool_choice")
    if not isinstance(choice, dict):
        return choice in ("required", "any") and len(body["tools"]) == 1
    return name in (choice.get("name"), (choice.get("function") or {}).get("name"))
