"""The gateway beside the direct way: the same program asks the same model on loopback, recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from socket import create_server
from threading import Thread
from time import time
from typing import Any

from bench.figure import Figure, Over, TimesAsLong

CLIENT = Path(__file__).with_name("gateway_client.py")
STREAMS = 200

_PROVIDER = """\
import sys
from reenact.testing import Reply, ScriptedProvider
slow = Reply(" ".join("word" for _ in range(20)), chunk_delay_ms=20)
with ScriptedProvider(lambda asked: slow if asked.user_text == "slowly" else Reply("At once.")) as provider:
    print(provider.base_url("anthropic"), flush=True)
    sys.stdin.read()
"""
"""In a process of its own, as providers are."""


class Listener(Thread):
    """An upstream that notes when the first bytes of a request's body came, and the last."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._server = create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"

    def run(self) -> None:
        sock, _ = self._server.accept()
        came = b""
        with self._server, sock:
            while b"word" not in came:
                came += sock.recv(1 << 16)
            self.first_s = time()
            while not came.endswith(b"\r\n0\r\n\r\n"):
                came += sock.recv(1 << 16)
            self.last_s = time()
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def figures() -> Iterator[Figure]:
    """One round trip, when a stream begins either way, and many streams at once."""
    took = _measured()
    yield Figure("round trip through the gateway", took["through_s"], "direct", took["direct_s"], Over(3e-3))
    yield Figure(
        "first byte of a stream", took["first_byte_s"], "its last byte", took["whole_s"], TimesAsLong(0.5)
    )
    yield Figure(
        "first byte of a request", took["first_up_s"], "its last byte", took["last_up_s"], TimesAsLong(0.5)
    )
    yield Figure(
        f"{STREAMS} streams at once", took["through_all_s"], "direct", took["direct_all_s"], TimesAsLong(5)
    )


def _measured() -> dict[str, Any]:
    provider = subprocess.Popen(
        [sys.executable, "-c", _PROVIDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert provider.stdout is not None
    base_url = provider.stdout.readline().strip()
    listener = Listener()
    listener.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, "-m", "reenact", "record", "-o", f"{folder}/run"]
            words += ["--upstream", f"listener={listener.url}", "--"]
            done = subprocess.run(
                [*words, sys.executable, "-I", str(CLIENT), base_url],
                env={**os.environ, "ANTHROPIC_BASE_URL": base_url},
                capture_output=True,
                check=True,
            )
    finally:
        provider.communicate()
    took: dict[str, Any] = json.loads(done.stdout)
    started_s = took["upload_started_s"]
    return took | {"first_up_s": listener.first_s - started_s, "last_up_s": listener.last_s - started_s}
