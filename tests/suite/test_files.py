"""Assertions on the files of a run."""

from pathlib import Path

import pytest

import reenact
from reenact.store.reader import CaptureReader
from reenact.trace.from_run import trace_of_run
from reenact.trace.sources.capture import read_capture
from tests.suite.runs import judged, trace_of


def trace_with_files(folder):
    """A run that wrote a program, and a log that it removed."""
    work = Path(folder, "work")
    (work / "src").mkdir(parents=True)
    (work / "README").write_text("A project.\n")

    @reenact.tool
    def write(path: str, text: str) -> None:
        (work / path).write_text(text)

    @reenact.tool
    def remove(path: str) -> None:
        (work / path).unlink()

    capture = Path(folder, "run")
    with reenact.capture(capture, workspace=work):
        write("src/app.py", "print('hello')\n")
        write("build.log", "x")
        remove("build.log")
    names = {"trace_id": "t", "test_run_id": "r", "case": None}
    return trace_of_run(read_capture(CaptureReader(capture)), artifacts={"capture": str(capture)}, **names)


CASES = {
    "there": ("file_exists", {"path": "src/app.py"}, "pass"),
    "a folder": ("file_exists", {"path": "src", "kind": "folder"}, "pass"),
    "no folder": ("file_exists", {"path": "README", "kind": "folder"}, "fail"),
    "gone": ("file_exists", {"path": "build.log"}, "fail"),
    "gone, as expected": ("file_exists", {"path": "build.log", "exists": False}, "pass"),
    "text": ("file_contains", {"path": "src/app.py", "text": "hello"}, "pass"),
    "other text": ("file_contains", {"path": "src/app.py", "text": "Hello"}, "fail"),
    "pattern": ("file_contains", {"path": "src/app.py", "pattern": "^print"}, "pass"),
    "no file": ("file_contains", {"path": "src", "text": "hello"}, "fail"),
    "neither": ("file_contains", {"path": "src/app.py"}, "fail"),
    "unchanged": ("file_unchanged", {"path": "README"}, "pass"),
    "changed in between": ("file_unchanged", {"path": "build.log"}, "fail"),
    "changed folder": ("file_unchanged", {"path": "src"}, "fail"),
    "only these": ("files_changed_only", {"patterns": ["src/*", "*.log"]}, "pass"),
    "in between too": ("files_changed_only", {"patterns": ["src/*"]}, "fail"),
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return trace_with_files(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize(("kind", "params", "status"), CASES.values(), ids=CASES)
def test_files_are_judged(kind, params, status, trace):
    """At the end, and at every step where it matters."""
    found = judged(kind, params, trace)
    assert found.status == status, found.message


def test_a_run_without_files_fails_with_the_reason():
    """It holds nothing, and says what to do."""
    found = judged("file_exists", {"path": "a"}, trace_of())
    assert (found.status, "only a capture has files" in found.message) == ("fail", True)
