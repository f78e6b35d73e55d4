"""Sessions of opencode where it keeps them: in a database, or in a folder of files."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.importers.building import ImportedRun
from tests.cli.commands import run as run_command
from tests.importers.test_transcripts import counted, trace_of

SECRET = "sk-proj-Qm3rT7vW9yB2dF5hJ8kN1pS4uX6zA0cE3gI5lO7qR9tV"


def text(own: str, said: str) -> dict[str, Any]:
    return {"id": own, "type": "text", "text": said}


def tool(own: str, start: int, end: int) -> dict[str, Any]:
    state = {"status": "completed", "input": {"command": own}, "output": f"of {own}"}
    return {
        "id": f"prt_{own}", "type": "tool", "tool": "bash", "callID": own,
        "state": {**state, "time": {"start": start, "end": end}},
    }  # fmt: skip


def session(own: str, parent: str | None = None, at: int = 1_770_000_000_000) -> dict[str, Any]:
    found = {"id": own, "title": own, "projectID": "p", "directory": "/d", "version": "1"}
    return {**found, "time": {"created": at, "updated": at}, **({"parentID": parent} if parent else {})}


def message(own: str, role: str, at: int, *parts: dict[str, Any]) -> dict[str, Any]:
    info = {"id": own, "role": role, "time": {"created": at}}
    if role == "assistant":
        info |= {"modelID": "m", "providerID": "anthropic", "finish": "stop"}
    return {"info": info, "parts": list(parts)}


BEGAN = 1_770_000_000_000
SESSIONS = {
    "ses_1": (session("ses_1"), [
        message("msg_1", "user", BEGAN, text("prt_1", "main")),
        message("msg_2", "assistant", BEGAN + 1_000, tool("task", BEGAN + 2_000, BEGAN + 9_000)),
        message("msg_3", "assistant", BEGAN + 9_000, text("prt_3", "All done.")),
    ]),
    "ses_2": (session("ses_2", "ses_1", BEGAN + 2_000), [
        message("msg_4", "user", BEGAN + 3_000, text("prt_4", f"side, with {SECRET}")),
        message("msg_5", "assistant", BEGAN + 4_000, tool("t", BEGAN + 5_000, BEGAN + 6_000)),
        message("msg_6", "assistant", BEGAN + 7_000, text("prt_6", "Found.")),
    ]),
    "ses_3": (session("ses_3", at=BEGAN + 20_000), [
        message("msg_7", "user", BEGAN + 20_000, text("prt_7", "other")),
        message("msg_8", "assistant", BEGAN + 21_000, text("prt_8", "Well.")),
    ]),
}  # fmt: skip


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def write_folder(place: Path) -> Path:
    for own, (info, messages) in SESSIONS.items():
        write_json(place / "storage" / "session" / "p" / f"{own}.json", info)
        for each in messages:
            inner = each["info"]["id"]
            write_json(
                place / "storage" / "message" / own / f"{inner}.json", {**each["info"], "sessionID": own}
            )
            for part in each["parts"]:
                write_json(place / "storage" / "part" / inner / f"{part['id']}.json", part)
    return place / "storage"


def write_early_folder(place: Path) -> Path:
    for own, (info, messages) in SESSIONS.items():
        write_json(place / "storage" / "session" / "info" / f"{own}.json", info)
        for each in messages:
            inner = each["info"]["id"]
            write_json(place / "storage" / "session" / "message" / own / f"{inner}.json", each["info"])
            for part in each["parts"]:
                write_json(place / "storage" / "session" / "part" / own / inner / f"{part['id']}.json", part)
    return place / "storage"


def fill(database: sqlite3.Connection) -> None:
    database.execute("CREATE TABLE session (id, project_id, parent_id, title, time_created, time_updated)")
    database.execute("CREATE TABLE message (id, session_id, time_created, time_updated, data)")
    database.execute("CREATE TABLE part (id, message_id, session_id, time_created, time_updated, data)")
    for own, (info, messages) in SESSIONS.items():
        at = info["time"]["created"]
        database.execute(
            "INSERT INTO session VALUES (?, 'p', ?, ?, ?, ?)", (own, info.get("parentID"), own, at, at)
        )
        for each in messages:
            inner = {name: value for name, value in each["info"].items() if name != "id"}
            row = (each["info"]["id"], own, inner["time"]["created"], 0, json.dumps(inner))
            database.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)
            for part in each["parts"]:
                told = json.dumps({name: value for name, value in part.items() if name != "id"})
                row = (part["id"], each["info"]["id"], own, 0, 0, told)
                database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
    database.commit()


def write_database(place: Path) -> Path:
    with closing(sqlite3.connect(place / "opencode.db")) as database:
        fill(database)
    return place / "opencode.db"


def lanes_of(run: ImportedRun) -> list[tuple[str, int]]:
    lines = Path(run.path, "events.jsonl").read_text().splitlines()
    events = [event for event in map(json.loads, lines) if event["type"] in ("llm_request", "tool_call")]
    return [(event["data"]["lane"], (event["ts"] - BEGAN) // 1000) for event in events]


PLACES = {"folder": write_folder, "early folder": write_early_folder, "database": write_database}


@pytest.mark.parametrize("form", PLACES)
def test_each_session_is_a_run_and_those_of_subagents_are_lanes(tmp_path: Path, form: str) -> None:
    """At the times at which they worked; no secret reaches the disk, and the database stays as it is."""
    source = PLACES[form](tmp_path)
    before = source.read_bytes() if source.is_file() else b""
    report = reenact.import_runs(source, tmp_path / "runs")
    assert (report.verdict, [run.unknown for run in report.runs]) == ("whole", [{}, {}])
    one, two = report.runs
    assert (Path(one.path).name, counted(one), Path(two.path).name, counted(two)) == (
        "ses_1", (4, 2, 2), "ses_3", (1, 0, 0),
    )  # fmt: skip
    assert lanes_of(one) == [("0", 0), ("0", 2), ("0.0", 3), ("0.0", 5), ("0.0", 6), ("0", 9)]
    answers = [event for event in trace_of(Path(one.path)) if event["type"] == "final_output"]
    assert [answer["data"]["content"] for answer in answers] == ["All done."]
    kept = b"".join(file.read_bytes() for file in (tmp_path / "runs").rglob("*") if file.is_file())
    assert SECRET.encode() not in kept
    assert (source.read_bytes() if source.is_file() else b"") == before


@pytest.mark.parametrize("form", PLACES)
def test_the_folder_of_opencode_is_imported_as_it_is(tmp_path: Path, form: str) -> None:
    """Its files of other kinds are counted."""
    data = tmp_path / "data"
    data.mkdir()
    PLACES[form](data)
    (data / "auth.json").write_text("{}")
    report = reenact.import_runs(data, tmp_path / "runs")
    assert (len(report.runs), report.failed, report.skipped) == (2, [], ["auth.json"])


def newer_tool(own: str, start: int, **state: Any) -> dict[str, Any]:
    time = {"created": start, "ran": start + 500, "completed": start + 1_000}
    told = {"input": {"command": own}, "structured": {"exit": 0}, **state}
    return {
        "type": "tool",
        "id": own,
        "name": "bash",
        "provider": {"executed": False},
        "state": told,
        "time": time,
    }


TOKENS = {"input": 9, "output": 2, "reasoning": 0, "cache": {"read": 1, "write": 0}}
MODEL = {"id": "m", "providerID": "anthropic", "variant": "default"}
NEWER: list[tuple[str, dict[str, Any]]] = [
    ("model-switched", {"model": MODEL}),
    ("user", {"text": f"How many, with {SECRET}?", "files": [{"uri": "file:///a.png", "mime": "image/png"}]}),
    ("system", {"text": "Skills are instructions."}),
    ("shell", {"callID": "s", "command": "pwd", "output": "/work"}),
    (
        "assistant",
        {
            "agent": "build", "model": MODEL, "finish": "tool-calls", "tokens": TOKENS, "cost": 0,
            "content": [
                {"type": "reasoning", "id": "r", "text": "Which files?"},
                {"type": "text", "id": "t", "text": "I look."},
                newer_tool("ls", BEGAN, status="completed", content=[{"type": "text", "text": "one.txt"}]),
                newer_tool("no", BEGAN, status="error", content=[], error={"type": "x", "message": "odd"}),
            ],
        },
    ),
    ("compaction", {"reason": "auto", "summary": "One file.", "recent": ""}),
    ("assistant", {"model": MODEL, "finish": "stop", "content": [{"type": "text", "text": "One."}]}),
    ("of tomorrow", {"text": "x"}),
]  # fmt: skip


def add_newer(database: sqlite3.Connection, session: str, at: int) -> None:
    columns = "id text PRIMARY KEY, session_id, type, seq, time_created, time_updated, data"
    database.execute(f"CREATE TABLE session_message ({columns})")
    for number, (kind, data) in enumerate(NEWER):
        told = json.dumps({**data, "time": {"created": at + number * 1_000}})
        row = (f"new_{number}", session, kind, number, at + number * 1_000, 0, told)
        database.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    database.commit()


def test_messages_of_the_newer_table_are_read(tmp_path: Path) -> None:
    """Where there is no other, or where a session of the older ones went on there."""
    with closing(sqlite3.connect(tmp_path / "new.db")) as database:
        database.execute("CREATE TABLE session (id, parent_id, title, time_created, time_updated)")
        database.execute("INSERT INTO session VALUES ('ses_n', NULL, 'x', ?, ?)", (BEGAN, BEGAN))
        add_newer(database, "ses_n", BEGAN)
    [run] = reenact.import_runs(tmp_path / "new.db", tmp_path / "runs").runs
    assert (counted(run), run.losses, run.unknown) == ((2, 2, 2), [], {"message.type=of tomorrow": 1})
    events = [json.loads(line) for line in Path(run.path, "events.jsonl").read_text().splitlines()]
    [asked, _] = [event["data"]["request"] for event in events if event["type"] == "llm_request"]
    assert [each["role"] for each in asked["messages"]] == ["user", "system", "user"]
    assert asked["messages"][2]["content"] == "Ran `pwd`\n/work"
    answers = [event["data"] for event in events if event["type"] == "llm_response"]
    assert [answer["response"].get("text") for answer in answers] == ["I look.", "One."]
    assert answers[0]["usage"] == {"inputTokens": 9, "outputTokens": 2, "reasoningTokens": 0} | {
        "cachedInputTokens": 1, "cacheWriteTokens": 0,
    }  # fmt: skip
    results = [event["data"] for event in events if event["type"] == "tool_result"]
    assert [result.get("result", result.get("error")) for result in results] == [
        "one.txt", {"type": "ToolError", "message": "odd"},
    ]  # fmt: skip
    assert not any(
        SECRET.encode() in file.read_bytes() for file in Path(run.path).rglob("*") if file.is_file()
    )
    with closing(sqlite3.connect(write_database(tmp_path))) as database:
        add_newer(database, "ses_3", BEGAN + 30_000)
        database.execute("INSERT INTO session_message SELECT id, session_id, '', 9, 0, 0, '{}' FROM message")
        database.commit()
    report = reenact.import_runs(tmp_path / "opencode.db", tmp_path / "both")
    assert [counted(run) for run in report.runs] == [(4, 2, 2), (3, 2, 2)]


def test_what_is_not_merged_into_the_database_yet_is_read(tmp_path: Path) -> None:
    """opencode leaves the latest changes in a file beside it."""
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        fill(database)
        report = reenact.import_runs(tmp_path / "opencode.db", tmp_path / "runs")
    assert (report.verdict, sum(run.counts.model_calls for run in report.runs)) == ("whole", 5)


def test_what_is_broken_is_a_loss_and_the_rest_is_read(tmp_path: Path) -> None:
    """A part that is not JSON, a parent that is gone, a call without a state."""
    source = write_folder(tmp_path)
    (source / "part" / "msg_8" / "prt_8.json").write_text('{"type": "te')
    (source / "session" / "p" / "ses_1.json").unlink()
    write_json(source / "part" / "msg_6" / "prt_9.json", {"type": "tool", "tool": "x", "callID": "y"})
    done = run_command("import", str(source), "-o", "runs", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert [word in done.stderr for word in ("prt_8.json", "missing: ses_1", "part.state")] == [True] * 3
    assert "2 model calls" in done.stdout


@pytest.mark.parametrize("parents", [("ses_1", None), ("ses_2", "ses_1")])
def test_sessions_that_began_each_other_are_runs(tmp_path: Path, parents: tuple[str, str | None]) -> None:
    """Nothing of them is dropped."""
    source = write_folder(tmp_path)
    for own, parent in zip(("ses_1", "ses_2"), parents, strict=True):
        write_json(source / "session" / "p" / f"{own}.json", session(own, parent))
    report = reenact.import_runs(source, tmp_path / "runs")
    assert (report.verdict, sum(run.counts.model_calls for run in report.runs)) == ("partly", 5)
    assert all("was begun by itself" in loss.reason for run in report.runs for loss in run.losses)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_database_that_was_cut_off_is_told(tmp_path: Path, share: float) -> None:
    """With no traceback, whatever is left of it."""
    source = write_database(tmp_path)
    source.write_bytes(source.read_bytes()[: int(source.stat().st_size * share)])
    done = run_command("import", str(source), "-o", "runs", cwd=tmp_path)
    assert (done.returncode in (1, 2), "Traceback" in done.stderr, bool(done.stderr)) == (True, False, True)
