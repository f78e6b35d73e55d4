"""Secrets never reach the disk, the log or the terminal, wherever the agent leaves them."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import reenact
from reenact.formats.capture import RedactionProfile
from reenact.store import durable, journal
from reenact.store.reader import CaptureReader
from reenact.values.codec import from_json
from tests.recorder import secrets_planted
from tests.recorder.recording import events_in, recorded_by
from tests.recorder.secrets_planted import agent, echo, leaks, odd_secrets, shaped_secrets


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """Every byte that goes to a file of the capture, temporary ones included."""
    seen = io.BytesIO()
    write = os.write

    def spy(fd: int, data: Any) -> int:
        seen.write(bytes(data))
        return write(fd, data)

    monkeypatch.setattr(journal, "_write", spy)
    monkeypatch.setattr(durable.os, "write", spy)
    return seen


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """All that reenact logs."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    logging.getLogger("reenact").addHandler(handler)
    yield text
    logging.getLogger("reenact").removeHandler(handler)


@contextmanager
def planted(secrets: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(secrets_planted, "SECRETS", secrets)
    monkeypatch.setattr(sys, "orig_argv", ["agent.py", "--mode", "fast", *secrets[:30], f"--x={secrets[30]}"])
    yield


def joined_streams(run: Path) -> bytes:
    """What the pieces of every stream say together."""
    reader = CaptureReader(run)
    texts = []
    for event in reader.events():
        for piece in from_json(
            reader.resolve(
                event.data.pieces if isinstance(getattr(event.data, "pieces", None), list | dict) else []
            )
        ):
            text = piece["delta"] if isinstance(piece, dict) else piece
            texts.append(text if isinstance(text, bytes) else text.encode())
    return b"".join(texts)


def everything_in(folder: Path) -> bytes:
    """Names and contents of all files."""
    parts = []
    for path in sorted(folder.rglob("*")):
        parts.append(str(path.relative_to(folder)).encode())
        if path.is_file():
            parts.append(path.read_bytes())
    return b"\n".join(parts)


@pytest.mark.parametrize("profile", ["default", "strict"])
def test_known_shapes_never_reach_the_disk(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    written: io.BytesIO,
    logged: io.StringIO,
    capfd: pytest.CaptureFixture[str],
    profile: RedactionProfile,
):
    """200 secrets in every place: no byte of the capture, its log or the terminal has one in any form."""
    secrets = shaped_secrets()
    assert len(set(secrets)) == 200
    with planted(secrets, monkeypatch):
        with reenact.capture(tmp_path / "run", redact=profile, blob_threshold_bytes=300) as run:
            agent(run)
        assert run.warnings == []
        assert len(events_in(tmp_path / "run")) > 600
        assert leaks(everything_in(tmp_path) + joined_streams(tmp_path / "run"), secrets) == []
        assert leaks(written.getvalue(), secrets) == []
        with reenact.replay(tmp_path / "run", receipt=tmp_path / "receipt.json") as run:
            agent(run)
    assert run.divergences == []
    printed = capfd.readouterr()
    said = logged.getvalue() + printed.out + printed.err
    assert leaks(everything_in(tmp_path) + said.encode(), secrets) == []


def test_without_redaction_every_secret_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The search that finds nothing in the tests around would find each of them."""
    secrets = shaped_secrets()
    with planted(secrets, monkeypatch), reenact.capture(tmp_path / "run", redact="none") as run:
        agent(run)
    found = leaks(everything_in(tmp_path) + joined_streams(tmp_path / "run"), secrets)
    assert {secret for secret, _ in found} == set(secrets)


def test_registered_secrets_never_reach_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: io.BytesIO, logged: io.StringIO
):
    """Without any rule, values that were registered vanish in every form: quotes, other alphabets, digits."""
    secrets = odd_secrets()
    with planted(secrets, monkeypatch):
        with recorded_by(tmp_path / "run", profile="none", secrets=secrets, threshold_bytes=300) as context:
            run = reenact.Run()
            agent(run)
            for secret in secrets:
                echo([secret.encode().hex(), {"nested": f'{{"a": "{secret.encode().hex().upper()}"}}'}])
        assert context.warnings == []
        said = written.getvalue() + logged.getvalue().encode()
        assert leaks(everything_in(tmp_path) + joined_streams(tmp_path / "run") + said, secrets) == []
        with reenact.replay(tmp_path / "run", redact=secrets) as run:
            agent(run)
            for secret in secrets:
                echo([secret.encode().hex(), {"nested": f'{{"a": "{secret.encode().hex().upper()}"}}'}])
    assert run.divergences == []


NAMED = {
    "member": lambda secret: echo({"password": secret, "user": "bob"}),
    "header": lambda secret: echo({"headers": {"Authorization": f"Bearer {secret}", "X-Api-Key": secret}}),
    "header list": lambda secret: echo([{"name": "X-Api-Key", "value": secret}]),
    "assignment": lambda secret: echo(f"export DB_PASSWORD={secret}"),
    "form": lambda secret: echo(f"user=bob&password={secret}&x=1"),
    "url": lambda secret: echo(f"postgres://bob:{secret}@db/x"),
    "nested text": lambda secret: echo('{"config": "{\\"api_key\\": \\"' + secret + '\\"}"}'),
    "dataclass": lambda secret: echo(Credentials("bob", secret)),
    "bytes": lambda secret: echo({"api_key": secret.encode()}),
    "path": lambda secret: echo({"api_key": Path(secret)}),
    "beside a dollar": lambda secret: echo({"$set": 1, "password": secret}),
    "beside a number": lambda secret: echo({1: 1, "password": secret}),
}


class Credentials(msgspec.Struct):
    user: str
    password: str


@pytest.mark.parametrize("place", NAMED)
def test_a_name_gives_a_secret_away(tmp_path: Path, place: str):
    """What stands under such a name is a secret, however it looks; it replays."""
    secret = "correct7horse"
    with reenact.capture(tmp_path / "run", redact="default"):
        NAMED[place](secret)
    assert leaks(everything_in(tmp_path), [secret]) == []
    with reenact.replay(tmp_path / "run"):
        NAMED[place](secret)


def test_arguments_of_the_program_are_redacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Also a value that only the option before it gives away."""
    argv = [
        "agent.py",
        "--api-key",
        "letmein",
        "--password=hunter2",
        "-v",
        "--token-file",
        "t.txt",
        "--token",
        "-q",
        "ask",
    ]
    monkeypatch.setattr(sys, "orig_argv", argv)
    with reenact.capture(tmp_path / "run", redact="default"):
        pass
    written = CaptureReader(tmp_path / "run").event(1).data.argv
    assert written[2].startswith("<secret:")
    assert written[3].startswith("--password=<secret:")
    assert [*written[:2], *written[4:]] == [*argv[:2], *argv[4:]]


def test_errors_of_the_agent_and_of_the_sink_are_redacted(
    tmp_path: Path, logged: io.StringIO, capfd: pytest.CaptureFixture[str]
):
    """Run end, manifest, warnings, listener and log."""
    secrets = shaped_secrets()[:2]
    heard: list[str] = []

    class Failing:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def append(self, event: bytes) -> object:
            raise OSError(f"cannot store with {secrets[0]}")

    with pytest.raises(ValueError, match="agent"):  # noqa: SIM117 — the capture is to end first
        with recorded_by(tmp_path / "a", wrap=Failing, on_warning=heard.append):
            echo(1)
            raise ValueError(f"agent used {secrets[1]}")
    with pytest.raises(ValueError, match="agent"), reenact.capture(tmp_path / "b"):
        raise ValueError(f"agent used {secrets[1]}")
    assert heard
    assert "<secret:" in heard[0]
    assert "<secret:" in str(CaptureReader(tmp_path / "b").manifest.error)
    said = everything_in(tmp_path) + "".join(heard).encode() + logged.getvalue().encode()
    assert leaks(said + capfd.readouterr().err.encode(), secrets) == []


def test_divergences_and_receipts_are_redacted(tmp_path: Path, logged: io.StringIO):
    """What was expected, what was observed, in every rendering, and in the exception."""
    secrets = shaped_secrets()[:4]

    def run_agent(key: str, final: str) -> reenact.Run:
        with reenact.replay(tmp_path / "run", policy="lenient", receipt=tmp_path / "receipt.json") as run:
            echo({"key": key, "number": 2})
            run.state_mutation("env_read", name=f"is {key}")
            run.final_output = final
        return run

    with reenact.capture(tmp_path / "run", redact="default") as run:
        echo({"key": secrets[0], "number": 1})
        run.state_mutation("env_read", name=f"was {secrets[1]}")
        run.final_output = f"done with {secrets[2]}"
    run = run_agent(secrets[3], f"done with {secrets[3]}")
    assert len(run.divergences) == 3
    told = "".join(one.explain() + one.headline + str(one.to_json()) for one in run.divergences)
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(tmp_path / "run"):
        echo({"key": secrets[3], "number": 1})
    told += f"{caught.value}{caught.value.divergence}{logged.getvalue()}"
    assert "<secret:" in told
    assert leaks(told.encode() + everything_in(tmp_path), secrets) == []


def test_equal_secrets_stay_equal_and_different_ones_different(tmp_path: Path):
    """A replay with another key is another run."""
    first, second = shaped_secrets()[:2]
    with reenact.capture(tmp_path / "run", redact="default"):
        echo({"key": first, "again": first})
    call = CaptureReader(tmp_path / "run").event(2).data.args["value"]
    assert call["key"] == call["again"]
    with reenact.replay(tmp_path / "run"):
        echo({"key": first, "again": first})
    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run"):
        echo({"key": second, "again": second})


def test_a_blob_is_redacted_before_it_is_written(tmp_path: Path):
    """Large payloads take another way to the disk, behind the same redaction."""
    secrets = shaped_secrets()
    with reenact.capture(tmp_path / "run", redact="default", blob_threshold_bytes=0):
        echo(["x" * 50_000, *secrets])
    blobs = [path for path in (tmp_path / "run" / "blobs").rglob("*") if path.is_file()]
    assert len(blobs) == 2
    assert leaks(everything_in(tmp_path), secrets) == []
    assert all(blob.read_bytes().count(b"<secret:") >= 150 for blob in blobs)


def test_a_class_in_a_module_named_after_secrets_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``app.tokens:Session`` says what an object is; it is no token and its value."""
    module = ModuleType("access_token")
    monkeypatch.setitem(sys.modules, "access_token", module)
    exec("import dataclasses\n@dataclasses.dataclass\nclass Session:\n    owner: str\n", vars(module))
    login = reenact.tool(lambda owner: module.Session(owner), name="login")
    with reenact.capture(tmp_path / "run"):
        login("bob")
    with reenact.replay(tmp_path / "run"):
        assert login("bob") == module.Session("bob")
