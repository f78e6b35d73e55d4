"""The gateway beside the direct way: the same program asks the same model on loopback, recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
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


def figures() -> Iterator[Figure]:
    """One round trip, when a stream begins, and many streams at once."""
    took = _measured()
    yield Figure("round trip through the gateway", took["through_s"], "direct", took["direct_s"], Over(3e-3))
    yield Figure(
        "first byte of a stream", took["first_byte_s"], "its last byte", took["whole_s"], TimesAsLong(0.5)
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
    try:
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, "-m", "reenact", "record", "-o", f"{folder}/run", "--"]
            done = subprocess.run(
                [*words, sys.executable, "-I", str(CLIENT), base_url],
                env={**os.environ, "ANTHROPIC_BASE_URL": base_url},
                capture_output=True,
                check=True,
            )
    finally:
        provider.communicate()
    took: dict[str, Any] = json.loads(done.stdout)
    return took
