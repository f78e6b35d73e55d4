"""Turns a request into a call: of a model if a provider's wire format is recognised, else of the network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from reenact.boundary import Call, OtherCall, current_lane
from reenact.canonical import digest_of_bytes
from reenact.errors import FormatError
from reenact.process_state import left_to_gateway
from reenact.providers import Provider, RequestChange, Undo, ask_otherwise, recognise, request_fields
from reenact.providers.answers import empty_answer
from reenact.seams.http.message import ABOUT_THE_BODY, Pairs, header_value, meaning
from reenact.seams.serving import is_served_here
from reenact.seams.telemetry import traffic_beside

_OK: Final = {"httpVersion": "HTTP/1.1", "reason": "OK", "status": 200}
_NO_CONTENT: Final = {"httpVersion": "HTTP/1.1", "reason": "No Content", "status": 204}


def leave_to_gateway(address: str) -> None:
    """Leave calls to *address* unrecorded here: it is a gateway, which records them itself.

    A program may have read the address from a file.
    """
    left_to_gateway.append(f"{address}/")


class Sent(NamedTuple):
    """A request as the client sends it."""

    method: str
    url: str
    headers: Pairs
    body: bytes


class RequestMeaning(NamedTuple):
    """A request and what it means."""

    sent: Sent
    headers: dict[str, str]
    """By name in lower case; the values of a repeated header are joined."""
    says: dict[str, Any]
    provider: Provider | None
    """The provider whose wire format it uses; ``None`` if it asks no model."""

    @classmethod
    def of_sent(cls, sent: Sent) -> RequestMeaning:
        headers: dict[str, str] = {}
        for name, value in sent.headers:
            headers[name.lower()] = value
        if len(headers) < len(sent.headers):
            headers = {name: header_value(sent.headers, name) for name in headers}
        says = meaning(headers.get("content-type", ""), headers.get("content-encoding", ""), sent.body)
        return cls(sent, headers, says, recognise(sent.method, urlsplit(sent.url).path, says.get("body")))

    @property
    def is_left_alone(self) -> bool:
        """Whether not to record it here: another place does, or it switches to another protocol.

        After an upgrade, as of a WebSocket, one recorded answer could not replace the connection.
        """
        is_upgrade = "upgrade" in self.headers or self.sent.method == "CONNECT"
        if is_upgrade or self.sent.url.startswith(tuple(left_to_gateway)):
            return True
        # A model call is recorded even if the model's server runs in this process.
        return self.provider is None and self._is_to_own_server()

    def _is_to_own_server(self) -> bool:
        if not is_served_here(*_host_and_port(self.sent.url)):
            return False
        lane = current_lane()
        return lane is not None and lane.context.leaves_to_server(f"{self.sent.method} {self.sent.url}")

    def with_change(self, change: RequestChange) -> tuple[RequestMeaning, list[Undo]] | None:
        """The request with *change* applied, and how to undo that; ``None`` if nothing changes."""
        if self.provider is None:
            return None
        other = ask_otherwise(self.provider, self.sent.url, self.says["body"], change)
        if not other.undo:
            return None
        body = json.dumps(other.body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        kept = [pair for pair in self.sent.headers if pair[0].lower() not in ABOUT_THE_BODY]
        sent = Sent(self.sent.method, other.url, [*kept, ("content-length", str(len(body)))], body)
        return RequestMeaning.of_sent(sent), other.undo

    def call(
        self,
        *,
        may_leave_first: Callable[[], bool] | None,
        is_elsewhere: bool = False,
        ask_otherwise: Callable[[RequestChange], OtherCall[dict[str, object]] | None] | None = None,
    ) -> Call[dict[str, object]]:
        """The call; its headers are recorded, but not matched. *is_elsewhere*: another program asks."""
        beside = None
        if self.provider is None:
            method, url, body = self.sent.method, self.sent.url, self.says.get("body")
            beside = traffic_beside(method, url, self.headers, body, is_elsewhere=is_elsewhere)
        return Call(
            kind="network" if self.provider is None else "llm",
            name=f"{self.sent.method} {self.sent.url}",
            request={"method": self.sent.method, "url": self.sent.url, **self.says},
            facts=self.facts,
            headers=self.headers,
            is_json=True,
            beside=beside.what if beside else "",
            is_background=beside is not None and beside.is_background,
            empty=self.empty_answer,
            ask_otherwise=ask_otherwise if self.provider is not None else None,
            may_leave_first=may_leave_first if self.provider is not None else None,
        )

    def empty_answer(self) -> dict[str, object] | None:
        """An answer in recorded form in which the model says nothing; no content if no model is asked."""
        if self.provider is None:
            return {"body": "", "bytes": 0, "headers": []} | _NO_CONTENT
        answer = empty_answer(self.provider, self.sent.url, self.says["body"])
        if answer is None:
            return None
        body = answer.body.decode()
        headers = [{"content-type": answer.content_type}, {"content-length": str(len(answer.body))}]
        return {"body": body, "bytes": len(answer.body), "headers": headers} | _OK

    def facts(self) -> dict[str, object]:
        """For a model call, the fields of its ``llm_request`` event."""
        if self.provider is None:
            return {}
        try:
            fields = request_fields(self.provider, urlsplit(self.sent.url).path, self.says["body"])
        except FormatError:
            fields = {"provider": self.provider, "inputHash": digest_of_bytes(self.sent.body)}
        return fields | {"model": fields.get("model") or ""}


def _host_and_port(url: str) -> tuple[str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None, None


def whole_body(body: Any) -> bytes | None:
    """A body of any type that clients accept, as bytes: it must be known before it is sent."""
    if body is None or isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, bytearray | memoryview):
        return bytes(body)
    if hasattr(body, "read"):
        return _bytes(body.read())
    return b"".join(map(_bytes, body)) if isinstance(body, Iterable) else bytes(body)


def _bytes(part: str | bytes) -> bytes:
    return part.encode() if isinstance(part, str) else bytes(part)
