"""Running tests: sources, errors, order, files."""

import json
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest

import reenact
from reenact.errors import StoreError
from reenact.formats.replay_receipt import read_replay_receipt
from reenact.formats.result import read_result
from reenact.formats.trace import read_trace
from reenact.rerun import replay_for_test
from reenact.suite.runner import Plan, find_tests, run_test, run_tests
from reenact.suite.settings import Settings
from tests.suite.runs import call, result, table

GOLDEN_LOG = Path(__file__).parents[1] / "golden" / "replay_log"
BUNDLE = {
    "schema_version": "0.1",
    "adapter": "nanoclaw-replay",
    "scenario": {"trigger": "user_message", "group_id": "home"},
    "input_messages": [],
    "script": [call("search", q="tea"), result("search")],
    "final_output": {"content": "all is well"},
    "status": "success",
    "metrics": {"timing_ms_total": 5},
}
CALLS_SEARCH = "{id: calls, type: must_call_tool, params: {tool: search}}"


def write_test(directory, assertions=CALLS_SEARCH, source="replay_file: replay.json", name="one", more=""):
    """A test in *directory*, with the bundle beside it."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "replay.json").write_text(json.dumps(BUNDLE))
    file = directory / "test.yaml"
    file.write_text(
        f"""\
schema_version: "0.1"
id: {name}
title: Test {name}
adapter: nanoclaw
mode: replay
scenario: {{trigger: user_message}}
tools: {{}}
adapter_input: {{{source}}}
assertions:
  - {assertions}
{more}"""
    )
    return file


def run(file, **plan):
    return run_test(file, Plan("run-1", **{"replay": replay_for_test, **plan}))


def test_a_bundle_is_judged(tmp_path):
    """The result names the test, the file and what it was made from."""
    file = write_test(tmp_path)
    found = run(file).result
    assert (found.status, found.test_case_id, found.test_file) == ("pass", "one", str(file))
    assert found.artifacts == {"replay_file": str(tmp_path / "replay.json")}
    assert found.finished_at >= found.started_at
    assert found.assertions[0].evidence.event_refs == ["evt-1"]


def test_a_failed_assertion_fails_the_test_and_shows_its_events(tmp_path):
    """What it looked at, and its line in the file."""
    outcome = run(write_test(tmp_path, "{id: no, type: must_not_call_tool, params: {tool: search}}"))
    assert outcome.result.status == "fail"
    assert outcome.lines == {"no": 10}
    assert outcome.events == {"evt-1": 'tool_call {"args":{"q":"tea"},"call_id":"c1","tool":"search"}'}


@pytest.fixture
def capture(tmp_path):
    """A captured run with a tool that worked and one that failed."""

    @reenact.tool
    def search(q):
        return [q]

    @reenact.tool
    def send(to):
        raise TimeoutError("slow")

    path = tmp_path / "captures" / "one"
    with reenact.capture(path) as run:
        search("tea")
        with pytest.raises(TimeoutError):
            send(to="ann")
        run.memory_write("notes.md", "tea", group_id="home")
        run.final_output = "tea it is"
    return path


def test_a_capture_is_judged(tmp_path, capture):
    """Its calls, errors, memory and output are there."""
    assertions = "\n  - ".join(
        [
            CALLS_SEARCH,
            "{id: order, type: tool_sequence, params: {steps: [{tool: search, args: {q: tea}}, send]}}",
            "{id: retry, type: retry_policy_respected, params: {tool: send, max_retries: 0}}",
            "{id: memory, type: no_cross_group_memory_use, params: {forbidden_group_ids: [work]}}",
            "{id: output, type: output_contains, params: {all_of: [tea]}}",
        ]
    )
    outcome = run(write_test(tmp_path, assertions, "capture: captures/one"))
    assert [found.message for found in outcome.result.assertions if found.status != "pass"] == []
    assert outcome.result.artifacts == {"capture": str(capture)}


@pytest.mark.parametrize("dialect", ["current", "legacy"])
def test_a_replay_log_is_judged(tmp_path, dialect):
    """In either dialect."""
    log = next(path for path in sorted(GOLDEN_LOG.rglob("*.jsonl")) if dialect in str(path))
    source = f"replay_log: {os.path.relpath(log, tmp_path)}"
    found = run(write_test(tmp_path, "{id: some, type: step_count, params: {min: 1}}", source)).result
    assert found.status == "pass", (found.error, found.assertions)


DIGEST = "sha256:" + "0" * 64
RECEIPT = {
    "schema": "reenact.replay-receipt.v1",
    "capture": {"captureId": "c", "eventsHash": DIGEST, "eventCount": 1},
    "fingerprint": {"code": DIGEST, "packages": DIGEST, "python": "3", "platform": "x", "reenact": "0"},
    "matching": {"policy": "strict", "redaction": "none", "passthroughTools": [], "volatile": []},
    "divergences": [{"code": "event_unexpected", "detail": "a call too many"}],
    "liveCallsRefused": [],
    "notes": [],
    "finalOutputHash": None,
    "verdict": "diverged",
}


@pytest.mark.parametrize("command", ["[python, agent.py, --fast]", "python agent.py --fast"])
def test_a_command_is_replayed_from_its_capture(tmp_path, capture, command):
    """By whoever runs the tests, in the test's directory; its divergences are in the trace."""
    asked = []

    def replay(*order):
        asked.append(order)
        return read_replay_receipt(json.dumps(RECEIPT).encode(), file="x")

    file = write_test(
        tmp_path, "{id: same, type: divergence_free}", f"capture: captures/one, command: {command}"
    )
    outcome = run(file, replay=replay)
    assert outcome.result.status == "fail", outcome.result.error
    assert "event_unexpected: a call too many" in outcome.result.assertions[0].message
    [(recorded, words, folder)] = asked
    assert (recorded, folder) == (capture, tmp_path)
    assert words in (["python", "agent.py", "--fast"], "python agent.py --fast")


COMMANDS = {
    "no program": ("[no-such-program]", "left no receipt (exit status 2): reenact: no-such-program: "),
    "no command": ("'python \"agent'", "not a command: No closing quotation"),
}


@pytest.mark.parametrize(("command", "said"), COMMANDS.values(), ids=COMMANDS)
def test_a_replay_without_a_receipt_could_not_be_run(tmp_path, capture, command, said):
    """What it said last is the reason."""
    source = f"capture: captures/one, command: {command}"
    found = run(write_test(tmp_path, "{id: same, type: divergence_free}", source)).result
    assert found.status == "error"
    assert said in found.error.message


def test_who_cannot_run_commands_says_so(tmp_path, capture):
    """Reading alone runs nothing."""
    source = "capture: captures/one, command: [python, agent.py]"
    file = write_test(tmp_path, "{id: same, type: divergence_free}", source)
    assert "commands are not run here" in run(file, replay=None).result.error.message


ERRORS = {
    "missing bundle": (
        {"source": "replay_file: gone.json"},
        8,
        "$.adapter_input.replay_file",
        "gone.json does not",
    ),
    "missing capture": ({"source": "capture: gone"}, 8, "$.adapter_input.capture", "gone does not exist"),
    "missing log": ({"source": "replay_log: gone"}, 8, "$.adapter_input.replay_log", "gone does not exist"),
    "a command alone": ({"source": "command: [x]"}, 8, "$.adapter_input.command", "name it as capture"),
    "two sources": (
        {"source": "capture: a, replay_file: b"},
        8,
        "$.adapter_input",
        "names replay_file and capture",
    ),
    "a tag": ({"more": "tags: !!python/tuple [a]"}, 11, None, "tags are not read"),
    "an alias bomb": ({"more": "a: &a [x,x]\nb: &b [*a,*a]"}, 11, None, "anchors and aliases are not read"),
    "a wrong type": ({"more": "tags: {a: 3}"}, 11, "$.tags", "xpected"),
}


@pytest.mark.parametrize(("changes", "line", "json_path", "said"), **table(ERRORS))
def test_bad_test_files_are_errors_with_their_place(changes, line, json_path, said, tmp_path):
    """Line, path and reason; nothing raises."""
    file = write_test(tmp_path, **changes)
    found = run(file).result
    assert found.status == "error"
    assert found.error.file == str(file)
    assert (found.error.line, found.error.json_path or None) == (line, json_path)
    assert said in found.error.message


def test_all_problems_of_a_bundle_are_listed(tmp_path):
    """In the order of the format's clauses, not only the first."""
    file = write_test(tmp_path)
    broken = {**BUNDLE, "scenario": {}, "script": [{"type": "nap"}]}
    (tmp_path / "replay.json").write_text(json.dumps(broken))
    found = run(file).result.error
    assert found.json_path == "$.scenario.trigger"
    assert [problem.split(": ")[1] for problem in found.extra["problems"]] == [
        "$.scenario.trigger",
        "$.script[0].type",
    ]


def test_all_problems_of_a_test_file_are_listed(tmp_path):
    """From top to bottom."""
    found = run(write_test(tmp_path, more="description: [x]\ntags: {a: 3}\n")).result.error
    assert len(found.extra["problems"]) == 2


def test_a_damaged_capture_is_an_error(tmp_path, capture):
    """Not an empty recording."""
    log = capture / "events.jsonl"
    log.chmod(0o644)
    log.write_bytes(log.read_bytes().replace(b"tea", b"pie"))
    found = run(write_test(tmp_path, source="capture: captures/one")).result
    assert found.status == "error"
    assert "not those that were recorded" in found.error.message


def test_results_are_in_the_order_of_the_files(tmp_path):
    """Whatever the number of processes; an error in between does not stop them."""
    for index in range(12):
        write_test(tmp_path / f"{index:02d}", name=f"t{index}")
    (tmp_path / "05" / "test.yaml").write_text("{")
    files = find_tests([tmp_path])
    for jobs in (1, 3):
        found = [outcome.result for outcome in run_tests(files, Plan("r"), jobs=jobs)]
        assert [one.test_file for one in found] == [str(file) for file in files]
        assert [one.status for one in found].count("error") == 1


def test_tests_are_chosen_by_name_and_tag(tmp_path):
    """Id, title or path; any of the tags. What cannot be read is never left out."""
    one = write_test(tmp_path / "a", name="rain", more="tags: [wet, slow]\n")
    two = write_test(tmp_path / "b", name="sun", more="tags: [dry]\n")
    bad = tmp_path / "c" / "test.yaml"
    bad.parent.mkdir()
    bad.write_text("{")

    def chosen(**plan):
        return [outcome.result.test_file for outcome in run_tests([one, two, bad], Plan("r", **plan))]

    assert chosen(name="RAIN") == [str(one), str(bad)]
    assert chosen(name="test sun") == [str(two), str(bad)]
    assert chosen(tags=("dry", "hot")) == [str(two), str(bad)]
    assert chosen(name="rain", tags=("dry",)) == [str(bad)]


def test_files_are_collected_in_path_order(tmp_path):
    """Each once; hidden directories are passed over; a named file may have any name."""
    for name in ("b/x", "a/z", "a", ".git/c"):
        write_test(tmp_path / name)
    own = write_test(tmp_path / "z").rename(tmp_path / "z" / "own.yaml")
    found = find_tests([own, tmp_path / "b", tmp_path])
    assert [path.relative_to(tmp_path).as_posix() for path in found] == [
        "z/own.yaml",
        "b/x/test.yaml",
        "a/test.yaml",
        "a/z/test.yaml",
    ]
    with pytest.raises(StoreError, match="nowhere: No such file or directory"):
        find_tests([tmp_path / "nowhere"])


def test_result_files_are_in_their_shape_and_name_each_other(tmp_path):
    """Every artifact is there; ids cannot lead out of the directory."""
    out = tmp_path / "out"
    file = write_test(tmp_path / "t", name="../../etc/x")
    found = run(file, output_directory=out).result
    assert set(found.artifacts) == {"replay_file", "result", "trace"}
    for path in found.artifacts.values():
        assert Path(path).is_file()
    assert Path(found.artifacts["result"]).is_relative_to(out)
    assert read_result(Path(found.artifacts["result"]).read_bytes(), "result") == found
    trace = read_trace(Path(found.artifacts["trace"]).read_bytes(), "trace")
    assert (trace.test_case_id, trace.test_run_id) == ("../../etc/x", "run-1")


def test_a_test_that_could_not_be_run_has_a_result_file_too(tmp_path):
    """With its error, and without a trace."""
    found = run(
        write_test(tmp_path, source="replay_file: gone.json"), output_directory=tmp_path / "out"
    ).result
    assert set(found.artifacts) == {"result"}
    assert read_result(Path(found.artifacts["result"]).read_bytes(), "result") == found


def test_a_test_may_ask_for_its_trace_or_refuse_it(tmp_path, monkeypatch):
    """Without a directory of the user's, traces go to test-results."""
    monkeypatch.chdir(tmp_path)
    asks = write_test(tmp_path / "a", more="reporting: {save_trace: true}\n")
    assert run(asks).result.artifacts["trace"] == "test-results/0001-one/trace.json"
    refuses = write_test(tmp_path / "b", more="reporting: {save_trace: false}\n")
    assert set(run(refuses, output_directory=tmp_path / "o").result.artifacts) == {"replay_file", "result"}


def test_redacted_fields_are_in_no_file_and_no_message(tmp_path):
    """By path or by name, wherever their text appears."""
    file = write_test(
        tmp_path / "t",
        "{id: no, type: tool_args, params: {tool: search, args: {q: coffee}}}",
        more='reporting: {redact_fields: ["$.events[*].data.args.q", group_id]}\n',
    )
    (tmp_path / "t" / "replay.json").write_text(json.dumps(BUNDLE).replace('"tea"', '"green tea"'))
    outcome = run(file, output_directory=tmp_path / "out")
    assert outcome.result.status == "fail"
    written = [path.read_text() for path in (tmp_path / "out").rglob("*.json")]
    for text in [*written, outcome.result.assertions[0].message, *outcome.events.values()]:
        assert "green tea" not in text
        assert '"home"' not in text
    assert "[redacted]" in outcome.result.assertions[0].message


def test_a_projects_own_assertions_are_used_in_every_process(tmp_path):
    """Also by the workers; a changed file is read again."""
    own = tmp_path / "own.py"
    head = "from reenact.suite import Verdict, assertion\n@assertion\ndef fine(trace, params):\n"
    text = head + "    return Verdict(passed=%s, message='m')\n"
    own.write_text(text % True)
    files = [write_test(tmp_path / str(index), "{id: f, type: fine}") for index in range(4)]
    plan = Plan("r", Settings(assertions=(str(own),)))
    assert {outcome.result.status for outcome in run_tests(files, plan, jobs=2)} == {"pass"}
    own.write_text(text % False)
    os.utime(own, ns=(1, 1))
    assert {outcome.result.status for outcome in run_tests(files, plan)} == {"fail"}


def test_a_large_bundle_is_read(tmp_path):
    """Size alone is no reason to fail: 20 MB, most of it one result."""
    file = write_test(tmp_path)
    large = {**BUNDLE, "script": [call("search"), result("search", result=["x" * 1000] * 20_000)]}
    (tmp_path / "replay.json").write_text(json.dumps(large))
    start = perf_counter()
    assert run(file).result.status == "pass"
    assert perf_counter() - start < 20


def test_the_runner_needs_no_running_side():
    """A process that only judges never loads what runs agents."""
    program = (
        "import sys, reenact.suite.runner, reenact.suite.first_test\n"
        "running = ('reenact.run', 'reenact.seams', 'reenact.replayer', 'reenact.recorder')\n"
        "print([name for name in sys.modules if name.startswith(running)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_bundle_of_a_hundred_megabytes_is_judged(tmp_path):
    """A tool that answered with a whole archive is no reason to give up."""
    file = write_test(tmp_path)
    script = [call("search", q="tea"), result("search", text="rain " * 20_000_000)]
    (tmp_path / "replay.json").write_text(json.dumps(BUNDLE | {"script": script}))
    assert run(file).result.status == "pass"
