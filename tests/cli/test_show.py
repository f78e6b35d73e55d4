"""``reenact show``: what a capture says of itself, a line per call, an event in full."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import reenact
from reenact.boundary import Call, crossing
from reenact.cli import main
from reenact.recorder.recovery import note_exit_status
from tests.analysis.recordings import side_by_side
from tests.cli.commands import ENVIRONMENT, command, interrupted, run

GOLDEN = Path(__file__).parents[1] / "golden"

ESCAPE = "\x1b[2J"
CALL = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"order": 7}'}}
MESSAGE = {"role": "assistant", "content": "One moment.", "tool_calls": [CALL]}
ANSWER = {"choices": [{"index": 0, "message": MESSAGE, "finish_reason": "tool_calls"}]}


@reenact.tool
def search(query, limit=2):
    return {"b": [query] * limit, "a": None}


@reenact.tool
def order(item):
    search(item)
    raise KeyError(item)


@reenact.tool
def words(text):
    yield from text.split()


@reenact.tool
def fetch(size):
    return "x" * size


def ask_a_model(said):
    facts = {"provider": "openai_chat", "model": "gpt-5"}
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": [{"type": "text", "text": said}]}]}
    request = {"method": "POST", "url": "https://api.test/v1/chat/completions", "body": body}
    with crossing(Call("llm", "POST /v1/chat/completions", request, facts)) as step:
        step.answer = {"body": json.dumps(ANSWER), "status": 200}
        step.facts = facts | {"stopReason": "tool_calls", "usage": None}


def get(url):
    with crossing(Call("network", f"GET {url}", {"method": "GET", "url": url})) as step:
        step.answer = {"status": 200, "reason": "OK", "bytes": 1400}


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("COLUMNS", "130")
    with reenact.capture(tmp_path / "a", redact="default") as run:
        search("lamp")
        with pytest.raises(KeyError):
            order("desk")
        list(words("a b c"))
        fetch(20_000)
        ask_a_model("Where is my order?")
        get("https://shop.test/orders/7")
        run.clock.now()
        run.memory_write("notes/today", "call back")
        search(f"clear{ESCAPE}")
    return tmp_path / "a"


def rows(text):
    """The listing's lines, without what differs from run to run."""
    table = text.partition("outcome\n")[2].partition("\n\n")[0]
    for line in table.splitlines():
        found = re.fullmatch(r" *(\d+) +([\d.]+) s .{10}  (\S+) *(?:  [│● ]{2})?  (\S.*|  \S.*)", line)
        seq, at, lane, rest = found.groups()
        assert float(at) < 10
        yield int(seq), f"{lane}  " + re.sub(r" {2,}", "  ", rest.lstrip())


def test_a_line_per_call(path, capsys):
    """Each with its event, its lane, what was asked and what came; nested ones further in."""
    assert main(["show", str(path)]) == 0
    assert list(rows(capsys.readouterr().out))[:8] == [
        (2, '0  tool search(limit=2, query="lamp")  {"b": ["lamp", "lamp"], "a": null}'),
        (4, "0  tool order(item=\"desk\")  KeyError: 'desk'"),
        (5, '0/2  tool search(limit=2, query="desk")  {"b": ["desk", "desk"], "a": null}'),
        (8, '0  tool words(text="a b c")  3 pieces'),
        (10, "0  tool fetch(size=20000)  ‹20.0 kB›"),
        (12, '0  model gpt-5 "Where is my order?"  "One moment.", find(order=7)'),
        (14, "0  network GET https://shop.test/orders/7  200 OK 1.4 kB"),
        (16, rows_clock(path)),
    ]


def rows_clock(path):
    text = (path / "events.jsonl").read_text().splitlines()[15]
    return f"0  clock now  {json.loads(text)['data']['value']}"


def test_what_the_capture_says_of_itself_comes_first(path, capsys):
    """State, status, command, model, time, redaction."""
    main(["show", str(path)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(path)
    fields = dict(line.split(maxsplit=1) for line in lines[1:8])
    assert fields["state"] == "complete"
    assert fields["status"] == "ok"
    assert fields["model"] == "gpt-5, openai_chat"
    assert fields["redaction"] == "default"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, took \d+ ms", fields["started"])


def test_what_was_counted_comes_last(path, capsys):
    """Events, calls, and calls by kind."""
    main(["show", str(path)])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "20 events, 10 calls: 6 tool, 1 model, 1 network, 1 clock, 1 state"


@pytest.mark.parametrize("options", [[], ["--json"], ["--at", "18"], ["--play"], ["--follow", "--json"]])
def test_recorded_text_cannot_steer_the_terminal(path, options, capsys):
    """Escape sequences are shown, not sent."""
    with reenact.capture(path.parent / "b", redact="none"):
        for text in (ESCAPE, "\x9b2J", "\u202eright to left", "\r", "new\nline", "\x7f", "\U000e0001"):
            search(text)
    main(["show", str(path.parent / "b"), *(option.replace("18", "2") for option in options)])
    out = capsys.readouterr().out
    assert all(mark.isprintable() for mark in out.replace("\n", ""))
    assert "[2J" in out


def test_the_width_is_kept(path, monkeypatch, capsys):
    """As wide as COLUMNS says, wide characters counted as two."""
    with reenact.capture(path.parent / "b"):
        search("灯" * 100)
    monkeypatch.setenv("COLUMNS", "100")
    main(["show", str(path.parent / "b")])
    [line] = [line for line in capsys.readouterr().out.splitlines() if "灯" in line]
    assert len(line) + line.count("灯") == 100
    assert line.count("…") == 2


def test_an_exit_status_is_shown(path, capsys):
    """As record wrote it."""
    note_exit_status(path, 3)
    main(["show", str(path)])
    assert "\n  status     error, exit status 3\n" in capsys.readouterr().out


def test_json_is_one_object(path, capsys):
    """Written as a stream, read as a whole."""
    assert main(["show", "--json", str(path)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["status"], shown["model"]) == ("complete", "ok", "gpt-5")
    assert (shown["events"], shown["tornBytes"], shown["kinds"]["tool"]) == (20, 0, 6)
    call = shown["calls"][1]
    assert call.pop("atMs") >= 0
    assert call.pop("tookMs") >= 0
    assert call == {
        "seq": 4,
        "place": 1,
        "outcomeSeq": 7,
        "lane": "0",
        "kind": "tool",
        "name": "order",
        "asked": 'item="desk"',
        "state": "error",
        "came": "KeyError: 'desk'",
    }


def test_one_event_in_full(path, capsys):
    """Its payload is fetched from where it is stored."""
    assert main(["show", str(path), "--at", "11"]) == 0
    event = json.loads(capsys.readouterr().out)
    assert (event["seq"], event["type"]) == (11, "tool_result")
    assert event["data"]["result"] == "x" * 20_000


@pytest.mark.parametrize("seq", ["0", "21", "-1"])
def test_an_event_that_is_not_there_is_wrong_usage(path, seq, capsys):
    """The message says which there are."""
    assert main(["show", str(path), "--at", seq]) == 3
    assert capsys.readouterr().err == (
        f"reenact: {path}/events.jsonl: there is no event {seq}; choose 1 to 20\n"
    )


def test_an_open_run_is_shown_as_far_as_it_got(tmp_path, capsys):
    """A call without an outcome says so; half a line is not complained about."""
    with reenact.capture(tmp_path / "a"), crossing(Call("tool", "wait", {})):
        assert main(["show", str(tmp_path / "a")]) == 0
        assert main(["show", str(tmp_path / "a"), "--at", "2"]) == 0
    out = capsys.readouterr().out
    assert "being recorded" in out
    assert " so far\n" in out
    assert re.search(r"tool wait\(\) +no outcome\n", out)
    assert '"tool": "wait"' in out


def test_an_interrupted_run_is_shown_with_what_is_torn(tmp_path, capsys):
    """And with the command that completes it."""
    interrupted(tmp_path / "a", lambda: search("lamp"), torn=b'{"captureId"')
    assert main(["show", str(tmp_path / "a")]) == 0
    out = capsys.readouterr().out
    assert "interrupted; complete it with: reenact recover" in out
    assert out.endswith("3 events, 1 call: 1 tool\nthen half a line, 12 bytes\n")


def test_a_changed_capture_is_shown_and_complained_about(path, capsys):
    """Exit 2 after the listing, in JSON too."""
    log = path / "events.jsonl"
    log.write_text(log.read_text().replace('"lamp"', '"lump"'))
    assert main(["show", str(path)]) == 2
    captured = capsys.readouterr()
    assert 'query="lump"' in captured.out
    assert captured.err.startswith(f"reenact: {log}: the events are not those that were recorded")
    assert main(["show", "--json", str(path)]) == 2
    assert "not those that were recorded" in json.loads(capsys.readouterr().out)["problem"]


def test_a_damaged_line_ends_the_listing(tmp_path, capsys):
    """What stands before it is shown."""
    interrupted(tmp_path / "a", lambda: [search("lamp"), search("desk")])
    log = tmp_path / "a" / "events.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:3], "{}\n", *lines[4:]]))
    assert main(["show", str(tmp_path / "a")]) == 2
    captured = capsys.readouterr()
    assert [seq for seq, _ in rows(captured.out)] == [2]
    assert captured.err.startswith(f"reenact: {log}:4: ")


def test_a_damaged_manifest_is_refused(path, capsys):
    """There is nothing to go by then."""
    (path / "manifest.json").write_text("{")
    assert main(["show", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"reenact: {path}/manifest.json: ")


@pytest.mark.parametrize(("words", "status"), [(["nothing"], 2), ([], 3), (["a", "--at", "x"], 3)])
def test_wrong_usage_is_one_line(words, status, tmp_path, monkeypatch, capsys):
    """Each with its exit status."""
    monkeypatch.chdir(tmp_path)
    assert main(["show", *words]) == status
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)


def on_a_terminal(path, **environment):
    ours, theirs = os.openpty()
    with subprocess.Popen(
        command("show", path), stdout=theirs, env=ENVIRONMENT | {"TERM": "xterm-256color"} | environment
    ):
        os.close(theirs)
        said = b""
        while True:
            try:
                said += os.read(ours, 4096)
            except OSError:
                break
    os.close(ours)
    return said.decode()


def test_a_terminal_gets_colours(path):
    """Red for what failed, and only as many columns as there are."""
    said = on_a_terminal(path, COLUMNS="130")
    assert "\x1b[31mKeyError: 'desk'" in said
    plain = re.sub(r"\x1b\[[\d;]*m", "", said)
    assert max(map(len, plain.partition("outcome")[2].splitlines())) <= 130


def test_no_color_is_honoured(path):
    """No colour, whatever the terminal can do."""
    assert not re.search(r"\x1b\[[\d;]*3\dm", on_a_terminal(path, NO_COLOR="1"))


def test_any_artifact_is_shown(monkeypatch, capsys):
    """A log in the older dialect, say."""
    monkeypatch.setenv("COLUMNS", "110")
    assert main(["show", str(GOLDEN / "replay_log" / "legacy.jsonl")]) == 0
    out = capsys.readouterr().out
    assert "\n  kind       replay log, older dialect\n" in out
    assert re.search(
        r"\n +4 +2.000 s +45 ms  0 +tool file_read\(path=\"src/auth.rs\"\) +‹sha256:5ffedee05d6f…›\n", out
    )
    assert out.endswith("8 events, 4 calls: 2 plan, 1 tool, 1 verification\n")


def test_only_what_was_asked_for_is_shown(path, capsys):
    """All terms must fit; the counts say how many did."""
    assert main(["show", str(path), "--filter", "tool:search", "--filter", "!lane:0/2"]) == 0
    out = capsys.readouterr().out
    assert [seq for seq, _ in rows(out)] == [2, 18]
    assert out.splitlines()[-1].endswith(", 2 shown")
    assert main(["show", str(path), "--json", "--filter", "error"]) == 0
    assert [call["name"] for call in json.loads(capsys.readouterr().out)["calls"]] == ["order"]


def test_calls_side_by_side_are_drawn_side_by_side(tmp_path, capsys):
    """A column each."""
    with reenact.capture(tmp_path / "a"):
        side_by_side("a", "b", "c")
    main(["show", str(tmp_path / "a")])
    gutters = re.findall(r"  ([│● ]{3})  tool wait", capsys.readouterr().out)
    assert gutters == ["●  ", "│● ", "││●"]


def test_a_run_is_played(path, capsys):
    """Each call when it was made and when it ended."""
    assert main(["show", str(path), "--play", "--speed", "0", "--filter", "name:order"]) == 0
    lines = capsys.readouterr().out.partition("outcome\n")[2].splitlines()
    assert re.fullmatch(r" +4 .* tool order\(item=\"desk\"\)", lines[0].rstrip())
    assert re.fullmatch(r" +7 .* ms .* ⤷ tool order +KeyError: 'desk'", lines[1])


def test_a_run_is_played_in_its_own_time(tmp_path, capsys):
    """As fast as asked; long pauses are cut short."""
    with reenact.capture(tmp_path / "a"):
        search("lamp")
        time.sleep(0.2)
        search("desk")

    def took_s(speed):
        began_s = time.monotonic()
        assert main(["show", str(tmp_path / "a"), "--play", "--speed", speed]) == 0
        return time.monotonic() - began_s

    assert took_s("1") >= 0.2
    assert min(took_s("1000") for _ in range(3)) < 0.2


def test_a_run_being_recorded_is_followed_to_its_end(tmp_path):
    """What comes is written at once; half a line is waited for."""
    begin, more = tmp_path / "begin", tmp_path / "more"
    agent = (
        "import pathlib, time, reenact\n"
        "search = reenact.tool(lambda query: query, name='search')\n"
        f"with reenact.capture({str(tmp_path / 'a')!r}, redact='none'):\n"
        "    search('first')\n"
        f"    pathlib.Path({str(begin)!r}).touch()\n"
        f"    while not pathlib.Path({str(more)!r}).exists(): time.sleep(0.01)\n"
        "    search('second')\n"
    )
    with subprocess.Popen([sys.executable, "-c", agent], env=ENVIRONMENT) as recording:
        while not begin.exists():
            time.sleep(0.01)
        with subprocess.Popen(
            command("show", tmp_path / "a", "--follow", "--json", "--filter", "tool:search"),
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
            text=True,
        ) as following:
            assert json.loads(following.stdout.readline())["asked"] == 'query="first"'
            assert json.loads(following.stdout.readline())["ends"] is True
            more.touch()
            rest = [json.loads(line) for line in following.stdout.read().splitlines()]
        assert recording.wait(30) == 0
    assert [(moment["asked"], moment["begins"]) for moment in rest] == [
        ('query="second"', True),
        ('query="second"', False),
    ]
    assert following.returncode == 0


@pytest.mark.parametrize(
    "options",
    [
        ["--at", "2", "--play"],
        ["--speed", "2"],
        ["--play", "--speed", "-1"],
        ["--filter", "color:red"],
        ["--at", "2", "--filter", "error"],
    ],
)
def test_options_that_contradict_are_wrong_usage(path, options, capsys):
    """In one line."""
    assert main(["show", str(path), *options]) == 3
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)


def test_a_folder_of_runs_is_listed(tmp_path):
    """A line for each, whatever its state; one that is damaged is named and the others are still there."""
    for name in ("one", "two"):
        with reenact.capture(tmp_path / "runs" / name):
            pass
    done = run("show", "runs", cwd=tmp_path)
    assert done.returncode == 0
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [["runs/one", "ok"], ["runs/two", "ok"]]
    done = run("show", "runs", "--json", cwd=tmp_path)
    assert [each["path"] for each in json.loads(done.stdout)] == ["runs/one", "runs/two"]
    (tmp_path / "runs" / "one" / "manifest.json").write_text("{")
    done = run("show", "runs", cwd=tmp_path)
    assert done.returncode == 2
    assert "runs/one/manifest.json" in done.stderr
    assert "runs/two" in done.stdout


def test_one_of_a_folder_must_be_named(tmp_path):
    """What is about one run is not asked of many."""
    with reenact.capture(tmp_path / "runs" / "one"):
        pass
    done = run("show", "runs", "--at", "1", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, "reenact: runs: is a folder of runs; name one of them\n")


@pytest.mark.parametrize(
    "term",
    [
        "colour:red",
        "kinds:tool",
        "tool-name:x",
        "state:eror",
        "state:ok,eror",
        "kind:nonsense",
        "!kind:tool,x*",
    ],
)
def test_unknown_filters_are_refused(term, tmp_path):
    """Nothing found and nothing to be found are two things."""
    with reenact.capture(tmp_path / "run"):
        pass
    done = run("show", "run", "--filter", term, cwd=tmp_path)
    assert done.returncode == 3
    assert "use one of" in done.stderr


@pytest.mark.parametrize("how", [[], ["--json"], ["--play", "--speed", "0"], ["--follow"]])
def test_the_kinds_there_are_may_be_absent_and_those_of_a_run_count(how, tmp_path, capsys):
    """A run that has no such step shows none; a value from a source of the user's own is a kind as well."""
    with reenact.capture(tmp_path / "run") as run:
        run.context.record_nondeterministic("dice", "roll", 4)
    for term, shown in [("kind:rng", False), ("kind:dice", True), ("kind:d?c*", True)]:
        assert main(["show", str(tmp_path / "run"), "--filter", term, *how]) == 0
        assert ("roll" in capsys.readouterr().out) is shown
    assert main(["show", str(tmp_path / "run"), "--filter", "kind:dise", *how]) == 3
    assert capsys.readouterr() == (
        "",
        "reenact: --filter kind: unknown kind 'dise'; use one of tool, model, state, network, process, "
        "clock, rng, message, plan, verification, error, dice\n",
    )


def test_one_event_of_a_long_run_is_read_alone(tmp_path, monkeypatch):
    """Neither are the events before it decoded, nor is the rest of the run checked."""

    @reenact.tool
    def look(number):
        return number

    with reenact.capture(tmp_path / "run"):
        for number in range(500):
            look(number)
    from reenact.analysis.index import StepIndex

    monkeypatch.setattr(StepIndex, "add", None)
    assert main(["show", str(tmp_path / "run"), "--at", "900"]) == 0
    (tmp_path / "run" / "events.jsonl").write_bytes(
        (tmp_path / "run" / "events.jsonl").read_bytes().replace(b'"number":7}', b'"number":8}')
    )
    assert main(["show", str(tmp_path / "run"), "--at", "900"]) == 0


@pytest.mark.parametrize("seq", ["0", "-1", "6", "1000000"])
def test_an_event_that_there_is_not_is_wrong_usage(seq, tmp_path, capsys):
    """The message says which there are."""
    with reenact.capture(tmp_path / "run") as run:
        run.uuid4()
        run.uuid4()
    assert main(["show", str(tmp_path / "run"), "--at", seq]) == 3
    assert f"there is no event {seq}; choose 1 to 4" in capsys.readouterr().err


@reenact.tool
def look_up(name):
    return {"about": f"{name} " * 10_000}  # so long that it is kept in a blob


def _record_names(path, *names):
    with reenact.capture(path):
        for name in names:
            look_up(name)


def test_git_diff_shows_what_was_said_and_done(tmp_path):
    """Of the working tree as of a commit, with payloads in blobs."""

    def git(*words):
        ours = " ".join(command("show", "--transcript"))
        options = ("-c", "user.name=Ada", "-c", "user.email=a@b.org", "-c", f"diff.reenact.textconv={ours}")
        done = subprocess.run(
            ["git", *options, *words],
            cwd=tmp_path,
            env=ENVIRONMENT | {"HOME": str(tmp_path)},
            capture_output=True,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()

    (tmp_path / ".gitattributes").write_text("*.jsonl diff=reenact\n")
    git("init", "-q")
    _record_names(tmp_path / "run", "Ada", "Grace")
    git("add", ".")
    git("commit", "-qm", "first")
    shutil.rmtree(tmp_path / "run")
    _record_names(tmp_path / "run", "Ada", "Edith")
    changes = [
        line for line in git("diff", "HEAD", "--", "run/events.jsonl").splitlines() if line[:1] in ("+", "-")
    ]
    assert [line for line in changes if "{" in line] == ['-    {"name": "Grace"}', '+    {"name": "Edith"}']
    assert [line[:12] for line in changes if "sha256" in line] == ["-    sha256:", "+    sha256:"]
    assert "Grace" in git("log", "-p", "--", "run/events.jsonl")


@pytest.mark.parametrize("name", ["run", "run/events.jsonl"])
def test_a_transcript_is_printed(tmp_path, name, capsys):
    _record_names(tmp_path / "run", "Ada")
    assert main(["show", "--transcript", str(tmp_path / name)]) == 0
    assert capsys.readouterr().out.startswith("# Transcript\n")
    assert reenact.transcript(tmp_path / "run") == (tmp_path / "run" / "transcript.md").read_text()


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["nowhere"], 2, "nowhere: No such file or directory"),
        (["."], 2, ".: "),
        (["notes.txt"], 3, "notes.txt: is not a capture or its events.jsonl"),
        (["notes.txt", "--at", "2"], 3, "--transcript prints the whole run"),
    ],
)
def test_a_transcript_of_something_else_is_one_line(tmp_path, words, status, said, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    assert main(["show", "--transcript", *words]) == status
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert said in captured.err
