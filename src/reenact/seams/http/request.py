"""A request as the call it is: to a model where a provider's wire format is recognised, else to the network."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlsplit

from reenact.boundary import Call
from reenact.providers import read_request, recognise, request_fields
from reenact.seams.http import headers as header_values
from reenact.seams.http.body import meaning
from reenact.seams.http.headers import Pairs, value_of


class Sent(NamedTuple):
    """What goes out."""

    method: str
    url: str
    headers: Pairs
    body: bytes

    @property
    def is_upgrade(self) -> bool:
        """Whether it asks to leave HTTP, as a WebSocket does; no single answer could stand for that."""
        return bool(value_of(self.headers, "upgrade")) or self.method == "CONNECT"


def call_of(sent: Sent) -> Call:
    """The call that *sent* is; headers are recorded, never matched."""
    says = meaning(
        value_of(sent.headers, "content-type"), value_of(sent.headers, "content-encoding"), sent.body
    )
    request = {"method": sent.method, "url": sent.url, **says}
    model_fields = _model_fields(sent, says.get("body"))
    return Call(
        kind="network" if model_fields is None else "llm",
        name=f"{sent.method} {sent.url}",
        request=request,
        facts={**(model_fields or {}), "headers": header_values.to_json(sent.headers)},
    )


def _model_fields(sent: Sent, body: Any) -> dict[str, Any] | None:
    """What an ``llm_request`` says of its call; ``None`` for other calls."""
    path = urlsplit(sent.url).path
    if not isinstance(body, dict) or recognise(sent.method, path, body) is None:
        return None
    asked = read_request(path, body)
    if asked is None:
        return None
    fields = request_fields(asked)
    return fields if asked.model is not None else fields | {"model": ""}
