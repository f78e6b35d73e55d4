"""The reader for many captures gives the rows that the one for a single run gives."""

import json
import random
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reenact
from reenact.boundary import Call, crossing
from reenact.corpus import captures
from reenact.corpus.captures import CaptureBatch, FinishedCapture
from reenact.corpus.messages import (
    AllTexts,
    ExchangeAsStored,
    message_rows,
    read_answer_texts,
    read_request_texts,
)
from reenact.corpus.rows import read_source, read_sources
from reenact.corpus.tables import ALL_COLUMNS, TABLES, CorpusSource, TableRows
from reenact.formats.capture import EVENT_TYPES
from tests.analysis.recordings import ask, fetch, order, search

GOLDEN = sorted(
    file.parent for file in (Path(__file__).parents[1] / "golden" / "capture").rglob("manifest.json")
)


def sources_of(folders):
    return [CorpusSource(f"run {number}", str(folder), "run") for number, folder in enumerate(folders)]


def rows_of(folders, *, together):
    into, sources = TableRows(), sources_of(folders)
    if together:
        readings = list(read_sources(sources, into))
    else:
        readings = [read_source(source, into) for source in sources]
    return readings, {
        table: {name: rows[name].to_pylist() for name in rows.column_names}
        for table, rows in into.take().items()
    }


def as_values(tables):
    """Cells that hold JSON by what it says: a character may stand there as itself or by its number."""
    for table, columns in TABLES.items():
        for column in columns:
            if column.type == "json" and table in tables:
                cells = tables[table][column.name]
                tables[table][column.name] = [cell and json.loads(cell) for cell in cells]
    return tables


def assert_the_same_rows(*folders):
    readings, tables = rows_of(folders, together=True)
    expected, plain_tables = rows_of(folders, together=False)
    assert readings == expected
    as_values(tables)
    as_values(plain_tables)
    assert tables.keys() == plain_tables.keys()
    for table, columns in tables.items():
        for name, cells in columns.items():
            assert cells == plain_tables[table][name], (table, name)


def is_read_together(folder):
    return CaptureBatch(ALL_COLUMNS).add(str(folder), "run")


def make_runs(folder):
    with reenact.capture(folder / "chat", redact="none"):
        ask("hello", "there")
        ask("hello", "there", "again")
        search("ü" * 9)
        fetch(40_000)
        for _ in range(2):
            with pytest.raises(KeyError):
                order("lamp")
    with reenact.capture(folder / "failed", redact="none"):
        search("lamp")
        with pytest.raises(KeyError):
            order("lamp")
        search("lamp")
    with reenact.capture(folder / "empty", redact="none"):
        pass
    with reenact.capture(folder / "typed", redact="none"):
        reenact.tool(lambda **_: (1, {2: 3}, {"$x": b"y"}))(a={"$ref": 1})


@pytest.mark.parametrize("folder", GOLDEN, ids=lambda folder: folder.name)
def test_golden_captures_have_the_same_rows(folder):
    assert_the_same_rows(folder)


def test_all_golden_captures_together_have_the_same_rows():
    """In the order in which they were named, whichever of them are read together."""
    assert_the_same_rows(*GOLDEN, *reversed(GOLDEN))


def test_all_kinds_of_payloads_have_the_same_rows(tmp_path):
    """References, blobs, Python types, retries, an empty run, one that was recovered."""
    make_runs(tmp_path)
    shutil.copytree(tmp_path / "chat", tmp_path / "recovered")
    (tmp_path / "recovered" / "recovered.json").write_text("{}")
    for run in sorted(tmp_path.iterdir()):
        assert FinishedCapture.load(str(run)) is not None, run
        assert_the_same_rows(run)
    assert_the_same_rows(*sorted(tmp_path.iterdir()))


def test_what_is_not_plain_is_left_to_the_other_reader(tmp_path):
    """Damage, other line ends, an open run, links: told in the same words as for a single run."""
    make_runs(tmp_path)
    whole = (tmp_path / "chat" / "events.jsonl").read_bytes()
    odd = {
        "torn": {"events.jsonl": whole[:-20]},
        "crlf": {"events.jsonl": whole.replace(b"\n", b"\r\n")},
        "gap": {"events.jsonl": whole.replace(b'"seq":3,', b'"seq":4,')},
        "no json": {"events.jsonl": whole.replace(b'{"captureId"', b"{captureId", 3)},
        "nothing": {"events.jsonl": b""},
        "open": {"manifest.open.json": b'{"pid": 1, "manifest": {}}'},
        "manifest": {"manifest.json": b"{}"},
    }
    for name, files in odd.items():
        shutil.copytree(tmp_path / "chat", tmp_path / name)
        for file, content in files.items():
            (tmp_path / name / file).write_bytes(content)
        assert_the_same_rows(tmp_path / name)
    assert_the_same_rows(*sorted(tmp_path.iterdir()))
    shutil.copytree(tmp_path / "chat", tmp_path / "link")
    (tmp_path / "link" / "events.jsonl").unlink()
    (tmp_path / "link" / "events.jsonl").symlink_to(tmp_path / "chat" / "events.jsonl")
    assert FinishedCapture.load(str(tmp_path / "link")) is None
    [reading], _ = rows_of([tmp_path / "link"], together=True)
    assert reading.problem


def test_one_run_that_fails_late_costs_the_others_nothing(tmp_path, monkeypatch):
    """Where columns of many runs cannot be made, each of them is read by itself."""
    make_runs(tmp_path)
    runs = sorted(tmp_path.iterdir())
    expected = rows_of(runs, together=False)

    def fail(*_):
        raise RecursionError

    monkeypatch.setattr(captures, "message_rows", fail)
    assert rows_of(runs, together=True) == expected


def test_a_failed_call_that_was_not_tried_again_is_read_with_others(tmp_path):
    make_runs(tmp_path)
    assert is_read_together(tmp_path / "failed")
    assert not is_read_together(tmp_path / "chat")
    _, tables = rows_of([tmp_path / "failed"], together=True)
    [error] = filter(None, tables["calls"]["error"])
    assert json.loads(error)["type"] == "builtins:KeyError"


def test_whole_requests_of_texts_give_the_rows_of_the_general_reader():
    """Also where a later request of the same task repeats their messages, and is read in either way."""
    hi, hello, more = ({"role": "user", "content": text} for text in ("hi", "hello", "more"))
    system = {"role": "system", "content": "be short"}
    for chats in (
        [[hi], [hi, hello]],
        [[hi, hello], [hi, system, more]],
        [[system, hi], [hi], [hi, more]],
        [[], [hi], [more, system]],
    ):
        whole = [{"url": CHAT, "body": {"messages": chat}} for chat in chats]
        raws = [msgspec.Raw(msgspec.json.encode(request)) for request in whole]
        fast = [
            ExchangeAsStored(seq, "0", whole[seq] if texts is None else texts, 0, None)
            for seq, texts in enumerate(read_request_texts(raws))
        ]
        general = [ExchangeAsStored(seq, "0", request, 0, None) for seq, request in enumerate(whole)]
        assert any(isinstance(exchange.request, AllTexts) for exchange in fast)
        assert message_rows("run", fast, None) == message_rows("run", general, None)


def test_one_odd_request_leaves_the_others_to_the_fast_reader():
    """Many requests and answers are read at once, and again without the ones that cannot be read so."""
    texts = {"url": CHAT, "body": {"messages": [{"role": "user", "content": "hi"}]}}
    odd = {
        "url": CHAT,
        "body": {"messages": [{"role": "user", "content": [{"type": "text", "text": "$ref"}]}]},
    }
    requests = [texts, texts, odd, texts, odd, texts, texts]
    found = read_request_texts([msgspec.Raw(msgspec.json.encode(request)) for request in requests])
    assert [texts is None for texts in found] == [request is odd for request in requests]
    said = [{"body": '{"choices":[{"message":{"content":"hi"}}]}'}, {"body": 7}]
    responses = [msgspec.Raw(msgspec.json.encode(said[number])) for number in (0, 1, 0, 0, 1)] + [
        msgspec.Raw()
    ]
    assert read_answer_texts(responses) == ["hi", None, "hi", "hi", None, None]


def test_every_type_of_event_is_read_together():
    assert set(get_args(captures._Type)) == set(EVENT_TYPES)


def test_the_data_of_every_event_is_json(tmp_path):
    """Also of a line that has more members than most."""
    make_runs(tmp_path)
    log = tmp_path / "failed" / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b',"runId"', b',"order":["0.0!"],"runId"'))
    assert is_read_together(log.parent)
    _, tables = rows_of([log.parent], together=True)
    assert all(isinstance(json.loads(text), dict) for text in tables["events"]["data"])


# Random captures, whole and damaged

CHAT, ANTHROPIC = "https://api.test/v1/chat/completions", "https://api.test/v1/messages"
WORDS = ("lamp", "", "ü", "\N{GRINNING FACE}", '"$ref"', "null", "x" * 20_000, "a\nb", "$blob")


def random_message(chance):
    text = chance.choice(WORDS)
    call = {"id": "t1", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}
    return chance.choice(
        [
            {"role": "user", "content": text},
            {"role": "assistant", "content": text},
            {"role": "user", "content": text, "name": text},
            {"role": "system", "content": text},
            {"role": "developer", "content": text},
            {"role": "user", "content": [{"type": "text", "text": text}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": text, "tool_call_id": "t1"},
            {"role": 5, "content": {"$ref": 1}},
        ]
    )


def random_answer(chance):
    message = random_message(chance)
    body = chance.choice(
        [
            {"choices": [{"message": message}]},
            {"choices": [{"message": message}, {"message": {"content": "second"}}]},
            {"choices": [5, {"message": message}]},
            {"choices": []},
            {"content": [{"type": "text", "text": chance.choice(WORDS)}], "role": "assistant"},
            [message],
            "",
        ]
    )
    text = json.dumps(body)
    return {
        "body": chance.choice([text, f" {text}", text[:-1], f"\ufeff{text}"]),
        "status": chance.choice([200, 200, 429]),
    }


def ask_at_random(chance, said):
    said += [random_message(chance) for _ in range(chance.randrange(3))]
    provider = chance.choice(["openai_chat", "openai_chat", "anthropic", "unknown"])
    facts = {"provider": provider, "model": chance.choice(WORDS[:3])}
    body = {"model": "m", "messages": chance.choice([said, said[1:]])}
    if chance.random() < 0.3:
        body["system"] = chance.choice(WORDS)
    request = {"method": "POST", "url": chance.choice([CHAT, ANTHROPIC, "https://api.test/"]), "body": body}
    with crossing(Call("llm", "POST", request, facts)) as step:
        step.answer = random_answer(chance)
        step.facts = facts | {"usage": {"inputTokens": chance.choice([0, 7, "7", 2**40])}}


def record_at_random(folder, seed):
    chance = random.Random(seed)
    said = []
    with reenact.capture(folder, redact="none"):
        for _ in range(chance.randrange(8)):
            match chance.randrange(5):
                case 0 | 1:
                    ask_at_random(chance, said)
                case 2:
                    search(chance.choice(WORDS), chance.randrange(3))
                case 3:
                    reenact.tool(lambda value: value)({chance.choice(WORDS): [1.5, None, b"x"]})
                case 4:
                    with suppress(KeyError):
                        order(chance.choice(WORDS[:2]))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    for seed in range(24):
        record_at_random(folder / str(seed), seed)
    return folder


DAMAGES = [
    lambda text, at: text,
    lambda text, at: text,
    lambda text, at: text[:at],
    lambda text, at: text[:at] + text[at + 1 :],
    lambda text, at: text[:at] + b"\n" + text[at:],
    lambda text, at: text[:at] + b"5" + text[at + 1 :],
    lambda text, at: text[:at] + b"\xff" + text[at:],
    lambda text, at: text.replace(b'"ok":true', b'"ok":5'),
    lambda text, at: text.replace(b'"callId":"c2"', b'"callId":"c1"'),
    lambda text, at: text.replace(b'"lane":"0"', b'"lane":"' + b"0" * 300 + b'"'),
    lambda text, at: text.replace(b'"ts":', b'"ts":9'),
    lambda text, at: text.replace(b'"ts":', b'"ts":-'),
    lambda text, at: text.replace(b',"type":', b'.5,"type":'),
    lambda text, at: text.replace(b"lamp", b"\\ud800"),
    lambda text, at: text.replace(b"lamp", b"\\u00fc"),
    lambda text, at: text.replace(b'"tool":"search"', b'"exitCode":3,"tool":"search"'),
    lambda text, at: text.replace(b'"$ref"', b'"$blob"'),
    lambda text, at: text.replace(b'"callId":"c1"', b'"callId":"c1","utility":0.3,"latencyMs":1.5'),
    lambda text, at: text + text,
    lambda text, at: text.replace(b"}\n{", b"}{", 1),
    lambda text, at: text.replace(b'"model":"lamp"', b'"cancelled":true,"model":"' + b"lamp" * 99 + b'"'),
]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 23), st.sampled_from(DAMAGES), st.floats(0, 1), st.booleans()),
        min_size=1,
        max_size=6,
    )
)
def test_random_captures_have_the_same_rows(recorded, drawn):
    """Whole or damaged, one or many of them."""
    with TemporaryDirectory() as temp:
        folders = []
        for number, (seed, damage, share, is_manifest) in enumerate(drawn):
            folder = Path(temp) / str(number)
            shutil.copytree(recorded / str(seed), folder)
            file = folder / ("manifest.json" if is_manifest else "events.jsonl")
            text = file.read_bytes()
            file.write_bytes(damage(text, int(share * len(text))))
            folders.append(folder)
        assert_the_same_rows(*folders)
