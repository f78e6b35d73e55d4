"""Runs as other tools read them: valid, complete, and the same run when they are imported again."""

from __future__ import annotations

import gzip
import json
import shutil
import socket
from contextlib import suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any, ClassVar

import atif
import httpx
import msgspec
import openai
import pytest

import reenact
from reenact.canonical import encode_clean
from reenact.exporters.exporting import EXPORT_FORMATS
from reenact.formats.capture import Integrity, read_manifest, with_own_digest, write_manifest
from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.cli.commands import agent
from tests.cli.commands import run as run_command
from tests.importers.test_transcripts import SOURCES, counted, source_of

KEY = "sk-proj-Qm3rT7vW9yB2dF5hJ8kN1pS4uX6zA0cE3gI5lO7qR9tV"
MESSAGES: list[Any] = [{"role": "user", "content": "How warm is it? Grüße"}]
TOOLS: list[Any] = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def ask(base: str) -> list[str]:
    """Two model calls, one streamed, with a tool between them; a form and bytes to the network."""
    with openai.OpenAI(base_url=f"{base}/v1", api_key=KEY) as client, httpx.Client() as plain:
        first = client.chat.completions.create(model="m", messages=MESSAGES, tools=TOOLS).choices[0].message
        assert first.tool_calls is not None
        result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "21"}
        stream = client.chat.completions.create(model="m", messages=[*MESSAGES, first, result], stream=True)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        form = plain.post(f"{base}/form", data={"a": "1", "b": "ü"}).status_code
        sent = plain.post(f"{base}/bytes?x=1", content=b"\xff\x00").status_code
        return [text, str(form), str(sent)]


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, str, list[str]]:
    """A capture, where it was asked, and what came."""
    script = [Reply("I look.", [ToolCall("look", {"q": "x"})]), Reply("It is 21 degrees.")]
    with ScriptedProvider(script) as provider:
        with reenact.capture(tmp_path / "run"):
            came = ask(provider.url)
        return tmp_path / "run", provider.url, came


def test_a_har_that_was_exported_replays_strictly(tmp_path, recorded):
    """Out and in again: the same traffic, under the real clients."""
    run, base, came = recorded
    report = reenact.export_runs(run, "har", tmp_path / "it.har")
    assert (report.failed, report.runs[0].losses) == ([], [])
    assert KEY not in (tmp_path / "it.har").read_text()
    (again,) = reenact.import_runs(tmp_path / "it.har", tmp_path / "again").runs
    assert (again.losses, again.unknown, again.counts.model_calls, again.counts.requests) == ([], {}, 2, 2)
    with reenact.replay(tmp_path / "again") as replayed:
        assert ask(base) == came
    assert replayed.divergences == []


def test_a_trajectory_validates_and_has_every_step(tmp_path, recorded):
    """The package atif takes it; the tool stands with the answer that asked for it."""
    run, _, _ = recorded
    reenact.export_runs(run, "atif", tmp_path / "it.json")
    document = json.loads((tmp_path / "it.json").read_text())
    steps = atif.Trajectory.model_validate(document).steps
    assert [(step.source, step.message) for step in steps] == [
        ("user", "How warm is it? Grüße"), ("agent", "I look."), ("agent", "It is 21 degrees."),
    ]  # fmt: skip
    assert steps[1].tool_calls is not None
    assert steps[1].tool_calls[0].arguments == {"q": "x"}
    assert steps[1].observation is not None
    assert steps[1].observation.results[0].content == "21"
    manifest = json.loads((run / "manifest.json").read_text())
    assert document["extra"]["events_hash"] == manifest["integrity"]["eventsHash"]


@pytest.mark.parametrize("name", SOURCES)
def test_imported_transcripts_keep_their_calls_as_trajectories(tmp_path, name):
    """Import, export, import: as many model calls, tool calls and results as before."""
    (run,) = reenact.import_runs(source_of(name), tmp_path / "run").runs
    reenact.export_runs(tmp_path / "run", "atif", tmp_path / "it.json")
    atif.Trajectory.model_validate(json.loads((tmp_path / "it.json").read_text()))
    (again,) = reenact.import_runs(tmp_path / "it.json", tmp_path / "again").runs
    assert (counted(again), again.losses, again.unknown) == (counted(run), [], {})


def test_a_tool_that_was_seen_at_work_is_a_step_without_a_model(tmp_path):
    """Failed ones say so."""

    @reenact.tool
    def look(q: str) -> str:
        raise ValueError(q)

    with reenact.capture(tmp_path / "run"), pytest.raises(ValueError, match="x"):
        look(q="x")
    reenact.export_runs(tmp_path / "run", "atif", tmp_path / "it.json")
    (step,) = atif.Trajectory.model_validate(json.loads((tmp_path / "it.json").read_text())).steps
    assert (step.llm_call_count, step.tool_calls[0].function_name) == (0, "look")
    assert step.extra is not None
    assert step.extra["failed"] == [step.tool_calls[0].tool_call_id]


def test_many_runs_get_a_file_each_and_losses_are_told(tmp_path):
    """What a transcript does not hold as it was sent cannot be an archive; it says so."""
    for name in ("a", "b"):
        reenact.import_runs(source_of("pi"), tmp_path / "runs" / name)
    done = run_command("export", "runs", "--to", "har", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.har", "b.har"]
    assert (
        "runs/a: not in the har: llm_request.request (first at event 5): it is not known as it was sent"
        in done.stderr
    )


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["none", "--to", "atif", "-o", "o"], 2, "No such file or directory"),
        (["empty", "--to", "atif", "-o", "o"], 3, "holds no capture"),
        (["empty", "--to", "none", "-o", "o"], 3, "none"),
        (["broken", "--to", "atif", "-o", "o"], 2, "broken"),
    ],
)
def test_wrong_usage_and_broken_runs_are_told(tmp_path, words, status, said):
    """In one line, with the exit status of the command line."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{")
    (tmp_path / "broken" / "events.jsonl").write_text("")
    done = run_command("export", *words, cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert said in done.stderr


def span_attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def test_spans_have_what_the_conventions_ask_for(tmp_path, recorded):
    """One trace: the run, its model calls with their messages, its tools, its requests."""
    run, _, _ = recorded
    report = reenact.export_runs(run, "otlp", tmp_path / "it.json")
    assert report.runs[0].losses == []
    (resource,) = json.loads((tmp_path / "it.json").read_text())["resourceSpans"]
    root, *spans = resource["scopeSpans"][0]["spans"]
    known = [span_attributes(span) for span in spans]
    named = sorted(each.get("gen_ai.operation.name") or each["http.request.method"] for each in known)
    assert named == ["POST", "POST", "chat", "chat", "execute_tool"]
    assert {span["parentSpanId"] for span in spans} == {root["spanId"]}
    assert all(int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"]) for span in [root, *spans])
    asked = next(each for each in known if each.get("gen_ai.operation.name") == "chat")
    assert json.loads(asked["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": MESSAGES[0]["content"]}]}
    ]
    (answer,) = json.loads(asked["gen_ai.output.messages"])
    assert [part["type"] for part in answer["parts"]] == ["text", "tool_call"]
    manifest = json.loads((run / "manifest.json").read_text())
    assert span_attributes(root)["reenact.events_hash"] == manifest["integrity"]["eventsHash"]


def test_spans_that_were_exported_can_be_imported(tmp_path, recorded):
    """As many model calls, tool calls and results as before."""
    run, _, _ = recorded
    reenact.export_runs(run, "otlp", tmp_path / "it.json")
    (again,) = reenact.import_runs(tmp_path / "it.json", tmp_path / "again").runs
    counts = again.counts
    assert (counts.model_calls, counts.tool_calls, counts.tool_results, again.losses) == (2, 1, 1, [])


class Collector(BaseHTTPRequestHandler):
    """Takes spans, or refuses them as it is told."""

    taken: ClassVar[list[Any]] = []
    answer: ClassVar[tuple[int, bytes]] = (200, b"{}")

    def do_POST(self) -> None:
        assert (self.headers["api-key"], self.headers["other"]) == ("a b", "2")
        sent = self.rfile.read(int(self.headers["content-length"]))
        is_packed = self.headers.get("content-encoding") == "gzip"
        self.taken.append(json.loads(gzip.decompress(sent) if is_packed else sent))
        status, body = self.answer
        self.send_response(status)
        if status in (429, 503):
            self.send_header("retry-after", "0")
            type(self).answer = (200, b"{}") if status == 429 else self.answer
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, b"{}"), None),
        ((200, b'{"partialSuccess": {"rejectedSpans": "some"}}'), None),
        ((503, b""), "refused the spans with status 503; try it later"),
        ((429, b""), None),
        ((500, b"<html>"), "refused the spans with status 500; look at its log"),
        (
            (413, b""),
            "refused the spans with status 413; raise its limit for requests, or export to a file",
        ),
        ((301, b""), "refused the spans with status 301; look at its log"),
        ((200, b'{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "no"}}'), "rejected 2 spans: no"),
    ],
)
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_spans_are_sent_to_a_collector(recorded, answer, said, compression, monkeypatch):
    """With the headers of the environment, and again if it asks for that; what it refuses is a failed run."""
    run, _, _ = recorded
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, other=2")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", compression)
    Collector.taken.clear()
    Collector.answer = answer
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/v1/traces"
        report = reenact.export_runs(run, "otlp", address)
        server.shutdown()
    assert len(Collector.taken) == {503: 4, 429: 2}.get(answer[0], 1)
    assert all(taken == Collector.taken[0] for taken in Collector.taken)
    assert [failed.reason.partition(": the collector ")[2] for failed in report.failed] == (
        [] if said is None else [said]
    )


def test_a_collector_that_nobody_answers_for_is_asked_once(recorded, tmp_path, monkeypatch):
    """In bounded time, also where it drips its answer; the other runs are reported as not sent."""
    run, _, _ = recorded
    shutil.copytree(run, tmp_path / "a")
    shutil.copytree(run, tmp_path / "b")
    monkeypatch.setattr("reenact.exporters.otlp._TIMEOUT_S", 0.4)
    is_over = Event()
    asked: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            with suppress(OSError):
                connection, _ = server.accept()
                asked.append(connection)
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not is_over.wait(0.05):
                    connection.sendall(b"x")

        dripping = Thread(target=drip, daemon=True)
        dripping.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1/traces"
        report = reenact.export_runs([tmp_path / "a", tmp_path / "b"], "otlp", address)
        is_over.set()
        dripping.join()
    for connection in asked:
        connection.close()
    first, second = (failed.reason for failed in report.failed)
    assert first == f"{address}: the collector did not answer in 0.4 s; try it later"
    assert second == f"was not sent: {first}"
    closed = reenact.export_runs([tmp_path / "a", tmp_path / "b"], "otlp", address)
    assert "the collector cannot be reached" in closed.failed[0].reason
    assert closed.failed[1].reason.startswith("was not sent: ")


def write_events(run: Path, events: list[Any]) -> None:
    """Put *events* into a capture, and into its manifest that it has these."""
    text = b"".join(encode_clean(event) + b"\n" for event in events)
    (run / "events.jsonl").write_bytes(text)
    manifest = read_manifest((run / "manifest.json").read_bytes(), file="manifest.json")
    hashed = Integrity(algorithm="sha256", eventsHash=f"sha256:{sha256(text).hexdigest()}")
    changed = msgspec.structs.replace(manifest, integrity=hashed, eventCount=len(events))
    (run / "manifest.json").write_bytes(write_manifest(with_own_digest(changed)))


ODD: list[Any] = [
    None,
    -5,
    10**17,
    "x",
    [],
    {},
    [1],
    {"a": 1},
    1.5,
    {"$py": "tuple", "value": [1]},
    {"$json": "{"},
]


@pytest.mark.parametrize("seed", range(6))
def test_a_run_whose_events_say_something_else_is_told(tmp_path, recorded, seed):
    """Whatever stands in an event, under digests that are right: exported, or told in one line."""
    run, chance = recorded[0], Random(seed)
    events = [json.loads(line) for line in (run / "events.jsonl").read_bytes().splitlines()]
    for _ in range(4):
        place = chance.choice(events)["data"]
        while isinstance(place, dict) and place:
            inner, name = place, chance.choice(sorted(place))
            place = place[name]
            if chance.random() < 0.4:
                break
        inner[name] = chance.choice(ODD)
    write_events(run, events)
    for to in EXPORT_FORMATS:
        report = reenact.export_runs(run, to, tmp_path / to)
        assert len(report.runs) + len(report.failed) == 1


def test_an_archive_tells_cookies_and_where_an_answer_leads(tmp_path, recorded):
    """Tools read them from their own members; what is no HTTP is reported and left out."""
    run = recorded[0]
    events = [json.loads(line) for line in (run / "events.jsonl").read_bytes().splitlines()]
    answers = [event["data"]["value"] for event in events if "status" in (event["data"].get("value") or {})]
    answers[0]["headers"] = [{"Set-Cookie": "a=1; Path=/"}, {"Location": "/next"}]
    answers[1]["headers"] = 5
    write_events(run, events)
    report = reenact.export_runs(run, "har", tmp_path / "it.har")
    entries = json.loads((tmp_path / "it.har").read_text())["log"]["entries"]
    (form,) = [entry["response"] for entry in entries if entry["request"]["url"].endswith("/form")]
    assert (form["cookies"], form["redirectURL"]) == ([{"name": "a", "value": "1"}], "/next")
    assert [loss.reason for loss in report.runs[0].losses] == ["it is not HTTP as clients use it"]


def test_runs_of_the_same_name_get_files_of_their_own(tmp_path, recorded):
    """None replaces another one; the report says which run is in which file."""
    places = [tmp_path / each / "run" for each in ("a", "b", "c")]
    for place in places:
        shutil.copytree(recorded[0], place)
    report = reenact.export_runs(places, "har", tmp_path / "out")
    assert [Path(run.out).name for run in report.runs] == ["run.har", "run-2.har", "run-3.har"]
    assert all(Path(run.out).exists() for run in report.runs)


def test_a_run_that_is_named_twice_is_exported_once(tmp_path, recorded):
    """By itself and with its folder; a row would be there twice else."""
    run = recorded[0]
    report = reenact.export_runs(
        [run, run.parent, str(run) + "/../run"], "sft", tmp_path / "x", dedupe="none"
    )
    assert (len(report.runs), report.runs[0].rows) == (1, 1)
    assert reenact.verify(tmp_path / "x").findings == []
    with pytest.raises(reenact.UsageError, match="not a number"):
        reenact.export_runs(run, "sft", tmp_path / "x", min_utility=float("nan"))


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three processes, and a fork of it in which the last answer is another."""
    home = tmp_path_factory.mktemp("family")
    words = agent("family", "os.fork", "one", "two", "three")
    with ScriptedProvider(lambda request: Reply(f"{request.user_text}!")) as provider:
        address = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
        done = run_command("record", "-o", "runs/a", "--", *words, cwd=home, **address)
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in (home / "runs/a/events.jsonl").read_text().splitlines()]
        last = [event["seq"] for event in events if event["type"] == "llm_request"][-1]
        change = ("--at", last, "--set", '$.content[0].text="Changed."', "-o", "runs/f")
        done = run_command("fork", "runs/a", *change, "--", *words, cwd=home, **address)
        assert done.returncode == 0, done.stderr
    return home / "runs"


COUNTED: dict[str, Any] = {
    "atif": lambda text: sum(step["source"] == "agent" for step in json.loads(text)["steps"]),
    "har": lambda text: len(json.loads(text)["log"]["entries"]),
    "otlp": lambda text: text.count(b'"name":"chat m"'),
    "sft": lambda text: text.count(b"\n"),
    "preference": lambda text: 4 if text == b"" else 0,  # nothing says which of the two is better
}


@pytest.mark.parametrize("name", ["a", "f"])
@pytest.mark.parametrize("to", EXPORT_FORMATS)
def test_runs_of_several_processes_and_forks_are_exported_whole(tmp_path, family, name, to):
    """What a fork shares with its parent too; the rows of a dataset are traced back."""
    report = reenact.export_runs(family / name, to, tmp_path / "it")
    assert (len(report.runs), report.failed) == (1, [])
    text = (tmp_path / "it").read_bytes()
    if to == "parquet":
        assert report.dataset is not None
        assert [*report.dataset.files.values()] == [8]
    else:
        assert COUNTED[to](text) == 4
        assert (b"Changed." in text) is (name == "f" and to != "preference")
    if to in ("sft", "parquet"):
        assert reenact.verify(tmp_path / "it").findings == []
