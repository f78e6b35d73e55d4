"""Two hundred secrets, and an agent that leaves them wherever a payload can have one."""

from __future__ import annotations

import json
import random
import string
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

import reenact
from reenact.boundary import Call, Instant, crossing
from reenact.seams.chance import instant
from tests.redaction.redaction_cases import SHAPES

COUNT = 200
_ALIKE = {
    character: group
    for group in (string.ascii_lowercase, string.ascii_uppercase, string.digits)
    for character in group
}


def shaped_secrets() -> list[str]:
    """Secrets that are known by their shape: every shape, with its random part drawn anew."""
    rng = random.Random(7)
    shapes = [secret for name, (secret, _) in SHAPES.items() if name != "jwt"]
    return [_redrawn(shapes[number % len(shapes)], rng) for number in range(COUNT)]


def _redrawn(secret: str, rng: random.Random) -> str:
    """*secret* with its last characters drawn anew, each from its own kind."""
    keep = len(secret) - 12
    if secret.startswith("-----"):
        return secret.replace("q83", "".join(rng.choices(string.ascii_letters, k=24)))
    return secret[:keep] + "".join(
        rng.choice(_ALIKE[character]) if character in _ALIKE else character for character in secret[keep:]
    )


def odd_secrets() -> list[str]:
    """Secrets without any shape, to be registered: spaces, quotes, escapes, other alphabets."""
    rng = random.Random(8)
    alphabets = [
        string.ascii_lowercase,
        string.ascii_letters + string.digits,
        string.ascii_letters + "+/=",
        string.ascii_letters + " '\"",
        string.ascii_letters + "\\\n\t",
        string.ascii_letters + "äöüßé漢字",
        string.ascii_letters + "<>&%",
        string.digits,
    ]
    return ["".join(rng.choices(alphabets[n % len(alphabets)], k=14)) + f"x{n}" for n in range(COUNT)]


def forms(secret: str) -> dict[str, bytes]:
    """How a secret may look in a file; worked out here, not by the code under test."""
    data = secret.encode()
    found = {
        "raw": data,
        "hex": data.hex().encode(),
        "HEX": data.hex().upper().encode(),
        "url": quote(secret, safe="").encode(),
        "form": quote_plus(secret).encode(),
        "json": json.dumps(secret, ensure_ascii=False)[1:-1].encode(),
        "json ascii": json.dumps(secret)[1:-1].encode(),
        "json in json": json.dumps(json.dumps(secret, ensure_ascii=False), ensure_ascii=False)[3:-3].encode(),
    }
    for before in range(3):
        padded = b"\0" * before + data
        whole = len(padded) // 3 * 3
        for name, encode in (("base64", b64encode), ("base64 url", urlsafe_b64encode)):
            # Without the characters that depend on what stands around the secret.
            found[f"{name} +{before}"] = encode(padded[:whole])[4 if before else 0 :]
    return found


def leaks(text: bytes, secrets: list[str]) -> list[tuple[str, str]]:
    """Which secrets *text* holds, and in which form."""
    return [(secret, name) for secret in secrets for name, form in forms(secret).items() if form in text]


# Places


@dataclass
class Account:
    owner: str
    note: str


class Refused(Exception):
    def __init__(self, message: str, *, answer: Any) -> None:
        super().__init__(message, {"answer": answer})
        self.answer = answer


@reenact.tool
def echo(value: Any) -> Any:
    return value


@reenact.tool
def produce(value: Any, *, number: int) -> Any:
    return HIDDEN[number](value)


@reenact.tool
def fail(number: int) -> None:
    raise Refused(f"refused: {SECRETS[number]}", answer={"key": SECRETS[number]})


@reenact.tool
def stream(number: int, kind: str) -> Iterator[Any]:
    secret = f"here it is: {SECRETS[number]} and more"
    for start in range(0, len(secret), 5):
        piece = secret[start : start + 5]
        yield {"str": piece, "bytes": piece.encode(), "delta": {"type": "delta", "delta": piece}}[kind]


SECRETS: list[str] = []
"""What a tool finds inside, without having been asked with it."""
HIDDEN: dict[int, Callable[[Any], Any]] = {
    0: lambda number: f"the key is {SECRETS[number]}",
    1: lambda number: {"deep": [{"er": ({SECRETS[number]}, SECRETS[number])}]},
    2: lambda number: SECRETS[number].encode(),
    3: lambda number: Account("bob", SECRETS[number]),
    4: lambda number: {SECRETS[number]: 1},
    5: lambda number: b64encode(f"user:{SECRETS[number]}".encode()).decode(),
    6: lambda number: f"https://host/path?x={quote(SECRETS[number], safe='')}",
    7: lambda number: "filler " * 5000 + SECRETS[number],
}


def _tool(run: reenact.Run, number: int) -> None:
    echo(SECRETS[number])


def _nested_json(run: reenact.Run, number: int) -> None:
    echo({"arguments": json.dumps({"body": json.dumps({"value": SECRETS[number]})})})


def _results(run: reenact.Run, number: int) -> None:
    for kind in HIDDEN:
        produce(number, number=kind)


def _error(run: reenact.Run, number: int) -> None:
    with pytest.raises(Refused):
        fail(number)


def _stream(run: reenact.Run, number: int) -> None:
    for kind in ("str", "bytes", "delta"):
        list(stream(number, kind))


def _memory(run: reenact.Run, number: int) -> None:
    run.memory_write(f"notes/{SECRETS[number]}", {"note": SECRETS[number]}, source=SECRETS[number])
    run.memory_read("notes", lambda: [SECRETS[number]])
    run.state_mutation("env_read", entry=SECRETS[number])


def _chance(run: reenact.Run, number: int) -> None:
    outside = Instant("nondeterministic", {"source": "network", "key": f"GET {SECRETS[number]}"})
    instant(outside, lambda: {"answer": SECRETS[number]})


def _model(run: reenact.Run, number: int) -> None:
    facts = {"provider": "p", "model": SECRETS[number], "headers": [["x", SECRETS[number]]]}
    request = {"messages": [{"role": "user", "content": f"use {SECRETS[number]}"}] * 3}
    with crossing(Call("llm", "POST", request, facts)) as step:
        if step.live:
            step.answer = {"text": f"I will use {SECRETS[number]}"}
            step.facts = {"stopReason": SECRETS[number], "usage": None}


def _network(run: reenact.Run, number: int) -> None:
    secret = SECRETS[number]
    call = Call(
        "network", f"GET https://host/{quote(secret)}?q={quote_plus(secret)}", {"body": secret}, {"h": secret}
    )
    with crossing(call) as step:
        if step.live:
            step.answer = {"body": f"echo {secret}"}
            step.facts = {"trailer": secret}


PLACES: list[Callable[[reenact.Run, int], None]] = [
    _tool,
    _nested_json,
    _results,
    _error,
    _stream,
    _memory,
    _chance,
    _model,
    _network,
]


def agent(run: reenact.Run) -> None:
    """Leaves every secret in some place, and every place with every kind of secret in the end."""
    for number in range(len(SECRETS)):
        PLACES[(number + number // len(PLACES)) % len(PLACES)](run, number)
    run.final_output = {"said": SECRETS[0], "all": SECRETS[1:5]}
