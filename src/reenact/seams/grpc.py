"""gRPC: its C core opens the connections, so no audit event is raised and nothing is recorded.

The seam announces the server that is asked, so that the recording says what a replay will not answer. Servers
that the run itself starts are no part of the outside. Channels of ``grpc.aio`` are announced when they are
made, because their calls do not know the server.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Final

from reenact.boundary import NATIVE_CALL
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch
from reenact.seams.serving import forget_ports, note_port

_CALLS: Final = (
    ("_UnaryUnaryMultiCallable", "_blocking"),
    ("_UnaryUnaryMultiCallable", "future"),
    ("_SingleThreadedUnaryStreamMultiCallable", "__call__"),
    ("_UnaryStreamMultiCallable", "__call__"),
    ("_StreamUnaryMultiCallable", "_blocking"),
    ("_StreamUnaryMultiCallable", "future"),
    ("_StreamStreamMultiCallable", "__call__"),
)


def _announce_call(original: Callable[..., object]) -> Callable[..., object]:
    def call(self: object, *args: object, **options: object) -> object:
        target = getattr(self, "_target", None)  # since 1.60
        if target is not None:
            sys.audit(NATIVE_CALL, "gRPC", target)
        return original(self, *args, **options)

    return call


def _announce_channel(original: Callable[..., None]) -> Callable[..., None]:
    def open_channel(self: object, target: object, *args: object, **options: object) -> None:
        sys.audit(NATIVE_CALL, "gRPC", target)
        original(self, target, *args, **options)

    return open_channel


def _watch_port(original: Callable[..., int]) -> Callable[..., int]:
    def add_port(self: object, *args: object, **options: object) -> int:
        port = original(self, *args, **options)
        note_port(self, port)
        return port

    return add_port


def _watch_stop(original: Callable[..., object]) -> Callable[..., object]:
    def stop(self: object, *args: object, **options: object) -> object:
        forget_ports(self)
        return original(self, *args, **options)

    return stop


def _server_patches(server: type) -> list[Patch]:
    return [
        Patch(server, "add_insecure_port", _watch_port),
        Patch(server, "add_secure_port", _watch_port),
        Patch(server, "stop", _watch_stop),
    ]


def _channels(module: ModuleType) -> list[Patch]:
    return [Patch(getattr(module, owner), name, _announce_call) for owner, name in _CALLS]


LIBRARIES: Final[Libraries] = {
    "grpc._channel": _channels,
    "grpc._server": lambda module: _server_patches(vars(module)["_Server"]),
    "grpc.aio._channel": lambda module: [Patch(module.Channel, "__init__", _announce_channel)],
    "grpc.aio._server": lambda module: _server_patches(module.Server),
}
