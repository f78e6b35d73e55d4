"""The agent of the demo, with the real ``anthropic`` SDK if it is installed, and its scripted model.

It has no code for recording, except for the decorators of its tools.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Final, Self

from reenact.canonical import JsonValue
from reenact.seams.tool import tool
from reenact.testing.script import Script
from reenact.testing.turns import Reply, ToolCall

QUESTION: Final = "My order A-1042 has not shipped. Where is it?"
MODEL: Final = "scripted-support"
SYSTEM: Final = "You answer customers of a bookshop. Look things up before you promise anything."

_KEY: Final = "sk-ant-demo-not-a-real-key-000000000000"
_ORDERS: Final = {"A-1042": {"book": "The Art of Repetition", "parcel": "RX-77", "paid": True}}
_PARCELS: Final = {"RX-77": {"at": "Rotterdam", "due": "Thursday"}}


@tool
def find_order(order_id: str) -> dict[str, Any]:
    """The facts about an order."""
    return _ORDERS.get(order_id, {"error": "no such order"})


@tool
def track_parcel(parcel: str) -> dict[str, Any]:
    """Where a parcel is and when it arrives."""
    return _PARCELS.get(parcel, {"error": "no such parcel"})


def find_order_carelessly(order_id: str) -> dict[str, JsonValue]:
    """A wrong version of :func:`find_order`: it converts the order number to lower case."""
    return find_order(order_id.lower())


Tools = Mapping[str, Callable[..., dict[str, Any]]]
TOOLS: Final[Tools] = {"find_order": find_order, "track_parcel": track_parcel}
CHANGED_TOOLS: Final[Tools] = {"find_order": find_order_carelessly, "track_parcel": track_parcel}

_SCHEMAS: Final = [
    {
        "name": "find_order",
        "description": "Find an order by its number.",
        "input_schema": {
            "type": "object",
            "properties": {"order_id": {"type": "string"}},
            "required": ["order_id"],
        },
    },
    {
        "name": "track_parcel",
        "description": "Find out where a parcel is.",
        "input_schema": {
            "type": "object",
            "properties": {"parcel": {"type": "string"}},
            "required": ["parcel"],
        },
    },
]


def script() -> Script:
    """The answers of the model: look up the order, look up the parcel, answer."""
    return Script.of(
        [
            Reply(
                thinking="The customer names an order. I should look at it first.",
                tool_calls=(ToolCall("find_order", {"order_id": "A-1042"}),),
            ),
            Reply(
                text="The order is paid; I am tracing the parcel.",
                tool_calls=(ToolCall("track_parcel", {"parcel": "RX-77"}),),
            ),
            Reply(text="Your book is in Rotterdam and arrives on Thursday. Sorry for the wait!"),
        ]
    )


def answer(question: str, base_url: str, tools: Tools = TOOLS) -> str:
    """Ask the model, run its tool calls, and return its answer to the customer."""
    with _client(base_url) as client:
        return _conversation(client, question, tools)


def has_sdk() -> bool:
    """Whether the agent uses the real SDK; otherwise it sends HTTP requests itself."""
    return find_spec("anthropic") is not None


def _client(base_url: str) -> Any:
    if not has_sdk():
        return _PlainClient(base_url)
    import anthropic

    return anthropic.Anthropic(api_key=_KEY, base_url=base_url)


class _PlainClient:
    """The part of the SDK that the agent uses, for an installation without it."""

    def __init__(self, base_url: str) -> None:
        import httpx2

        self._http = httpx2.Client(base_url=base_url, headers={"x-api-key": _KEY})
        self.messages = self

    def create(self, **request: object) -> Any:
        answer = self._http.post("/v1/messages", json=request)
        answer.raise_for_status()
        return SimpleNamespace(content=[_Block(part) for part in answer.json()["content"]])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()


class _Block(SimpleNamespace):
    """One part of an answer."""

    def __init__(self, part: dict[str, Any]) -> None:
        super().__init__(**part)
        self._part = part

    def model_dump(self) -> dict[str, JsonValue]:
        return self._part


def _conversation(client: Any, question: str, tools: Tools) -> str:
    messages: list[object] = [{"role": "user", "content": question}]
    while True:
        reply = client.messages.create(
            model=MODEL,
            max_tokens=1000,
            system=SYSTEM,
            messages=messages,
            tools=_SCHEMAS,
        )
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": str(tools[call.name](**call.input)),
            }
            for call in calls
        ]
        messages += [
            {"role": "assistant", "content": [block.model_dump() for block in reply.content]},
            {"role": "user", "content": results},
        ]
