"""Well-formed events with hostile contents: every verb reads them or says in one line why not.

A recorded run is taken, values in its events are changed, and hashes and numbers are made to fit, so that
nothing is refused before the contents are looked at.
"""

import copy
import gc
import io
import json
import shutil
import traceback
from contextlib import redirect_stderr, redirect_stdout
from hashlib import sha256

import pytest

import reenact
from reenact.canonical import encode_clean
from reenact.cli import main, terminal
from reenact.errors import FormatError, ReenactError
from reenact.formats.capture import event_codec, manifest_codec, read_manifest, write_manifest
from tests.analysis.recordings import ask, fetch, order, search, side_by_side
from tests.hard import HARD, chance, rounds, say
from tests.viewer.recordings import support_run

DIGEST = "sha256:" + "0" * 64
VALUES = [
    *(None, True, False, 0, -1, 1, 2**63 - 1, -(2**63), 1.5, 1e308, -0.0, 5e-324),
    *("", "x", "0", "-1", "nan", "c1", "c2", "ok", "\u0000", "\u202e\u2028", "\U0001f600" * 3, "x" * 3000),
    *("$", "$.a[0]", "{}", "[]", '{"a":', "data: [DONE]\n\n", "2026-02-30T25:61:61Z", "text/event-stream"),
    *([], [None], [[]], [[[[[[]]]]]], [1, "x", {}], [{"role": 1, "content": {"x": []}}], [{}] * 50),
    *({}, {"": ""}, {"a": {"b": {"c": [None]}}}, {"type": "text"}, {"type": 5, "text": []}),
    *({"$blob": DIGEST, "bytes": 5}, {"$blob": 5}, {"$blob": "x", "bytes": -1}, {"$json": "{"}, {"$json": 3}),
    *(
        {"$ref": 1},
        {"$ref": {"call": "c1", "path": [], "items": -1}, "then": 5},
        {"$ref": {"call": [], "path": 1}},
    ),
    *({"$ref": {"call": "c1", "path": ["body", "messages"], "items": 1}, "then": [None]},),
    *({"$py": "tuple", "value": 5}, {"$py": []}, {"$bytes": "%"}, {"$float": "x"}, {"$opaque": {}}),
    *({"role": "assistant", "content": [{"type": "tool_use", "id": 1, "name": [], "input": "x"}]},),
    *({"choices": [{"delta": {"tool_calls": [{"index": "x"}]}}]}, {"choices": {}}, {"usage": []}),
]
KEYS = ["callId", "content", "messages", "body", "lane", "parent", "error", "usage", "", "$blob", "type"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Runs with every kind of event."""
    folder = tmp_path_factory.mktemp("recorded")
    support_run(folder / "support")
    with reenact.capture(folder / "tools", redact="none") as run:
        search("lamp")
        ask("Hello?")
        ask("Hello?", "Hello.", "And now?", "x" * 20_000)
        side_by_side("a", "b")
        fetch(20_000)
        with pytest.raises(KeyError):
            order("chair")
        run.memory_write("notes", {"a": 1}, group_id="g", source="agent")
        run.context.record_nondeterministic("clock", "now", 12.5)
        run.final_output = {"answer": [1, 2]}
    (folder / "files").mkdir()
    (folder / "files" / "list.txt").write_text("a lamp")
    with reenact.capture(folder / "shop", redact="none", workspace=folder / "files"):
        search("lamp")
        (folder / "files" / "list.txt").write_text("a lamp, a chair")
        search("chair")
    return [folder / "support", folder / "tools", folder / "shop"]


def places(value, path=()):
    """Every place in a JSON value, as its path."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def change(event, random):
    """Change one place in the data of *event*."""
    path = random.choice([path for path in places(event["data"]) if path] or [()])
    if not path:
        event["data"][random.choice(KEYS)] = copy.deepcopy(random.choice(VALUES))
        return
    holder = event["data"]
    for key in path[:-1]:
        holder = holder[key]
    act = random.randrange(10)
    if act < 6:
        holder[path[-1]] = copy.deepcopy(random.choice(VALUES))
    elif act == 6:
        del holder[path[-1]]
    elif act == 7 and isinstance(holder, dict):
        holder[random.choice(KEYS)] = holder.pop(path[-1])
    elif act == 8 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[path[-1]]))
    else:
        text = holder[path[-1]]
        holder[path[-1]] = text[: len(text) // 2] if isinstance(text, str) else [text]


def is_event(event):
    try:
        event_codec.from_bytes(encode_clean(event))
    except FormatError:
        return False
    return True


def hostile(source, target, random):
    """A copy of the capture *source* with a few events changed; returns how many."""
    shutil.copytree(source, target)
    events = [json.loads(line) for line in (source / "events.jsonl").read_bytes().splitlines()]
    changed = 0
    for _ in range(random.randint(2, 6)):
        place = random.randrange(len(events))
        event = copy.deepcopy(events[place])
        for _ in range(random.randint(1, 3)):
            change(event, random)
        if random.random() < 0.1:
            event["ts"] = random.choice([0, -1, 1e308, 2**53, event["ts"] + 0.5])
        if is_event(event):
            events[place] = event
            changed += 1
    if random.random() < 0.1:
        events.insert(random.randrange(1, len(events)), copy.deepcopy(random.choice(events)))
    for seq, event in enumerate(events, 1):
        event["seq"] = seq
    text = b"".join(encode_clean(event) + b"\n" for event in events)
    (target / "events.jsonl").write_bytes(text)
    manifest = manifest_codec.to_json(read_manifest((target / "manifest.json").read_bytes(), file=""))
    manifest["integrity"]["eventsHash"] = "sha256:" + sha256(text).hexdigest()
    manifest["eventCount"] = len(events)
    (target / "manifest.json").write_bytes(write_manifest(manifest_codec.from_json(manifest)))
    return changed


VERBS = [
    ["show", "RUN"],
    ["show", "RUN", "--json"],
    ["convert", "RUN", "--to", "replay-log", "-o", "OUT"],
    ["convert", "RUN", "--to", "replay-log-legacy", "-o", "OUT"],
    ["convert", "RUN", "--to", "receipt", "-o", "OUT"],
    ["convert", "RUN", "--to", "bundle", "-o", "OUT"],
    ["convert", "RUN", "--to", "trace", "-o", "OUT"],
    ["convert", "RUN", "--to", "actions", "-o", "OUT"],
    ["publish", "RUN", "-o", "OUT"],
    ["publish", "RUN", "-o", "OUT", "--policy", "open"],
    ["diff", "RUN", "OTHER"],
    ["diff", "OTHER", "RUN", "--json"],
    ["verify", "RUN"],
    ["stats", "RUN"],
    ["recover", "RUN"],
    ["view", "RUN", "--full", "--html", "OUT"],
    *(
        ["export", "RUN", "--to", form, "-o", "OUT"]
        for form in ("sft", "preference", "otlp", "atif", "har", "parquet")
    ),
    ["index", "RUN", "-o", "OUT"],
    ["query", "select * from events", "RUN"],
    ["test", "--init", "RUN", "OUT"],
    ["files", "RUN"],
    ["files", "RUN", "--at", "3"],
    ["checkout", "RUN", "--at", "3", "-o", "OUT"],
    ["pack", "RUN", "-o", "OUT"],
    ["ls", "RUN"],
    ["show", "RUN", "--tree"],
    ["import", "RUN", "-o", "OUT"],
]


def defects(run, other, folder, ways):
    """Where in our code one of *ways* fell over *run*, each place once."""
    found = {}
    for number, words in enumerate(ways):
        names = {"RUN": str(run), "OTHER": str(other), "OUT": str(folder / f"out{number}")}
        seen = []
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
            patch.setattr(terminal, "_defect", lambda error, seen=seen: seen.append(error) or "defect")
            with redirect_stderr(io.StringIO()):
                main([names.get(word, word) for word in words])
        del out
        for error in seen:
            frames = traceback.extract_tb(error.__traceback__)
            ours = [frame for frame in frames if "/reenact/" in frame.filename][-1]
            place = f"{ours.filename.rpartition('/reenact/')[2]}:{ours.lineno}"
            found[f"{type(error).__name__} at {place}"] = f"{' '.join(words)}: {error}"
        assert not any(isinstance(error, ReenactError) for error in seen)
    return found


def test_no_verb_falls_over_hostile_events(recorded, tmp_path):
    """One error of ours per file at most, never an internal one."""
    random = chance("hostile events")
    found, events, files = {}, 0, 0
    wanted = rounds(250, 15_000)
    while events < wanted:
        source = random.choice(recorded)
        files += 1
        run = tmp_path / str(files)
        events += hostile(source, run, random)
        defect = defects(run, source, tmp_path, VERBS if HARD else random.sample(VERBS, 14))
        found |= {place: f"{said} ({run.name})" for place, said in defect.items() if place not in found}
        for left in [run, *tmp_path.glob("out*")]:
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    say(f"{events} hostile events in {files} files, {len(VERBS) if HARD else 14} calls of verbs each")
    assert found == {}


ODD = {
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep enough": b"[" * 900 + b"]" * 900,
    "large": b"9" * 100_000,
    "infinite": b"1e999999",
}


@pytest.fixture
def no_collection():
    """Keep finalizers of earlier tests from running while the stack is nearly full: one would fail here."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("odd", ODD)
def test_values_that_nobody_can_read_are_told_in_one_line(odd, recorded, tmp_path, monkeypatch):
    """Nested too deeply, or numbers out of range: by every verb, also those that run the agent."""
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    shutil.copytree(recorded[1], run)
    lines = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if b'"tool_result"' in line)
    outcome = json.loads(lines[place])
    outcome["data"]["result"] = "ODD"
    lines[place] = encode_clean(outcome).replace(b'"ODD"', ODD[odd]) + b"\n"
    (run / "events.jsonl").write_bytes(b"".join(lines))
    manifest = manifest_codec.to_json(read_manifest((run / "manifest.json").read_bytes(), file=""))
    manifest["integrity"]["eventsHash"] = "sha256:" + sha256(b"".join(lines)).hexdigest()
    (run / "manifest.json").write_bytes(write_manifest(manifest_codec.from_json(manifest)))
    ways = [
        *VERBS[:16],
        ["replay", "RUN", "--", "true"],
        ["fork", "RUN", "--at", "2", "--set", "$=1", "-o", "OUT", "--", "true"],
        ["export", "RUN", "--to", "atif", "-o", "OUT"],
    ]
    assert defects(run, recorded[1], tmp_path, ways) == {}


def set_headers(data, value):
    data["headers"] = value


def rate_step(data, value):
    data.clear()
    data |= {"type": "step_utility", "details": value}


NOT_OBJECTS = {
    "headers a number": ("llm_request", lambda data: set_headers(data, 5), ["export", "--to", "har"]),
    "headers a list": ("llm_request", lambda data: set_headers(data, [1]), ["export", "--to", "har"]),
    "content type a number": (
        "llm_request",
        lambda data: set_headers(data, {"content-type": 5}),
        ["export", "--to", "har"],
    ),
    "a rating of no call": (
        "state_mutation",
        lambda data: rate_step(data, {}),
        ["convert", "--to", "replay-log"],
    ),
    "a rating of a list": (
        "state_mutation",
        lambda data: rate_step(data, {"callId": [], "step_utility": 1}),
        ["convert", "--to", "replay-log"],
    ),
}


@pytest.mark.parametrize("name", NOT_OBJECTS)
def test_members_that_may_be_any_json_are_taken_for_nothing_else(name, recorded, tmp_path):
    """The format leaves their form open, and so does who reads them."""
    kind, alter, (verb, *options) = NOT_OBJECTS[name]
    run = tmp_path / "run"
    shutil.copytree(recorded[1], run)
    events = [json.loads(line) for line in (run / "events.jsonl").read_bytes().splitlines()]
    alter(next(event["data"] for event in events if event["type"] == kind))
    text = b"".join(encode_clean(event) + b"\n" for event in events)
    (run / "events.jsonl").write_bytes(text)
    manifest = manifest_codec.to_json(read_manifest((run / "manifest.json").read_bytes(), file=""))
    manifest["integrity"]["eventsHash"] = "sha256:" + sha256(text).hexdigest()
    (run / "manifest.json").write_bytes(write_manifest(manifest_codec.from_json(manifest)))
    assert defects(run, run, tmp_path, [[verb, "RUN", *options, "-o", "OUT"]]) == {}
