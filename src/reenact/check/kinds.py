"""The kind of an artifact, by its first bytes; its size; and the runs in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from reenact.canonical import JsonValue, read_json
from reenact.errors import FormatError, StoreError
from reenact.formats.bundle import ADAPTER
from reenact.formats.dataset import manifest_place
from reenact.formats.lines import LINE_SUFFIXES, MAX_LINE_BYTES
from reenact.store.remote import find_local, is_folder_of_remote_runs, list_remote, remote_name
from reenact.store.rundir import EVENTS, RunDir, refuse_index

ArtifactKind: TypeAlias = Literal[
    "capture",
    "replay log",
    "receipt",
    "replay receipt",
    "bundle",
    "trace",
    "action",
    "record",
    "pack",
    "seal",
    "disclosure",
    "test case",
    "test result",
    "suite summary",
    "shadow report",
    "policy",
    "dataset",
    "events",
]
"""``events`` is the event log of a capture by itself: a run, but not an artifact that can be verified."""

DATASET_SCHEMA: Final = "reenact.dataset.v1"
"""The schema in the provenance of every row of a dataset."""
PARQUET_MAGIC: Final = b"PAR1"
_DATASET_SUFFIXES: Final = (".jsonl", ".parquet")
_YAML_SUFFIXES: Final = (".yaml", ".yml")


MANIFESTS: Final = ("manifest.json", "manifest.open.json")
RUN_FILES: Final = ("REPLAY.jsonl", "replay.json", "trace.json", "events.jsonl")
"""The run files of a directory without a manifest, in order of preference."""
RUN_KINDS: Final = ("events", "replay log", "bundle", "trace")


def size_bytes(path: Path) -> int:
    """The bytes to read for the artifact in *path*; 0 if there is none."""
    if path.is_dir() and not (path / EVENTS).exists():
        return sum(file.stat().st_size for file in dataset_files(path))
    file = path / EVENTS if path.is_dir() else path
    return file.stat().st_size if file.exists() else 0


def dataset_files(path: Path) -> list[Path]:
    """The files of a dataset: *path* itself, or those of a folder with a dataset manifest or dataset rows."""
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix in _DATASET_SUFFIXES and file.is_file())
    is_dataset = manifest_place(path, is_folder=True).is_file() or any(map(_begins_with_row, found))
    return found if is_dataset else []


def _begins_with_row(file: Path) -> bool:
    with file.open("rb") as stream:
        head = stream.readline(MAX_LINE_BYTES + 2)
    return head.startswith(PARQUET_MAGIC) or DATASET_SCHEMA.encode() in head


def kind_of(path: Path, *, takes_events: bool = False) -> ArtifactKind:
    """The kind of the artifact in *path*; :class:`FormatError` if it is not an artifact.

    The first valid line of a file of lines decides; without one the file counts as a damaged log. The event
    log of a capture is accepted only with *takes_events*.
    """
    if path.is_dir():
        return "dataset" if not RunDir(path).is_capture and dataset_files(path) else "capture"
    if manifest_place(path, is_folder=False).is_file():
        return "dataset"
    if path.suffix in _YAML_SUFFIXES:
        from reenact.formats.yaml_text import read_yaml  # PyYAML is slow to import

        document = read_yaml(path.read_bytes(), str(path))
        return _kind(document.value, has_lines=False, file=str(path), takes_events=takes_events)
    with path.open("rb") as stream:
        if not stream.seekable():
            raise StoreError(f"{path}: a pipe can be read only once; write it to a file, and name that")
        head = stream.readline(MAX_LINE_BYTES + 2)
        if head.startswith(PARQUET_MAGIC):
            return "dataset"
        value = _find_value(head)
        has_lines = value is not None and bool(stream.read(1))
        if value is None and path.suffix in LINE_SUFFIXES:
            return "replay log"
        if value is None:
            value = _read_value(head + stream.read(), str(path))
    return _kind(value, has_lines=has_lines, file=str(path), takes_events=takes_events)


def _find_value(text: bytes) -> JsonValue:
    try:
        value: JsonValue = read_json(text, "jcs")
        return value
    except FormatError:
        return None


def _read_value(text: bytes, file: str) -> JsonValue:
    try:
        value: JsonValue = read_json(text, "jcs")
        return value
    except FormatError as error:
        raise error.at(file=file) from None


def _kind(value: JsonValue, *, has_lines: bool, file: str, takes_events: bool) -> ArtifactKind:
    if isinstance(value, list) and value and _is_record(value[0]):
        return "pack"
    if not isinstance(value, dict):
        raise _unknown(file)
    if _is_record(value):
        return "pack" if has_lines else "record"
    if "captureId" in value and "seq" in value:
        if not takes_events:
            raise FormatError("is the event log of a capture; name its directory", file=file)
        return "events"
    if _schema(value).startswith("reenact.dataset-manifest."):
        raise FormatError("is the manifest of a dataset; name the file or the folder of its rows", file=file)
    for kind, is_kind in _SIGNS.items():
        if is_kind(value):
            return kind
    raise _unknown(file)


def _is_record(value: JsonValue) -> bool:
    return isinstance(value, dict) and "vdr_version" in value


def _schema(value: dict[str, JsonValue]) -> str:
    schema = value.get("schema")
    return schema if isinstance(schema, str) else ""


def _provenance(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    provenance = value.get("provenance")
    return provenance if isinstance(provenance, dict) else {}


_SIGNS: Final[Mapping[ArtifactKind, Callable[[dict[str, JsonValue]], bool]]] = {
    "dataset": lambda value: _schema(_provenance(value)).startswith("reenact.dataset."),
    "receipt": lambda value: (
        _schema(value).startswith("openagents.receipt.") or {"session_id", "final_confidence"} <= value.keys()
    ),
    "replay receipt": lambda value: _schema(value).startswith("reenact.replay-receipt."),
    "shadow report": lambda value: _schema(value).startswith("reenact.shadow"),
    "trace": lambda value: {"trace_id", "events"} <= value.keys(),
    "bundle": lambda value: (
        "script" in value or {"scenario", "input_messages"} <= value.keys() or value.get("adapter") == ADAPTER
    ),
    "action": lambda value: {"agent_id", "action_id"} <= value.keys(),
    "seal": lambda value: {"payload", "payloadType"} <= value.keys(),
    "disclosure": lambda value: "disclosure" in value,
    "test result": lambda value: {"test_run_id", "assertions"} <= value.keys(),
    "suite summary": lambda value: {"test_run_id", "tests"} <= value.keys(),
    "test case": lambda value: not {"adapter_input", "assertions"}.isdisjoint(value),
    "policy": lambda value: (
        "schema_version" in value and not {"rules", "default", "models", "budgets"}.isdisjoint(value)
    ),
    "replay log": lambda value: isinstance(value.get("type", value.get("event")), str),
}


def _unknown(file: str) -> FormatError:
    known = (
        "a capture, REPLAY.jsonl, receipt, bundle, trace, action, record, seal, disclosure, test case, "
        "test result, shadow report, policy or dataset"
    )
    return FormatError(f"is not an artifact that reenact knows; name {known}", file=file)


def find_kind(file: Path) -> ArtifactKind | None:
    """The kind of the artifact in *file*, or ``events``; ``None`` if it is not an artifact."""
    try:
        return kind_of(file, takes_events=True)
    except FormatError:
        return None


def is_run(path: Path) -> bool:
    """Whether *path* is a run by its file names or its first line; it may still be damaged."""
    if path.is_dir():
        return any(map(Path.is_file, map(path.joinpath, (*MANIFESTS, *RUN_FILES))))
    return path.is_file() and find_kind(path) in RUN_KINDS


def find_runs(paths: Iterable[str]) -> list[Path]:
    """Each of *paths* that is a run, and all runs below the others, in path order, each once.

    Hidden directories, and files that are not runs, are skipped.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise StoreError(f"{path}: No such file or directory; name a run or a folder of runs")
        below = sorted(_runs_below(path)) if path.is_dir() and not is_run(path) else [path]
        if not below:
            refuse_index(path)
            raise StoreError(f"{path}: holds no run; name a capture, a REPLAY.jsonl, or a folder of them")
        found.update(dict.fromkeys(below))
    return list(found)


def _raise(error: OSError) -> None:
    """For ``os.walk``, which otherwise skips directories that it cannot read."""
    raise error


def _runs_below(directory: Path) -> Iterator[Path]:
    for parent, names, files in os.walk(directory, onerror=_raise):
        names[:] = [name for name in names if not name.startswith(".")]
        for name in list(names):
            if is_run(Path(parent, name)):
                names.remove(name)
                yield Path(parent, name)
        yield from (
            path
            for name in files
            if (path := Path(parent, name)).suffix in (".jsonl", ".json") and is_run(path)
        )


def is_folder_of_runs(path: str | Path) -> bool:
    """Whether *path* is a folder, a pack or an address that may hold runs and is not a run itself."""
    folder = find_local(path)
    if folder is None:
        return is_folder_of_remote_runs(path)
    return folder.is_dir() and not is_run(folder)


def holds_many_runs(path: str | Path) -> bool:
    """Whether each run in *path* is verified by itself.

    A folder without a run, or with a single run file, counts as a capture whose other files are missing.
    """
    folder = find_local(path)
    if folder is None:
        return is_folder_of_remote_runs(path)
    if not folder.is_dir() or is_run(folder):
        return False
    try:
        found = find_runs([str(folder)])
    except StoreError:
        return False
    return len(found) > 1 or found[0].is_dir()


def name_runs(paths: Iterable[str | Path]) -> list[str]:
    """Every run at or below *paths*, like :func:`find_runs`, including those at addresses and in packs."""
    found: dict[str, None] = {}
    for path in paths:
        local = find_local(path)
        if local is not None:
            found.update(dict.fromkeys(map(str, find_runs([str(local)]))))
        elif is_folder_of_remote_runs(path):
            below = list_remote(path)
            if not below:
                raise StoreError(
                    f"{remote_name(path)}: holds no run; name a capture, or a folder of captures"
                )
            found.update(dict.fromkeys(run.path for run in below))
        else:
            found[remote_name(path)] = None
    return list(found)
