"""Forks in the viewer: the tree of forks, the command that forks at a step, and shadow reports."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from reenact.analysis.artifact import Artifact
from reenact.analysis.steps import Detail
from reenact.canonical import JsonValue
from reenact.corpus.runs import fork_tree
from reenact.errors import ReenactError, UsageError
from reenact.formats.shadow import ShadowReport, StepsReport, is_shadow_report, read_shadow_report
from reenact.store.rundir import MANIFEST, read_ids
from reenact.trace.sources.source import Header

_LOOKED_AT_BYTES: Final = 64 * 1024 * 1024
_LONGEST_VALUE: Final = 60


class ForkChoice(NamedTuple):
    """One way to fork at a step."""

    label: str
    text: str
    """A command, or a line of Python, to copy."""


def fork_choices(header: Header, detail: Detail) -> dict[str, object]:
    """The ways to fork at a step: a text to copy for each kind of change, or why it is impossible."""
    step = detail.step
    if header.kind != "capture" or header.state not in ("complete", "recovered"):
        return {}
    if step.derived:
        return {"why": "The agent ran this tool itself. Fork at the model's answer that asked for it."}
    if step.parent_seq is not None:
        why = "It was made inside another call, which is answered as a whole. Fork at that one."
        return {"why": why, "seq": step.parent_seq}
    if step.outcome_seq is None or step.kind in ("state", "message"):
        return {}
    write = _write_command if header.exit_status is not None else _write_python
    choices = [ForkChoice(label, write(header, step.seq, change)) for label, change in _changes(detail)]
    return {"choices": [choice._asdict() for choice in choices]}


def _changes(detail: Detail) -> Iterator[tuple[str, dict[str, object]]]:
    step, payloads = detail.step, detail.payloads
    is_http = step.kind == "model" or (isinstance(payloads.response, dict) and "status" in payloads.response)
    if step.kind == "model":
        yield "Another model, from here on", {"model": "NAME"}
        yield "Another prompt, from here on", {"system": "FILE"}
    if is_http or payloads.error is not None or payloads.pieces is not None:
        yield "Another answer", {"replace": "FILE"}
    else:
        path, value = _first_leaf(payloads.response)
        yield "Another result", {"set": {path: value}}
    yield "It fails", {"error": "429" if is_http else "TimeoutError"}


def _first_leaf(value: object, path: str = "$") -> tuple[str, object]:
    """The first plain value in it, as the example of a change."""
    members: Iterable[tuple[str, object]] = ()
    if isinstance(value, dict):
        members = ((_member(path, name), child) for name, child in value.items())
    elif isinstance(value, list):
        members = ((f"{path}[{place}]", child) for place, child in enumerate(value))
    for below, child in members:
        return _first_leaf(child, below)
    is_long = isinstance(value, str) and len(value) > _LONGEST_VALUE
    return path, "…" if is_long else value


def _member(path: str, name: str) -> str:
    is_plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum() and not name[0].isdigit()
    return f"{path}.{name}" if is_plain and name[0] != "-" else f"{path}[{_json(name)}]"


def _write_command(header: Header, seq: int, change: Mapping[str, Any]) -> str:
    words = ["reenact", "fork", _shorten_path(header.path), "--at", str(seq)]
    for name, value in change.items():
        if name == "set":
            words += [word for path, new in value.items() for word in ("--set", f"{path}={_json(new)}")]
        else:
            words += [f"--{name}", value]
        if name in ("model", "system"):
            words += ["--on-miss", "live"]
    return shlex.join([*words, "--", *(header.command or ("COMMAND",))])


def _write_python(header: Header, seq: int, change: Mapping[str, object]) -> str:
    named = {"system": "PROMPT", "replace": "VALUE"}
    members = {name: named.get(name, value) for name, value in change.items()}
    path = _shorten_path(header.path)
    live = ', on_miss="live"' if {"model", "system"} & set(members) else ""
    options = f"at={seq}, change={members!r}{live}, output={_json(f'{path}-fork')}"
    return f"with reenact.fork({_json(path)}, {options}) as run: ..."


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _shorten_path(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


# The tree


def tree_of(artifact: Artifact, runs: Mapping[str, Path]) -> list[dict[str, JsonValue]]:
    """The tree of forks of a run, with the names of those that are in *runs*."""
    names = {path.resolve(): name for name, path in runs.items()}
    own = Path(artifact.path).resolve()
    captures = [path for path in runs.values() if (path / MANIFEST).is_file()]
    nodes = []
    for node in fork_tree(artifact.path, captures):
        path = Path(node.path)
        name = names.get(path.resolve())
        names_here = {"run": name, "name": name or path.name, "isThis": path.resolve() == own}
        nodes.append(msgspec.to_builtins(node) | names_here)
    return [{name: value for name, value in node.items() if name != "path"} for node in nodes]


# Shadow reports


class ShadowReports:
    """The shadow reports in *files*, by file name."""

    def __init__(self, files: Iterable[Path] = ()) -> None:
        self._files: dict[str, Path] = {}
        for file in files:
            self._files.setdefault(file.name, file)

    def lines(self) -> list[dict[str, str]]:
        """The reports with their verdicts, or with the reason if one cannot be read."""
        return [{"name": name, "verdict": self._line(name)} for name in sorted(self._files)]

    def _line(self, name: str) -> str:
        try:
            report = self._read(name)
        except (ReenactError, OSError) as error:
            return str(error)
        if isinstance(report, StepsReport):
            return f"step by step: the same tools in {report.tools}"
        return report.verdict

    def report(self, name: str, runs: Mapping[str, Path]) -> dict[str, object]:
        """A report, with the names of its runs and candidates in the viewer, if they are there."""
        report = self._read(name)
        view: dict[str, object] = msgspec.to_builtins(report)
        ids = _runs_by_capture(runs)
        for each in _runs_in(view):
            run = ids.get(each.pop("captureId", ""))
            if run is not None:
                each["run"] = run
        if isinstance(report, ShadowReport):
            view["verdict"] = report.verdict
            view["isWorse"] = report.comparison.is_worse
            view["isConclusive"] = report.comparison.is_conclusive
        return view | {"name": name}

    def _read(self, name: str) -> ShadowReport | StepsReport:
        if name not in self._files:
            raise UsageError(f"there is no shadow report {name!r} here")
        return read_shadow_report(self._files[name].read_bytes(), file=name)


def shadow_reports_in(folders: Iterable[Path]) -> list[Path]:
    """The files in *folders*, not below them, that are shadow reports."""
    files = (file for folder in folders for file in sorted(folder.glob("*.json")))
    return [file for file in files if not file.is_symlink() and is_report_file(file)]


def is_report_file(file: Path) -> bool:
    """Whether *file* looks like a shadow report, by its suffix and its bytes."""
    if file.suffix != ".json" or not file.is_file():
        return False
    try:
        with file.open("rb") as stream:
            return is_shadow_report(stream.read(_LOOKED_AT_BYTES))
    except OSError:
        return False


def _runs_in(report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from report.get("steps", ())
    for run in report.get("runs", ()):
        yield run["recorded"]
        yield from run.get("candidates", ())


def _runs_by_capture(runs: Mapping[str, Path]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, path in runs.items():
        with suppress(OSError):
            capture_id = read_ids((path / MANIFEST).read_bytes()).capture_id
            if capture_id:
                found.setdefault(capture_id, name)
    return found
