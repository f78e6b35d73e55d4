"""One view of every readable artifact: what it says of itself, its steps, any step in full."""

import json
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import openai
import pytest

import reenact
from reenact.analysis.artifact import Playback, open_artifact
from reenact.analysis.index import parse_terms
from reenact.boundary import Call, crossing
from reenact.check.kinds import is_run
from reenact.errors import FormatError, StoreError, UsageError
from reenact.suite.settings import Price
from reenact.testing import Reply, ScriptedProvider
from tests.analysis.recordings import ask, fetch, multiply, order, record, search, side_by_side
from tests.cli.commands import interrupted

GOLDEN = Path(__file__).parents[1] / "golden"
CALLS = 50_000
ARTIFACTS = {
    "replay_log/current.jsonl": ("replay-log", "error", 3, 1),
    "replay_log/current-published.jsonl": ("replay-log", "error", 3, 1),
    "replay_log/current-windows.jsonl": ("replay-log", None, 1, 0),
    "replay_log/legacy.jsonl": ("replay-log-legacy", "ok", 4, 0),
    "bundle/every-step.json": ("bundle", "partial", 6, 3),
    "trace/every-step.json": ("trace", "partial", 6, 3),
}


@pytest.mark.parametrize("name", ARTIFACTS)
def test_every_kind_of_artifact_is_opened(name):
    """By what it is, not by what it is called."""
    with open_artifact(GOLDEN / name) as artifact:
        steps = artifact.steps()
        header, counts = artifact.header(), artifact.counts()
        found = header.kind, header.status, len(steps), counts.states.get("error", 0)
        assert found == ARTIFACTS[name]
        assert counts.is_complete
        for step in steps:
            detail = artifact.detail(step.seq)
            assert detail.step == step
            assert detail.events
            msgspec.json.encode(detail)


def test_the_same_run_looks_the_same_in_every_form():
    """A bundle and its trace differ in nothing a viewer shows."""
    forms = [GOLDEN / "bundle/every-step.json", GOLDEN / "trace/every-step.json"]
    with open_artifact(forms[0]) as bundle, open_artifact(forms[1]) as trace:
        assert bundle.steps() == trace.steps()


def test_a_published_log_shows_digests():
    """In place of what it withholds."""
    with open_artifact(GOLDEN / "replay_log/current-published.jsonl") as artifact:
        step = artifact.steps()[0]
        assert (step.name, step.asked) == ("shell_command", "‹sha256:51ea2ba88c71…›")
        assert step.utility == pytest.approx(0.8)


def test_calls_with_their_outcomes(tmp_path):
    """Nested ones know the call around them, failed ones what failed."""
    with reenact.capture(tmp_path / "a", redact="none"):
        search("lamp")
        with pytest.raises(KeyError):
            order("desk")
    with open_artifact(tmp_path / "a") as artifact:
        first, outer, inner = artifact.steps()
    assert (first.name, first.asked, first.state) == ("search", 'limit=2, query="lamp"', "ok")
    assert (outer.state, outer.came, outer.outcome_seq) == ("error", "KeyError: 'desk'", 7)
    assert (inner.parent_seq, inner.depth, inner.column, inner.beside) == (outer.seq, 1, 1, (0,))


def test_state_that_was_read_is_over_when_it_is_written(tmp_path):
    """It has the id of a call, and one event."""
    with reenact.capture(tmp_path / "a") as run:
        run.memory_read("notes/today", lambda: "call back")
        search("lamp")
    with open_artifact(tmp_path / "a") as artifact:
        read, _ = artifact.steps()
    assert (read.kind, read.state, read.asked, read.came) == ("state", "ok", "notes/today", '"call back"')


def test_calls_that_overlap_have_columns_of_their_own(tmp_path):
    """As many as were open at once, and not one more."""
    with reenact.capture(tmp_path / "a"):
        side_by_side("a", "b", "c")
        search("d")
    with open_artifact(tmp_path / "a") as artifact:
        steps = artifact.steps()
        assert artifact.counts().columns == 3
    assert [step.column for step in steps] == [0, 1, 2, 0]
    assert [step.beside for step in steps] == [(), (0,), (0, 1), ()]
    assert len({step.lane for step in steps[:3]}) == 3


def test_payloads_come_from_wherever_they_are(tmp_path):
    """Out of blobs, and out of the earlier requests they repeat."""
    chat = ["Tell me about lamps, please. " * 20]
    with reenact.capture(tmp_path / "a", redact="none"):
        for turn in range(4):
            ask(*chat)
            chat += [f"Answer {turn}. " * 30, f"And then? {turn} " * 30]
        fetch(20_000)
    assert b'"$ref"' in (tmp_path / "a" / "events.jsonl").read_bytes()
    with open_artifact(tmp_path / "a") as artifact:
        last = artifact.detail(artifact.steps()[3].seq).payloads
        texts = [message["parts"][0]["text"] for message in last.conversation.messages]
        assert texts == chat[:7]
        assert last.conversation.answer == [{"kind": "text", "text": "Hello."}]
        assert artifact.detail(artifact.steps()[4].seq).payloads.response == "x" * 20_000


def test_what_a_large_model_call_says_is_on_its_line(tmp_path):
    """Although it is kept in a blob."""
    with reenact.capture(tmp_path / "a", redact="none"):
        ask("x" * 20_000, "y", "Where is it?")
    assert b'"$blob"' in (tmp_path / "a" / "events.jsonl").read_bytes()
    with open_artifact(tmp_path / "a") as artifact:
        [step] = artifact.steps()
    assert (step.asked, step.came) == ('"Where is it?"', '"Hello."')


def test_events_without_their_capture(tmp_path):
    """As git hands them over: what is in blobs is named, everything else is there."""
    with reenact.capture(tmp_path / "a", redact="none") as run:
        search("lamp")
        fetch(20_000)
        run.final_output = "done"
    shutil.copy(tmp_path / "a" / "events.jsonl", tmp_path / "b.jsonl")
    with open_artifact(tmp_path / "b.jsonl") as artifact:
        assert (artifact.header().kind, artifact.header().final_output) == ("events", "done")
        small, large = artifact.steps()
        assert artifact.detail(small.seq).problems == []
        [problem] = artifact.detail(large.seq).problems
        assert problem.endswith("name the capture's directory")


@pytest.mark.parametrize("name", ["events.jsonl", "manifest.json"])
def test_a_file_of_a_capture_stands_for_it(tmp_path, name):
    """So that nobody has to cut a path."""
    path = record(tmp_path / "a", "lamp")
    with open_artifact(path / name) as artifact:
        assert artifact.header().kind == "capture"


def test_tokens_and_what_they_cost(tmp_path):
    """By the project's own table; a model without a price has no cost, and so has the sum."""
    with reenact.capture(tmp_path / "a"):
        ask("hi")
        ask("ho", model="other")
    with open_artifact(tmp_path / "a", {"gpt-*": Price(input=10, output=50, cached_input=1)}) as artifact:
        known, unknown = artifact.steps()
        assert known.tokens == unknown.tokens
        assert known.cost == pytest.approx((60 * 10 + 40 * 1 + 20 * 50) / 1_000_000)
        assert unknown.cost is None
        counts = artifact.counts()
        assert (counts.tokens.input, counts.tokens.output, counts.cost) == (200, 40, None)
        assert counts.models == {"gpt-5": 1, "other": 1}


def test_pages_are_cut_from_one_list(tmp_path):
    """Wherever they start."""
    with open_artifact(multiply(tmp_path / "a", 250)) as artifact:
        everything = artifact.steps(0, 250)
        assert [step.place for step in everything] == list(range(250))
        assert artifact.steps(100, 30) == everything[100:130]
        assert artifact.steps(240, 30) == everything[240:]
        assert artifact.steps(300, 30) == []
        assert artifact.place_of(everything[7].outcome_seq) == 7


@pytest.mark.slow
def test_a_large_capture_opens_like_a_small_one(tmp_path):
    """A page reads little; everything is indexed in a few bytes per step."""
    path = multiply(tmp_path / "a", CALLS)
    tracemalloc.start()
    try:
        with open_artifact(path) as artifact:
            assert len(artifact.steps(0, 100)) == 100
            assert artifact.read_bytes < artifact.size_bytes / 4
            assert not artifact.counts().is_complete
            assert artifact.index()
            assert artifact.counts().events == 100_002
            [middle] = artifact.steps(25_000, 1)
            assert (middle.asked, middle.took_ms) == ('limit=2, query="lamp 25000"', 1)
            current_bytes, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert current_bytes / CALLS < 150
    assert peak_bytes - current_bytes < 8_000_000


def test_a_run_being_recorded_grows(tmp_path):
    """A step is open until its outcome is written."""
    with reenact.capture(tmp_path / "a"), open_artifact(tmp_path / "a") as artifact:
        with crossing(Call("tool", "wait", {})) as step:
            assert [step.state for step in artifact.steps()] == ["open"]
            step.answer = 1
        assert artifact.header().is_open
        artifact.index()
        assert [step.state for step in artifact.steps()] == ["ok"]


def test_half_a_line_is_waited_for(tmp_path):
    """It is no event, and no damage."""
    interrupted(tmp_path / "a", lambda: search("lamp"), torn=b'{"half')
    with open_artifact(tmp_path / "a") as artifact:
        assert len(artifact.steps()) == 1
        assert (artifact.counts().torn_bytes, artifact.problem) == (6, None)


def test_moments_come_in_the_order_of_events(tmp_path):
    """Each step twice, or once where it is one event, whenever it is asked."""
    with reenact.capture(tmp_path / "a") as run, open_artifact(tmp_path / "a") as artifact:
        playback = Playback(artifact)
        seen = []
        for query in "ab":
            with crossing(Call("tool", "outer", {"q": query})) as step:
                run.clock.now()
                artifact.index()
                seen += playback.moments()
                step.answer = 1
        artifact.index()
        seen += playback.moments()
    assert [(moment.seq, moment.begins, moment.ends) for moment in seen] == [
        (2, True, False),
        (3, True, True),
        (4, False, True),
        (5, True, False),
        (6, True, True),
        (7, False, True),
    ]


def test_what_stands_before_damage_can_be_looked_at(tmp_path):
    """And the damage is named with its line."""
    interrupted(tmp_path / "a", lambda: [search("lamp"), search("desk")])
    log = tmp_path / "a" / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:3], b'{"seq": 4, "ts": "never"}\n', *lines[4:]]))
    with open_artifact(tmp_path / "a") as artifact:
        assert [step.asked for step in artifact.steps()] == ['limit=2, query="lamp"']
        assert isinstance(artifact.problem, FormatError)
        assert (artifact.problem.line, artifact.counts().is_complete) == (4, True)


@pytest.mark.parametrize(
    ("text", "error"),
    [("", FormatError), ("[1]", FormatError), ("\x00\x01", FormatError), ('{"a": 1}', FormatError)],
    ids=["empty", "array", "binary", "other"],
)
def test_what_is_no_run_is_refused(tmp_path, text, error):
    """With what could be named instead."""
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(error, match="not a run; name a capture"):
        open_artifact(tmp_path / "x.json")
    assert not is_run(tmp_path / "x.json")
    with pytest.raises(StoreError, match="holds no run"):
        open_artifact(tmp_path)


def test_a_newer_log_is_refused(tmp_path):
    """Never half-read."""
    log = tmp_path / "REPLAY.jsonl"
    log.write_text(
        '{"created_at":"2026-01-01T00:00:00Z","producer":"x","replay_version":9,"type":"ReplayHeader"}\n'
    )
    with pytest.raises(FormatError, match="newer"):
        open_artifact(log)


FILTERS = {
    "kind:model": ["gpt-5"],
    "kind:model,state": ["gpt-5", "memory_write"],
    "tool:s*": ["search", "search"],
    "!kind:tool": ["gpt-5", "memory_write"],
    "error": ["order"],
    "state:error": ["order"],
    "lane:0/2": ["search"],
    "name:order": ["order"],
    "LAMP": ["search", "fetch"],
    "text:call back": ["memory_write"],
    "text:xxxlamp": ["fetch"],
}


@pytest.mark.parametrize("term", FILTERS)
def test_steps_are_found(tmp_path, term):
    """By what the index knows, and by all text that was recorded."""

    @reenact.tool(name="fetch")
    def large(word):
        return "x" * 20_000 + word

    with reenact.capture(tmp_path / "a", redact="none") as run:
        search("lamp")
        with pytest.raises(KeyError):
            order("desk")
        ask("Where is it?")
        run.memory_write("notes/today", "call back")
        large("lamp")
    with open_artifact(tmp_path / "a") as artifact:
        found = artifact.find(parse_terms([term]))
    assert ([step.name for step in found.steps], found.next_place) == (FILTERS[term], None)


def test_looking_goes_on_where_it_stopped(tmp_path):
    """Page by page, without a step twice."""
    with open_artifact(multiply(tmp_path / "a", 300)) as artifact:
        terms = parse_terms(["tool:search", "lamp 1"])
        places, start = [], 0
        while start is not None:
            found = artifact.find(terms, start, 20)
            places += [step.place for step in found.steps]
            start = found.next_place
    assert places == [place for place in range(300) if str(place).startswith("1")]


@pytest.mark.parametrize("term", ["color:red", "kind:", "!"])
def test_a_filter_that_says_nothing_is_wrong_usage(term):
    """With what it could say."""
    with pytest.raises(UsageError, match=f"--filter {term!r}: "):
        parse_terms([term])


def test_events_that_are_no_steps_have_no_detail(tmp_path):
    """They can be seen as they are."""
    with open_artifact(record(tmp_path / "a", "lamp")) as artifact:
        assert artifact.event(1)["type"] == "run_start"
        with pytest.raises(UsageError, match="event 1 is not a step"):
            artifact.detail(1)
        with pytest.raises(UsageError, match="there is no event 9; choose 1 to 4"):
            artifact.event(9)


@reenact.tool
def fill(turn: int, text: str) -> dict[str, Any]:
    return {"callId": "c1", "text": text}


def chat_capture(path: Path, filler: str) -> None:
    """A chat whose requests share their beginning, with tool calls in between."""
    said: list[Any] = [{"role": "user", "content": "Begin."}]
    with (
        ScriptedProvider(Reply("Go on.")) as provider,
        openai.OpenAI(base_url=provider.base_url("openai"), api_key="k") as client,
        reenact.capture(path),
    ):
        for turn in range(8):
            client.chat.completions.create(model="m", messages=said)
            said += [{"role": "assistant", "content": "Go on."}, {"role": "user", "content": f"{turn}"}]
            fill(turn, filler)


@pytest.mark.parametrize("filler", ["", "z" * 700, "z" * 9_000], ids=["short", "medium", "beyond a block"])
def test_one_event_is_found_without_reading_up_to_it(filler, tmp_path, monkeypatch):
    """With all that it shares with earlier ones, among lines of any length."""
    monkeypatch.setattr("reenact.store.line_file._BLOCK_BYTES", 2_048)
    chat_capture(tmp_path / "run", filler)
    with open_artifact(tmp_path / "run") as whole:
        whole.steps()
        assert b'"$ref"' in (tmp_path / "run/events.jsonl").read_bytes()
        for seq in range(1, whole.counts().events + 1):
            with open_artifact(tmp_path / "run") as fresh:
                assert fresh.event(seq) == whole.event(seq)
                assert fresh.counts().events == 0


def test_one_event_of_a_log_is_found_without_judging_those_before_it(tmp_path):
    """By its line."""
    golden = GOLDEN / "replay_log/current.jsonl"
    with open_artifact(golden) as fresh:
        assert fresh.event(5) == json.loads(golden.read_text().splitlines()[4])
        assert fresh.counts().events == 0


def test_an_event_that_is_not_there_is_said_so(tmp_path):
    """With the numbers that there are."""
    chat_capture(tmp_path / "run", "")
    with open_artifact(tmp_path / "run") as artifact, pytest.raises(UsageError, match="there is no event 99"):
        artifact.event(99)
    with open_artifact(tmp_path / "run") as artifact, pytest.raises(UsageError, match="there is no event 0"):
        artifact.event(0)


def test_one_event_of_a_damaged_log_is_found_beside_the_damage(tmp_path):
    """Where another line cannot be read, or says another number; the damage itself is named."""
    chat_capture(tmp_path / "run", "")
    file = tmp_path / "run/events.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    with open_artifact(file) as artifact:
        whole = [artifact.event(seq) for seq in range(1, len(lines) + 1)]
    tools = [seq for seq in range(2, len(lines)) if whole[seq - 1]["type"] == "tool_call"]
    for damage in (b"{}\n", b"half a li\n", lines[3]):
        file.write_bytes(b"".join([*lines[:9], damage, *lines[10:]]))
        for seq in tools:
            with open_artifact(file) as artifact:
                assert artifact.event(seq) == whole[seq - 1]
        with open_artifact(file) as artifact, pytest.raises(FormatError, match=r"events\.jsonl:10"):
            artifact.event(10)


def test_a_reference_to_nobody_is_said_so(tmp_path):
    """As when all is read."""
    chat_capture(tmp_path / "run", "")
    file = tmp_path / "run/events.jsonl"
    text = file.read_bytes()
    file.write_bytes(text.replace(b'"call":"c7"', b'"call":"x"'))
    last = max(number for number, line in enumerate(text.splitlines(), 1) if b'"$ref"' in line)
    with open_artifact(file) as artifact, pytest.raises(FormatError, match="refers to what is not there"):
        artifact.event(last)
