"""What all importers share: finding sources, refusing replays, importers of other packages, HAR."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import httpx
import pytest

import reenact
from reenact.importers import importing
from tests.cli.commands import agent
from tests.cli.commands import run as run_command

FIXTURES = Path(__file__).parent / "fixtures"
PAGE = Path(__file__).parents[2] / "docs" / "importing.md"


def entry(url: str, text: str | None, **content: Any) -> dict[str, Any]:
    return {
        "startedDateTime": f"2026-01-01T00:00:0{len(url) % 10}Z",
        "time": 1,
        "request": {
            "method": "POST",
            "url": url,
            "httpVersion": "HTTP/2.0",
            "headers": [
                {"name": ":authority", "value": "x"},
                {"name": "content-type", "value": "text/plain"},
            ],
            "postData": {"mimeType": "text/plain", "text": "asked"},
        },
        "response": {
            "status": 200,
            "statusText": "OK",
            "httpVersion": "h2",
            "headers": [
                {"name": "content-encoding", "value": "br"},
                {"name": "content-length", "value": "3"},
            ],
            "content": {
                "size": 9,
                "mimeType": "text/plain",
                **({} if text is None else {"text": text}),
                **content,
            },
        },
        "cache": {},
        "timings": {},
    }


def har(*entries: Any, **log: Any) -> str:
    return json.dumps({"log": {"version": "1.2", "creator": {"name": "t"}, "entries": entries, **log}})


def post(url: str) -> bytes:
    with httpx.Client() as client:
        return client.post(url, content="asked", headers={"content-type": "text/plain"}).content


def test_a_har_replays_strictly(tmp_path):
    """Bodies as text and base64, with the coding undone as browsers save them; in the order of the times."""
    coded = base64.b64encode(bytes(range(256))).decode()
    one, two = entry("https://x.test/ab", "grün"), entry("https://x.test/a", coded, encoding="base64")
    (tmp_path / "it.har").write_text(har(one, two))
    report = reenact.import_runs(tmp_path / "it.har", tmp_path / "run")
    assert (report.verdict, report.runs[0].fidelity) == ("whole", "replayable")
    with reenact.replay(tmp_path / "run"):
        assert post("https://x.test/a") == bytes(range(256))
        assert post("https://x.test/ab") == "grün".encode()


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (har(entry("https://x.test/a", None)), 1, "was not saved"),
        (har(entry("wss://x.test/a", "x")), 1, "only HTTP can be imported, not wss"),
        (har(entry("https://x.test/a", "x"), 3), 1, "entry 2 cannot be read"),
        (
            har(entry("https://x.test/a", "x"), entry("https://x.test/b", "y"))[:-200],
            1,
            "the rest is not JSON",
        ),
        (har(entry("https://x.test/a", "x"), version="3"), 1, "version '3' of HAR is not known"),
        (har(entry("https://x.test/a", "x"), odd=1), 0, "unknown fields: log.odd (1)"),
        (har(entry("https://x.test/a", "x", encoding="base64")), 1, "not base64"),
        ('{"log": {"creator": 1, "entries": 3}}', 2, "expected log.entries"),
        ('{"log": {"creator": 1, "entries": [', 2, "not JSON"),
    ],
)
def test_bad_har_is_told(tmp_path, text, status, said):
    """What can be read is read."""
    (tmp_path / "it").write_text(text)
    done = run_command("import", "it", "-o", "run", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert said in done.stdout + done.stderr


def test_lines_of_another_tool_in_a_transcript_are_told(tmp_path):
    """Each with its line; what is left can be read."""
    [pi], [claude] = FIXTURES.glob("pi/*.jsonl"), FIXTURES.glob("claude-code/*.jsonl")
    (tmp_path / "it").write_bytes(claude.read_bytes() + pi.read_bytes())
    done = run_command("import", "it", "-o", "run", cwd=tmp_path)
    line = len(claude.read_bytes().splitlines()) + 1
    assert (done.returncode, f"it:{line}: is not an entry of Claude Code" in done.stderr) == (1, True)


TOLD = '{"made_by": "diary"}\n{"asked": "Why?", "said": "Because.", "mood": 3}\nno json\n'


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The importer of the page, as another package brings it, and a diary."""
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "diary_importer.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("diary", "diary_importer:IMPORTER", importing.PLUGINS)
    monkeypatch.setattr(
        importing, "entry_points", lambda group: [point] if group == importing.PLUGINS else []
    )
    monkeypatch.delitem(sys.modules, "diary_importer", raising=False)
    (tmp_path / "diary.txt").write_text(TOLD)
    return tmp_path / "diary.txt"


def test_another_package_brings_an_importer(tmp_path, diary):
    """It is found by content; what it does not know and cannot read is counted."""
    (run,) = reenact.import_runs(diary, tmp_path / "run").runs
    assert (run.format, run.fidelity, run.counts.model_calls) == ("diary", "judgeable", 1)
    assert (run.unknown, run.missing) == ({"entry.mood": 1}, ["tools", "times"])
    assert [(loss.line, loss.reason[:20]) for loss in run.losses] == [(3, "the line is not JSON")]
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["imported"]["importer"] == "diary_importer.diary 1"
    assert "Because." in (tmp_path / "run" / "transcript.md").read_text()


PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "diary-importer"
version = "2.1"

[project.entry-points."reenact.importers"]
diary = "diary_importer:IMPORTER"

[tool.hatch.build.targets.wheel]
include = ["diary_importer.py"]
"""


def test_a_distribution_that_is_installed_brings_an_importer(tmp_path):
    """Built, installed and found by its entry point, as users have it; the manifest names it."""
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    project, site = tmp_path / "project", tmp_path / "site"
    project.mkdir()
    (project / "diary_importer.py").write_text(program)
    (project / "pyproject.toml").write_text(PROJECT)
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    words = [sys.executable, "-m", "pip", "install", *options, "--target", str(site), str(project)]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    (tmp_path / "diary.txt").write_text(TOLD)
    found = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = run_command("import", "diary.txt", "-o", "run", cwd=tmp_path, PYTHONPATH=found)
    assert (done.returncode, "from diary diary.txt" in done.stdout) == (1, True), done.stderr
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["imported"]["importer"] == "diary-importer.diary 1"


def test_what_is_not_replayable_is_not_replayed(tmp_path, diary):
    """In Python and by the command; it says why and what can be done instead."""
    reenact.import_runs(diary, tmp_path / "run")
    with pytest.raises(reenact.FormatError, match="is judgeable, not replayable"):
        reenact.replay(tmp_path / "run").__enter__()
    done = run_command("replay", "run", "--", *agent("asking"), cwd=tmp_path)
    assert done.returncode == 2
    assert "was imported from diary and is judgeable, not replayable" in done.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["none", "-o", "out"], 2, "No such file or directory"),
        (["empty", "-o", "out"], 2, "it holds nothing that can be imported"),
        (["a.har", "--from", "tape", "-o", "out"], 3, "'tape' is not a format"),
        (["a.har"], 3, "-o"),
        (["a.har", "-o", "full"], 2, "full"),
        (["a.har", "b.har", "empty", "-o", "out"], 1, "empty: it holds nothing"),
    ],
)
def test_wrong_usage_is_told(tmp_path, words, status, said):
    """With the exit status of the command line."""
    for name in ("a.har", "b.har"):
        (tmp_path / name).write_text(har(entry("https://x.test/a", "x")))
    for name in ("empty", "full"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "file").touch()
    done = run_command("import", *words, cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert said in done.stderr


def test_a_capture_that_cannot_be_written_is_not_kept(tmp_path):
    """Unlike a recording, which cannot be made again, an import can: half of it would be of no use."""
    text = "".join(random.Random(1).choices("abcdefgh ", k=100_000))
    (tmp_path / "a.har").write_text(har(entry("https://h.example/x", text)))
    line = f'ulimit -f 40; exec "{sys.executable}" -m reenact import a.har -o out'
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "cannot be written: File too large" in done.stderr
    assert not (tmp_path / "out").exists()


def test_two_sources_of_one_name_get_two_folders(tmp_path):
    """None overwrites the other."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "it.har").write_text(har(entry("https://x.test/a", name)))
    paths = [tmp_path / "a" / "it.har", tmp_path / "b" / "it.har"]
    report = reenact.import_runs(paths, tmp_path / "out")
    assert sorted(Path(run.path).name for run in report.runs) == ["it", "it-2"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_secrets_in_the_names_of_sources_are_in_no_name_of_a_capture(tmp_path, jobs):
    """Neither those of files nor those of folders; sources in one folder stay together."""
    key, token = "ghp_" + "a1B2" * 9, "sk-ant-api03-" + "zY9x" * 20
    folder = tmp_path / "logs" / f"of {key}"
    folder.mkdir(parents=True)
    text = (FIXTURES / "cassetter.yaml").read_bytes()
    for name in (f"{token}.yaml", "plain.yaml"):
        (folder / name).write_bytes(text)
    report = reenact.import_runs(tmp_path / "logs", tmp_path / "out", jobs=jobs)
    made = [Path(run.path).relative_to(tmp_path / "out") for run in report.runs]
    assert len({path.parent for path in made}) == 1
    assert "plain" in {path.name for path in made}
    assert not [path for path in (tmp_path / "out").rglob("*") if key in str(path) or token in str(path)]
    again = reenact.import_runs(tmp_path / "logs", tmp_path / "again")
    assert [Path(run.path).relative_to(tmp_path / "again") for run in again.runs] == made
    plain = reenact.import_runs(tmp_path / "logs", tmp_path / "plain", redact="none")
    assert any(key in run.path for run in plain.runs)


TIMES = {
    "claude-code/*.jsonl": "2026-11-16T06:38",
    "codex/*.jsonl": "2026-11-16T06:38",
    "gemini-cli/*.jsonl": "2026-11-16T06:38",
    "pi/*.jsonl": "2026-11-16T06:38",
    "opencode.json": "2026-11-16T06:3",
    "cassetter.yaml": "2026-11-",
    "pytest-recording/cassettes/test_agent/TestTwice*": "2026-01-01T00:00:00",
}


@pytest.mark.parametrize("pattern", TIMES)
def test_a_run_has_the_times_that_its_source_tells(tmp_path, pattern):
    """Not that of the file, which is later than all of them."""
    [found] = FIXTURES.glob(pattern)
    source = tmp_path / found.name
    source.write_bytes(found.read_bytes())  # changed just now
    os.utime(source, (2_000_000_000, 2_000_000_000))
    [run] = reenact.import_runs(source, tmp_path / "run").runs
    manifest = json.loads((Path(run.path) / "manifest.json").read_bytes())
    events = [json.loads(line) for line in (Path(run.path) / "events.jsonl").read_bytes().splitlines()]
    assert manifest["createdAt"] == events[0]["ts"]
    assert datetime.fromtimestamp(events[0]["ts"] / 1000, UTC).isoformat().startswith(TIMES[pattern])
    assert manifest["completedAt"] == events[-1]["ts"] < 2_000_000_000_000


def test_what_is_told_before_any_time_belongs_to_the_first_one(tmp_path):
    """And a source that tells none has the time of its file."""
    lines = [{"type": "summary", "summary": "x", "sessionId": "s"}] * 3
    said = {"type": "user", "uuid": "a", "sessionId": "s", "message": {"role": "user", "content": "hi"}}
    for name, time in (("told", {"timestamp": "2026-01-01T00:00:00Z"}), ("untold", {})):
        source = tmp_path / f"{name}.jsonl"
        source.write_text("".join(json.dumps(line) + "\n" for line in [*lines, said | time]))
        os.utime(source, (1_900_000_000, 1_900_000_000))
        [run] = reenact.import_runs(source, tmp_path / name).runs
        events = [json.loads(line) for line in (Path(run.path) / "events.jsonl").read_bytes().splitlines()]
        assert {event["ts"] for event in events} == {1767225600000 if time else 1_900_000_000_000}
        assert run.counts.notes == 4


def test_a_har_tells_how_long_a_request_took(tmp_path):
    """From the time it began, by the clock of who sent it."""
    source = tmp_path / "it.har"
    source.write_text(har(entry("https://x.test/a", "b") | {"time": 1234.5}))
    [run] = reenact.import_runs(source, tmp_path / "run").runs
    assert reenact.query("select latency_ms from calls", run.path).rows == [(1234.0,)]


def test_a_command_that_asks_nothing_does_not_reproduce_an_import(tmp_path):
    """What the source recorded never came."""
    source = tmp_path / "it.har"
    source.write_text(har(entry("https://x.test/a", "b")))
    reenact.import_runs(source, tmp_path / "run")
    done = run_command("replay", "run", "--", sys.executable, "-c", "pass", cwd=tmp_path)
    assert done.returncode == 1
    assert "was recorded, but never called" in done.stderr


def test_notes_do_not_take_the_time_of_the_turn_before_them(tmp_path):
    """An answer is complete when the next turn begins; what is noted until then happened later."""

    def line(number, kind, **told):
        time = {"uuid": str(number), "sessionId": "s", "timestamp": f"2026-01-01T00:00:{number:02}Z"}
        return json.dumps(time | {"type": kind} | told) + "\n"

    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    answer = {"id": "m", "role": "assistant", "model": "c", "content": [call], "stop_reason": "tool_use"}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    lines = [
        line(1, "user", message={"role": "user", "content": "go"}),
        line(3, "assistant", parentUuid="1", message=answer),
        line(4, "progress", parentUuid="3"),
        line(6, "user", parentUuid="3", message={"role": "user", "content": [result]}),
        line(9, "system", parentUuid="6", content="over"),
    ]
    source = tmp_path / "log.jsonl"
    source.write_text("".join(lines))
    [run] = reenact.import_runs(source, tmp_path / "run").runs
    rows = reenact.query("select kind, at_ms, latency_ms from calls order by seq", run.path).rows
    assert rows == [("model", 0, 2000), ("tool", 2000, 3000), ("state", 5000, None), ("state", 8000, None)]
    assert run.counts.notes == 2
