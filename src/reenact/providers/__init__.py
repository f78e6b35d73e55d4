"""What the bytes of a model call mean; pure functions from bytes to meaning."""

from reenact.providers.asking import ChangedRequest, RequestChange, Undo, ask_otherwise, undo_changes
from reenact.providers.meaning import (
    Media,
    ModelError,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    Other,
    Part,
    Provider,
    Refusal,
    Text,
    Thinking,
    TokenUsage,
    Tool,
    ToolCallPart,
    ToolResultPart,
)
from reenact.providers.neutral import read_neutral_request, read_neutral_response
from reenact.providers.registry import (
    read_conversation,
    read_parts,
    read_request,
    read_response,
    recognise,
    request_fields,
    response_fields,
)
from reenact.providers.streams import read_stream, write_stream
from reenact.providers.tools import DerivedTools, derive_tool_results, pair_tool_results

__all__ = [
    "ChangedRequest",
    "DerivedTools",
    "Media",
    "ModelError",
    "ModelMessage",
    "ModelRequest",
    "ModelResponse",
    "Other",
    "Part",
    "Provider",
    "Refusal",
    "RequestChange",
    "Text",
    "Thinking",
    "TokenUsage",
    "Tool",
    "ToolCallPart",
    "ToolResultPart",
    "Undo",
    "ask_otherwise",
    "derive_tool_results",
    "pair_tool_results",
    "read_conversation",
    "read_neutral_request",
    "read_neutral_response",
    "read_parts",
    "read_request",
    "read_response",
    "read_stream",
    "recognise",
    "request_fields",
    "response_fields",
    "undo_changes",
    "write_stream",
]
