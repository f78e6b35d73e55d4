"""A capture that was changed in any way is found out before the agent runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import reenact
from reenact.canonical import digest_of_bytes, encode
from reenact.errors import DigestMismatch, FormatError, StoreError, UnknownVersion
from reenact.formats.capture import manifest_codec, read_manifest, write_manifest


@reenact.tool
def read(name: str) -> dict[str, str]:
    return {"name": name, "text": name * 300}


def record(path: Path, *names: str) -> Path:
    with reenact.capture(path, blob_threshold_bytes=200):
        for name in names or ("a",):
            read(name)
    return path


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One small capture with every kind of file: manifest, log and a blob."""
    return record(tmp_path_factory.mktemp("captures") / "run")


def opens(path: Path) -> None:
    """Open for replay; the agent must not start where that fails."""
    reenact.replay(path)


def files_of(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file())


def test_the_capture_under_test_has_every_kind_of_file(original: Path):
    """And it is sound as it is."""
    assert [file.parent.name if "blobs" in file.parts else file.name for file in files_of(original)][1:] == [
        "events.jsonl",
        "manifest.json",
        "transcript.md",
    ]
    opens(original)


def says_the_same(before: bytes, after: bytes) -> bool:
    """Whether two manifests differ in white space alone, or in the name of the one's own digest."""
    old, new = json.loads(before), json.loads(after)
    own = old["integrity"].pop("manifestHash")
    new["integrity"] = {name: value for name, value in new["integrity"].items() if value != own}
    return bool(old == new)


def accepted(path: Path, file: Path, changed: Iterable[bytes]) -> list[bytes]:
    """Those contents of *file* with which the capture still opens."""
    found = []
    for content in changed:
        file.write_bytes(content)
        try:
            opens(path)
        except (FormatError, StoreError):
            continue
        found.append(content)
    return found


@pytest.fixture(params=["events.jsonl", "manifest.json", "blob"])
def victim(request: pytest.FixtureRequest, original: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the capture, and one of its files."""
    path = tmp_path / "run"
    shutil.copytree(original, path)
    return path, _blob(path) if request.param == "blob" else path / request.param


def test_every_flipped_byte_is_found(victim: tuple[Path, Path]):
    """Each byte of each file in turn; what is not refused is proven to say the same."""
    path, file = victim
    before = file.read_bytes()
    is_manifest = file.name == "manifest.json"
    found = accepted(
        path,
        file,
        (
            before[:place] + bytes([before[place] ^ flip]) + before[place + 1 :]
            for place in range(len(before))
            for flip in ((0x01, 0x20, 0x80) if is_manifest else (1 << place % 8,))
        ),
    )
    # Of a manifest: its last line end, and the letters of the one name "manifestHash".
    assert all(says_the_same(before, after) for after in found)
    assert len(found) <= (2 * len("manifestHash") + 2 if is_manifest else 0)


def test_every_truncation_is_found(victim: tuple[Path, Path]):
    """Down to the empty file; only a manifest can do without its last line end."""
    path, file = victim
    before = file.read_bytes()
    found = accepted(path, file, (before[:length] for length in range(len(before))))
    assert found == ([before[:-1]] if file.name == "manifest.json" else [])


def sealed_again(path: Path, **changes: Any) -> None:
    """The manifest of a forger who knows the format: count and hashes fit what is there now."""
    manifest = json.loads((path / "manifest.json").read_bytes())
    log = (path / "events.jsonl").read_bytes()
    manifest["integrity"] = {"algorithm": "sha256", "eventsHash": digest_of_bytes(log)}
    manifest |= {"eventCount": log.count(b"\n")} | changes
    (path / "manifest.json").write_bytes(write_manifest(manifest_codec.from_json(manifest)))


def edit_line(path: Path, number: int, **changes: Any) -> None:
    lines = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    event = json.loads(lines[number - 1]) | changes
    lines[number - 1] = encode(event) + b"\n"
    (path / "events.jsonl").write_bytes(b"".join(lines))


def _append_other_run(path: Path) -> None:
    other = record(path.parent / "other")
    with (path / "events.jsonl").open("ab") as stream:
        stream.write((other / "events.jsonl").read_bytes())


def _append_and_seal(path: Path) -> None:
    _append_other_run(path)
    sealed_again(path)


def _swap_lines(path: Path) -> None:
    lines = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    lines[1], lines[2] = lines[2], lines[1]
    (path / "events.jsonl").write_bytes(b"".join(lines))


def _swap_and_seal(path: Path) -> None:
    _swap_lines(path)
    sealed_again(path)


def _drop_line_and_seal(path: Path) -> None:
    lines = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    (path / "events.jsonl").write_bytes(b"".join(lines[:2] + lines[3:]))
    sealed_again(path)


def _unknown_type_and_seal(path: Path) -> None:
    edit_line(path, 2, type="tool_call", data={"tool": "read"})
    edit_line(path, 1, version="1")
    sealed_again(path)


def _newer_event_and_seal(path: Path) -> None:
    edit_line(path, 2, version=2)
    sealed_again(path)


def _newer_manifest(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_bytes())
    (path / "manifest.json").write_bytes(encode(manifest | {"version": 2}))


def _other_manifest(path: Path) -> None:
    shutil.copy(record(path.parent / "other") / "manifest.json", path / "manifest.json")


def _wrong_count(path: Path) -> None:
    manifest = read_manifest((path / "manifest.json").read_bytes(), file="m")
    value = manifest_codec.to_json(manifest) | {"eventCount": 3}
    (path / "manifest.json").write_bytes(write_manifest(manifest_codec.from_json(value)))


def _blob(path: Path) -> Path:
    return next(file for file in files_of(path) if "blobs" in file.parts)


def _swap_blobs(path: Path) -> None:
    first, second = [file for file in files_of(path) if "blobs" in file.parts][:2]
    kept = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(kept)


def _log_elsewhere(path: Path) -> None:
    (path / "events.jsonl").rename(path.parent / "events.jsonl")
    manifest = read_manifest((path / "manifest.json").read_bytes(), file="manifest.json")
    moved = msgspec.structs.replace(manifest, eventLogPath="../events.jsonl")
    (path / "manifest.json").write_bytes(write_manifest(moved))


Damage = Callable[[Path], Any]
DAMAGES: dict[str, tuple[Damage, type[Exception], str]] = {
    "no manifest": (
        lambda path: (path / "manifest.json").unlink(),
        StoreError,
        r"run: there is no manifest\.json",
    ),
    "no log": (
        lambda path: (path / "events.jsonl").unlink(),
        StoreError,
        r"events\.jsonl: is missing; the capture",
    ),
    "no blob": (
        lambda path: _blob(path).unlink(),
        StoreError,
        "is missing; the capture is incomplete, copy it",
    ),
    "no blobs": (
        lambda path: shutil.rmtree(path / "blobs"),
        StoreError,
        "is missing; the capture is incomplete",
    ),
    "swapped blobs": (
        _swap_blobs,
        DigestMismatch,
        "the bytes have the digest sha256:.*; copy the blob again",
    ),
    "swapped lines": (
        _swap_lines,
        DigestMismatch,
        r"events\.jsonl: the events are not those that were recorded",
    ),
    "swapped lines, sealed": (
        _swap_and_seal,
        FormatError,
        r"events\.jsonl:2: \$\.seq: .* expected 2, found 3",
    ),
    "a line dropped, sealed": (_drop_line_and_seal, FormatError, r"jsonl:3: \$\.seq: .* expected 3, found 4"),
    "events of another run": (
        _append_other_run,
        DigestMismatch,
        "the events are not those that were recorded",
    ),
    "another run, sealed": (
        _append_and_seal,
        FormatError,
        r"jsonl:7: \$\.runId: the event belongs elsewhere",
    ),
    "manifest of another run": (
        _other_manifest,
        DigestMismatch,
        "the events are not those that were recorded",
    ),
    "wrong count": (_wrong_count, FormatError, "the manifest counts 3 events, the log has 6"),
    "not an event, sealed": (
        _unknown_type_and_seal,
        FormatError,
        r"jsonl:1: \$\.version: version must be an int",
    ),
    "newer manifest": (
        _newer_manifest,
        UnknownVersion,
        r"manifest\.json: \$\.version: .* install a newer reenact",
    ),
    "newer event, sealed": (
        _newer_event_and_seal,
        UnknownVersion,
        r"jsonl:2: \$\.version: .* install a newer",
    ),
    "log outside": (
        _log_elsewhere,
        StoreError,
        "is not a plain relative path; only files inside may be named",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_capture_fails_before_the_agent_runs(tmp_path: Path, name: str):
    """With the exact place and reason."""
    damage, kind, reason = DAMAGES[name]
    path = record(tmp_path / "run", "a", "b")
    damage(path)
    started = []
    with pytest.raises(kind, match=reason), reenact.replay(path):
        started.append(True)
    assert not started


def test_a_missing_capture_is_named(tmp_path: Path):
    """The place is in the message."""
    with pytest.raises(StoreError, match=r"nowhere: No such file or directory; name a capture directory"):
        opens(tmp_path / "nowhere")


def test_a_file_beside_the_capture_does_no_harm(tmp_path: Path):
    """Notes of a person are not part of it."""
    path = record(tmp_path / "run")
    (path / "NOTES.md").write_text("the run of last night")
    with reenact.replay(path):
        read("a")
