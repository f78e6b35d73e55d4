"""Rows of datasets with their manifests, and the runs that they come from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance.make.capture import manifest_of
from conformance.make.case import Case, Event, Found, document, lines_of
from reenact import canonical
from reenact.exporters.exporting import export_runs
from reenact.formats.dataset import DATASET_MANIFEST_SCHEMA, RowsDigest

Files = dict[str, bytes]
ASKED = {"one": "How warm is it?", "two": "How many files are here?", "three": "Who wrote it?"}
ENDED: Event = {"stopReason": "stop", "usage": None}
FILE = "rows.jsonl"
MANIFEST = f"{FILE}.manifest.json"


def _run_files(name: str, question: str) -> Files:
    """A run with one question and its answer, as an importer tells it."""
    request = {"messages": [{"role": "user", "content": question}]}
    digest = canonical.digest(request)
    named = {"callId": "c1", "derived": True, "model": "m", "provider": "unknown"}
    hashes = {"inputHash": digest, "requestHash": digest}
    events: list[Event] = [
        {"type": "run_start", "data": {}},
        {"type": "llm_request", "data": named | hashes | {"lane": "0", "request": request}},
        {"type": "llm_response", "data": named | {"response": {"text": "I look."}} | ENDED},
        {"type": "run_end", "data": {"status": "ok"}},
    ]
    ids = {"version": 1, "captureId": f"cap_{name}", "runId": f"run_{name}"}
    numbered = enumerate(events, 1)
    text = lines_of([ids | {"seq": seq, "ts": 1771113600000 + seq, **each} for seq, each in numbered])
    manifest = manifest_of(text, captureId=f"cap_{name}", runId=f"run_{name}")
    return {f"runs/{name}/events.jsonl": text, f"runs/{name}/manifest.json": manifest}


RUNS: Files = {path: data for name, asked in ASKED.items() for path, data in _run_files(name, asked).items()}


def _rows_of_runs() -> list[Event]:
    with TemporaryDirectory() as folder:
        for name, data in RUNS.items():
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).write_bytes(data)
        runs = [Path(folder, "runs", name) for name in ASKED]
        export_runs(runs, "sft", Path(folder, FILE))
        return [json.loads(line) for line in Path(folder, FILE).read_bytes().splitlines()]


def _listed(name: str, rows: list[Event]) -> Event:
    digest = RowsDigest()
    for row in rows:
        digest.add(row)
    return {"name": name, "rows": digest.count, "digest": digest.digest}


def _manifest(*files: Event, **fields: Any) -> bytes:
    told = {"to": "sft", "producer": "reenact", "exportRedaction": "none", "files": list(files)}
    return document({"schema": DATASET_MANIFEST_SCHEMA} | told | fields)


def dataset_cases() -> Iterator[Case]:
    rows = _rows_of_runs()
    whole = _manifest(_listed(FILE, rows))

    def one(
        name: str, about: str, *found: Found, given: list[Event] = rows, manifest: bytes | None = whole
    ) -> Case:
        files = {**RUNS, FILE: lines_of(given)} | ({} if manifest is None else {MANIFEST: manifest})
        return Case(name, about, FILE, files, found)

    first, second, third = rows
    yield one("good", "The rows that were written.")
    more = _manifest(_listed(FILE, rows), note="made on Monday")
    yield one("good-member-unknown", "A member that nobody knows is passed over.", manifest=more)
    yield one("row-missing", "A row is gone.", Found("rows_missing"), given=[first, third])
    fewer = _manifest(_listed(FILE, rows[:2]))
    yield one("row-added", "There is a row more than were written.", Found("rows_added"), manifest=fewer)
    yield one("rows-moved", "Two rows changed places.", Found("rows_moved"), given=[second, first, third])
    twice = [*rows, first]
    both = (Found("row_twice", 4), Found("rows_added"))
    yield one("row-twice", "A row stands there twice.", *both, given=twice)
    forged = _manifest(_listed(FILE, twice))
    yield one(
        "row-twice-listed",
        "A row stands there twice, and the manifest agrees.",
        Found("row_twice", 4),
        given=twice,
        manifest=forged,
    )
    other = _manifest({"name": "other.jsonl", "rows": 3, "digest": _listed(FILE, rows)["digest"]})
    yield one("file-not-listed", "The manifest lists another file.", Found("rows_added"), manifest=other)
    unsourced = [first, {name: second[name] for name in second if name != "provenance"}, third]
    nowhere = Found("row_without_source", 2, "$.provenance")
    yield one("row-without-source", "A row does not say where it comes from.", nowhere, given=unsourced)
    unread = one("row-unreadable", "A line is no JSON.", Found("row_unreadable", 2), Found("rows_missing"))
    text = unread.files[FILE].splitlines(keepends=True)
    yield unread._replace(files={**unread.files, FILE: text[0] + b"{\n" + text[2]})
    missing = Found("no_manifest", severity="warning")
    yield one("no-manifest", "Nobody can tell whether rows are missing.", missing, manifest=None)
    yield from _manifest_cases(one, rows)
    yield from _folder_cases(rows)


def _manifest_cases(one: Callable[..., Case], rows: list[Event]) -> Iterator[Case]:
    listed = _listed(FILE, rows)
    changes: dict[str, tuple[str, bytes, str | None]] = {
        "schema": ("A newer version.", _manifest(listed, schema="reenact.dataset-manifest.v2"), "$.schema"),
        "to": ("No such kind of rows.", _manifest(listed, to="chat"), "$.to"),
        "count": ("A count is no text.", _manifest(listed | {"rows": "three"}), "$.files[0].rows"),
        "cut": ("The manifest was cut off.", _manifest(listed)[:80], None),
    }
    for name, (about, manifest, path) in changes.items():
        found = Found("manifest_unreadable", path=path)
        yield one(f"manifest-{name}", about, found, manifest=manifest)


def _folder_cases(rows: list[Event]) -> Iterator[Case]:
    """Of several files, from a folder beside the runs."""
    below = [
        row | {"provenance": row["provenance"] | {"run": f"../{row['provenance']['run']}"}} for row in rows
    ]
    splits = {"test.jsonl": below[2:], "train.jsonl": below[:2]}
    manifest = _manifest(*(_listed(name, found) for name, found in splits.items()))
    lines = {f"dataset/{name}": lines_of(found) for name, found in splits.items()}
    files = {**RUNS, **lines, "dataset/dataset.manifest.json": manifest}
    yield Case("good-folder", "A file for each split.", "dataset", files)
    gone = {name: data for name, data in files.items() if name != "dataset/test.jsonl"}
    yield Case("file-missing", "A split is gone.", "dataset", gone, (Found("rows_missing"),))
    alone = _manifest(_listed("train.jsonl", splits["train.jsonl"]))
    extra = files | {"dataset/dataset.manifest.json": alone}
    yield Case("file-added", "A file was put beside the others.", "dataset", extra, (Found("rows_added"),))
    across = lines_of([below[0], below[2]])
    copied = files | {"dataset/train.jsonl": across}
    found = (Found("row_twice", 2),)
    yield Case("row-in-two-splits", "A row of one split is in another.", "dataset", copied, found)
