"""Trees of files: each folder is one blob that lists its entries (see docs/formats/workspace.md).

Names and link targets are bytes. UTF-8 is written as text, anything else in hex, so that none changes.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import PurePosixPath
from typing import Final, Literal, TypeAlias

import msgspec

from reenact.canonical import encode_clean, is_digest
from reenact.errors import FormatError, UnknownVersion

VERSION: Final = 1
WORKSPACE: Final = "workspace"
"""The type of a ``state_mutation`` that records a tree."""
WORKSPACE_ROOT: Final = PurePosixPath("{workspace}")
"""The placeholder for the root folder in recorded paths."""
MODE_BITS: Final = 0o777
_MODES: Final = {f"{mode:03o}": mode for mode in range(MODE_BITS + 1)}
_DIGITS: Final = "0123456789abcdef"

EntryKind: TypeAlias = Literal["file", "folder", "link", "left-out"]
Why: TypeAlias = Literal[
    "ignored", "git", "secret", "too-large", "special", "unreadable", "changing", "capture", "too-deep"
]
"""Why a file is left out of a tree."""


class TreeEntry(msgspec.Struct, frozen=True):
    """One entry of a folder."""

    name: bytes
    kind: EntryKind
    mode: int = 0
    """Permission bits of a file or folder."""
    digest: str = ""
    """The blob of a file's content, or of a folder's tree."""
    size_bytes: int = 0
    target: bytes = b""
    is_inside: bool = False
    """Whether *target* is relative to the root of the tree, because the link was absolute and led there."""
    is_hidden: bool = False
    """Whether secrets in the file were replaced by placeholders before it was stored."""
    git: str = ""
    """The git object with the content, if the capture does not store it."""
    why: str = ""
    """Why it is left out."""


Tree: TypeAlias = tuple[TreeEntry, ...]
"""The entries of one folder, in the order of their names' bytes."""


class _EntryRecord(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """The wire form of an entry."""

    kind: EntryKind
    name: str | None = None
    nameHex: str | None = None  # noqa: N815 — the wire's own names
    blob: str | None = None
    bytes: int | None = None
    git: str | None = None
    hidden: bool = False
    inside: bool = False
    mode: str | None = None
    target: str | None = None
    targetHex: str | None = None  # noqa: N815
    tree: str | None = None
    why: str | None = None


class _TreeRecord(msgspec.Struct):
    entries: list[_EntryRecord]
    version: int


class _Version(msgspec.Struct):
    version: int


_decode: Final = msgspec.json.Decoder(_TreeRecord).decode
_decode_version: Final = msgspec.json.Decoder(_Version).decode


def write_entry(entry: TreeEntry) -> bytes:
    """The canonical text of one entry."""
    fields: dict[str, object] = {"kind": entry.kind} | _encode_name("name", entry.name)
    if entry.kind == "file":
        fields |= {"blob": entry.digest, "bytes": entry.size_bytes, "mode": f"{entry.mode:03o}"}
        fields |= {"hidden": True} if entry.is_hidden else {}
        fields |= {"git": entry.git} if entry.git else {}
    elif entry.kind == "folder":
        fields |= {"tree": entry.digest, "mode": f"{entry.mode:03o}"}
    elif entry.kind == "link":
        fields |= _encode_name("target", entry.target) | ({"inside": True} if entry.is_inside else {})
    else:
        fields |= {"why": entry.why} | ({"bytes": entry.size_bytes} if entry.size_bytes else {})
    return encode_clean(fields)


def join_entries(texts: list[bytes]) -> bytes:
    """The text of a tree from the *texts* of its entries, which are sorted by name."""
    return b'{"entries":[%b],"version":%d}' % (b",".join(texts), VERSION)


def read_tree(text: bytes, *, file: str) -> Tree:
    """The entries of a folder; :class:`FormatError` for what no recorder writes, such as the name ``..``."""
    try:
        record = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _refuse_newer(text, file)
        raise FormatError(f"is not a tree of files: {error}; copy the capture again", file=file) from None
    if record.version != VERSION:
        _refuse_newer(text, file)
        raise FormatError(f"version {record.version} of a tree is unknown", file=file, json_path="$.version")
    entries = tuple(
        _read_entry(entry, file, f"$.entries[{number}]") for number, entry in enumerate(record.entries)
    )
    for number, (one, other) in enumerate(pairwise(entries), 1):
        if one.name >= other.name:
            path = f"$.entries[{number}]"
            raise FormatError("the names are not in order, or one is there twice", file=file, json_path=path)
    return entries


def _refuse_newer(text: bytes, file: str) -> None:
    try:
        version = _decode_version(text).version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if version > VERSION:
        reason = f"tree version {version} is newer than {VERSION}; install a newer reenact"
        raise UnknownVersion(reason, file=file)


def _encode_name(name: str, value: bytes) -> dict[str, object]:
    try:
        return {name: value.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}Hex": value.hex()}


def _read_entry(record: _EntryRecord, file: str, path: str) -> TreeEntry:
    name = _read_bytes(record.name, record.nameHex, file, f"{path}.name")
    if name in (b"", b".", b"..") or b"/" in name or b"\0" in name:
        raise FormatError(f"{name!r} is not a file name: refused", file=file, json_path=f"{path}.name")
    match record.kind:
        case "file":
            entry = TreeEntry(
                name,
                "file",
                mode=_read_mode(record.mode, file, path),
                digest=_read_digest(record.blob, file, f"{path}.blob"),
                size_bytes=record.bytes or 0,
                is_hidden=record.hidden,
                git=_read_git(record.git, file, path),
            )
        case "folder":
            mode = _read_mode(record.mode, file, path)
            entry = TreeEntry(
                name, "folder", mode=mode, digest=_read_digest(record.tree, file, f"{path}.tree")
            )
        case "link":
            target = _read_bytes(record.target, record.targetHex, file, f"{path}.target")
            if not target or b"\0" in target or (record.inside and is_leading_out(target)):
                raise FormatError(
                    f"{target!r} is not a link target: refused", file=file, json_path=f"{path}.target"
                )
            entry = TreeEntry(name, "link", target=target, is_inside=record.inside)
        case "left-out":
            entry = TreeEntry(name, "left-out", size_bytes=record.bytes or 0, why=record.why or "")
    if entry.size_bytes < 0:
        raise FormatError("must not be negative", file=file, json_path=f"{path}.bytes")
    return entry


def is_leading_out(target: bytes, depth: int = 0) -> bool:
    """Whether a link with *target*, in a folder at *depth* below the root, may lead out of its tree.

    ``name/..`` counts as leading out, because *name* may be a link to a folder that is less deep.
    """
    if target.startswith(b"/"):
        return True
    is_below = False
    for part in target.split(b"/"):
        if part == b"..":
            depth -= 1
            if is_below or depth < 0:
                return True
        else:
            is_below |= part not in (b"", b".")
    return False


def _read_bytes(text: str | None, in_hex: str | None, file: str, path: str) -> bytes:
    if (text is None) == (in_hex is None):
        raise FormatError("must be given once, as text or in hex", file=file, json_path=path)
    if text is not None:
        return text.encode("utf-8")
    try:
        value = bytes.fromhex(in_hex or "")
        value.decode("utf-8")
    except UnicodeDecodeError:
        return value
    except ValueError:
        raise FormatError("is not hex", file=file, json_path=f"{path}Hex") from None
    raise FormatError("is UTF-8, and must be written as text", file=file, json_path=f"{path}Hex")


def _read_mode(mode: str | None, file: str, path: str) -> int:
    bits = _MODES.get(mode or "")
    if bits is None:
        raise FormatError("must be three octal digits", file=file, json_path=f"{path}.mode")
    return bits


def _read_digest(digest: str | None, file: str, path: str) -> str:
    if digest is None or not is_digest(digest):
        raise FormatError("must be a digest", file=file, json_path=path)
    return digest


def _read_git(git: str | None, file: str, path: str) -> str:
    if git is None:
        return ""
    if len(git) not in (40, 64) or any(digit not in _DIGITS for digit in git):
        raise FormatError("must be the name of an object of git's", file=file, json_path=f"{path}.git")
    return git
