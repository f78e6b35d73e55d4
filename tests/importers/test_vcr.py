"""Cassettes become recordings that the same code replays, strictly and offline, under the real clients."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import brotli
import httpx
import openai
import pytest
import requests
import vcr
import yaml
from hypothesis import given
from hypothesis import strategies as st

import reenact
from reenact.importers.vcr import _Loader, load_yaml
from reenact.testing import Fail, Reply, ScriptedProvider, ToolCall
from tests.cli.commands import ENVIRONMENT, PYTHON
from tests.cli.commands import run as run_command
from tests.importers.make_fixtures import PORT, ask_cassetter_fixture

FIXTURES = Path(__file__).parent / "fixtures"
KEY = "sk-proj-Qm3rT7vW9yB2dF5hJ8kN1pS4uX6zA0cE3gI5lO7qR9tV"
HELLO = [{"role": "user", "content": "Hello? Grüße, 你好"}]


def openai_chat(base: str) -> Any:
    with openai.OpenAI(base_url=f"{base}/v1", api_key=KEY) as client:
        first = client.chat.completions.create(model="m", messages=HELLO)
        stream = client.chat.completions.create(model="m", messages=HELLO, stream=True)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    return first.choices[0].message.content, text


def openai_responses(base: str) -> Any:
    with openai.OpenAI(base_url=f"{base}/v1", api_key=KEY) as client:
        whole = client.responses.create(model="m", input="Hello?").output_text
        with client.responses.stream(model="m", input="Hello?") as stream:
            return whole, stream.get_final_response().output_text


def anthropic_messages(base: str) -> Any:
    with anthropic.Anthropic(base_url=base, api_key=KEY) as client:
        whole = client.messages.create(model="m", max_tokens=9, messages=HELLO)
        with client.messages.stream(model="m", max_tokens=9, messages=HELLO) as stream:
            return whole.content[0].text, stream.get_final_text()


def async_openai(base: str) -> Any:
    async def ask() -> list[Any]:
        async with openai.AsyncOpenAI(base_url=f"{base}/v1", api_key=KEY) as client:
            said = []
            for text in ("one", "two"):
                answer = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": text}]
                )
                said.append(answer.choices[0].message.content)
            return said

    return asyncio.run(ask())


def plain_requests(base: str) -> Any:
    with requests.Session() as session:
        asked = session.post(f"{base}/v1/chat/completions?a=1&b=%20x", json={"model": "m", "messages": HELLO})
        form = session.post(f"{base}/form", data={"a": "1", "b": "ü"})
        return asked.json()["choices"][0]["message"]["content"], form.status_code, session.get(base).text


def plain_httpx(base: str) -> Any:
    with httpx.Client() as client:
        asked = client.post(f"{base}/v1/chat/completions", json={"model": "m", "messages": HELLO})
        return asked.json()["choices"][0]["message"]["content"], client.get(f"{base}/none").status_code


def plain_aiohttp(base: str) -> Any:
    async def ask() -> Any:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{base}/v1/chat/completions", json={"model": "m", "messages": HELLO}) as answer,
        ):
            return (await answer.json())["choices"][0]["message"]["content"]

    return asyncio.run(ask())


CLIENTS = [
    openai_chat,
    openai_responses,
    anthropic_messages,
    async_openai,
    plain_requests,
    plain_httpx,
    plain_aiohttp,
]


def recorded(path: Path, work: Callable[[str], Any], *, gzipped: bool = False, **options: Any) -> Any:
    """The result of *work* against a provider while vcrpy records it, and where it was asked."""
    tape = vcr.VCR(record_mode="all", ignore_localhost=False).use_cassette(str(path), **options)
    with ScriptedProvider([Reply(f"Hi {n}") for n in range(4)], gzip=gzipped) as provider, tape:
        return work(provider.url), provider.url


def replayed(path: Path, work: Callable[[str], Any], base: str) -> Any:
    with reenact.replay(path) as run:
        found = work(base)
    assert (run.divergences, run.blocked) == ([], [])
    return found


@pytest.mark.parametrize("gzipped", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("work", CLIENTS, ids=lambda work: work.__name__)
def test_what_vcrpy_recorded_replays_strictly(tmp_path, work, gzipped):
    """The same code, the real client, no server: equal results, nothing live, nothing left over."""
    found, base = recorded(tmp_path / "it.yaml", work, gzipped=gzipped)
    report = reenact.import_runs(tmp_path / "it.yaml", tmp_path / "run")
    (run,) = report.runs
    assert (report.verdict, run.fidelity, run.losses) == ("whole", "replayable", [])
    assert replayed(tmp_path / "run", work, base) == found
    assert reenact.verify(tmp_path / "run").findings == []


def test_the_json_serializer_is_read_too(tmp_path):
    """By content: the file's name says nothing."""
    found, base = recorded(tmp_path / "tape", openai_chat, serializer="json", path_transformer=lambda p: p)
    reenact.import_runs(tmp_path / "tape", tmp_path / "run")
    assert replayed(tmp_path / "run", openai_chat, base) == found


def test_a_changed_request_is_refused(tmp_path):
    """vcrpy matches addresses alone; a replay matches what is asked."""
    _, base = recorded(tmp_path / "it.yaml", plain_aiohttp)
    reenact.import_runs(tmp_path / "it.yaml", tmp_path / "run")
    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run"):
        requests.post(f"{base}/v1/chat/completions", json={"model": "m", "messages": []})


def test_calls_that_were_made_in_turn_may_be_made_at_once(tmp_path):
    """A cassette does not say which task made a call; any task may make it again."""

    def ask(base: str, *, at_once: bool) -> list[str]:
        async def one(client: Any, text: str) -> str:
            said = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": text}]
            )
            return str(said.choices[0].message.content)

        async def all_of_them() -> list[str]:
            async with openai.AsyncOpenAI(base_url=f"{base}/v1", api_key=KEY) as client:
                texts = ["a", "b", "c"]
                if at_once:
                    return list(await asyncio.gather(*(one(client, text) for text in texts)))
                return [await one(client, text) for text in texts]

        return asyncio.run(all_of_them())

    found, base = recorded(tmp_path / "it.yaml", lambda base: ask(base, at_once=False))
    reenact.import_runs(tmp_path / "it.yaml", tmp_path / "run")
    assert replayed(tmp_path / "run", lambda base: ask(base, at_once=True), base) == found


def test_errors_and_tool_calls_are_what_they_were(tmp_path):
    """A 429 that the SDK retries and a tool call replay as such, and assertions see the call."""
    script = [Fail(429, "slow down", headers={"retry-after": "0"}), Reply("", [ToolCall("look", {"q": "x"})])]

    def work(base: str) -> Any:
        with openai.OpenAI(base_url=f"{base}/v1", api_key=KEY) as client:
            said = client.chat.completions.create(model="m", messages=HELLO)
            return said.choices[0].message.tool_calls[0].function.arguments

    with ScriptedProvider(script) as provider:
        base = provider.url
        with vcr.VCR(record_mode="all", ignore_localhost=False).use_cassette(str(tmp_path / "it.yaml")):
            found = work(base)
    reenact.import_runs(tmp_path / "it.yaml", tmp_path / "run")
    assert replayed(tmp_path / "run", work, base) == found == '{"q":"x"}'
    trace = json.loads(reenact.convert(tmp_path / "run", "trace").data)
    assert [event["data"]["tool"] for event in trace["events"] if event["type"] == "tool_call"] == ["look"]


def test_no_secret_of_a_cassette_reaches_the_disk(tmp_path):
    """Keys in headers, in addresses and in answers are placeholders in every file of the capture."""

    def work(base: str) -> Any:
        return requests.get(
            f"{base}/v1/models?api_key={KEY}x", headers={"Authorization": f"Bearer {KEY}"}
        ).text

    recorded(tmp_path / "it.yaml", work)
    text = (tmp_path / "it.yaml").read_text()
    (tmp_path / "it.yaml").write_text(text.replace("scripted", f"token {KEY}y"))
    reenact.import_runs(tmp_path / "it.yaml", tmp_path / "run")
    kept = b"".join(file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file())
    assert KEY.encode() not in kept
    assert b"<secret:" in kept


def interaction(body: Any, **response: Any) -> dict[str, Any]:
    return {
        "request": {"method": "GET", "uri": "http://x.test/a", "body": None, "headers": {}},
        "response": {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": body, **response},
    }


def get(url: str) -> bytes:
    with httpx.Client() as client:
        return client.get(url).content


FORMS: dict[str, tuple[dict[str, Any], bytes]] = {
    "string": (interaction({"string": "grün"}), "grün".encode()),
    "binary": (interaction({"string": b"\xff\x00"}), b"\xff\x00"),
    "base64": (interaction({"base64_string": base64.b64encode(b"\xff\x00").decode()}), b"\xff\x00"),
    "gzip": (
        interaction({"string": gzip.compress(b"plain")}, headers={"Content-Encoding": ["gzip"]}),
        b"plain",
    ),
    "brotli": (
        interaction({"string": brotli.compress(b"plain")}, headers={"content-encoding": "br"}),
        b"plain",
    ),
    "undone": (interaction({"string": "plain"}, headers={"content-encoding": ["gzip"]}), b"plain"),
    "parsed": (interaction(None, parsed_body={"a": [1, "on", None]}), b'{"a":[1,"on",null]}'),
    "cassetter": (interaction({"type": "json", "content": {"a": "12:30"}}, status=200), b'{"a":"12:30"}'),
    "cassetter binary": (interaction({"type": "binary", "content": "/wA="}, status=200), b"\xff\x00"),
    "empty": (interaction({"string": ""}), b""),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_body_is_read(tmp_path, name):
    """As bytes, text, base64, coded or not, or as a value."""
    made, expected = FORMS[name]
    (tmp_path / "it.yaml").write_text(yaml.safe_dump({"version": 1, "interactions": [made]}))
    report = reenact.import_runs(tmp_path / "it.yaml", tmp_path / "run")
    assert report.verdict == "whole"
    with reenact.replay(tmp_path / "run"):
        assert get("http://x.test/a") == expected


def test_words_that_yaml_1_1_takes_for_something_else_stay_texts(tmp_path):
    """cassetter writes YAML 1.2: a time, a yes and a date without quotes are texts."""
    (tmp_path / "it.yaml").write_text(
        "version: 1\ninteractions:\n- request: {method: GET, uri: http://x.test/a}\n  response:\n"
        "    status: 200\n    body:\n      type: json\n"
        "      content: {a: 12:30:00, b: yes, c: 2026-01-01, d: 1, e: true, f: 1.5, g: null, h: 0x1F}\n"
    )
    reenact.import_runs(tmp_path / "it.yaml", tmp_path / "run")
    with reenact.replay(tmp_path / "run"):
        found = json.loads(get("http://x.test/a"))
    expected = {"a": "12:30:00", "b": "yes", "c": "2026-01-01", "d": 1, "e": True, "f": 1.5, "g": None}
    assert found == expected | {"h": "0x1F"}


CASSETTE = {"version": 1, "interactions": [interaction({"string": f"body {n}"}) for n in range(5)]}


@pytest.mark.parametrize("share", [0.35, 0.6, 0.8, 0.97])
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_of_a_cassette_that_was_cut_off_the_rest_is_read(tmp_path, form, share):
    """Whole interactions are there, the loss is reported with its place, and the exit status is 1."""
    text = yaml.safe_dump(CASSETTE) if form == "yaml" else json.dumps(CASSETTE, indent=1)
    cut = text[: int(len(text) * share)]
    whole = sum(f"body {n}" in cut and cut.count("code") > n for n in range(5))
    (tmp_path / "it").write_text(cut)
    done = run_command("import", "it", "-o", "run", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    found = json.loads((tmp_path / "run" / "manifest.json").read_text())["imported"]
    assert found["lossCount"] >= 1
    calls = (tmp_path / "run" / "events.jsonl").read_text().count('"method":"GET"')
    assert 0 < calls <= whole + 1


def test_one_bad_interaction_does_not_take_the_others_away(tmp_path):
    """The ones before and behind it are read; its line is reported."""
    text = yaml.safe_dump(CASSETTE).replace("body 2", '"unclosed')
    (tmp_path / "it.yaml").write_text(text)
    (run,) = reenact.import_runs(tmp_path / "it.yaml", tmp_path / "run").runs
    assert (run.counts.requests, run.loss_count) == (4, 1)
    assert run.losses[0].line is not None


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("", 2, "is empty"),
        ("hello\n", 2, "of no format"),
        ("interactions: [request: {{{\n", 2, "no cassette"),
        ('{"version": 1, "interactions": [{"request":', 2, "not JSON"),
        ("version: 1\ninteractions: []\n", 0, "no calls"),
        ("version: 9\ninteractions:\n- request: {method: GET, uri: u}\n  response: {status: 200}\n", 1, "9"),
        ("version: 1\ninteractions:\n- request: 3\n  response: 4\n", 1, "interaction 1 cannot be read"),
        ("version: 1\nnew: 1\ninteractions:\n- {request: {method: GET, uri: u}, response: {status: 200}}\n",
         0, "unknown fields: new (1)"),
    ],
)  # fmt: skip
def test_bad_cassettes_are_told_in_one_line(tmp_path, text, status, said):
    """Exit status 2 where nothing can be read, 1 where something is lost, never a traceback."""
    (tmp_path / "it.yaml").write_text(text)
    done = run_command("import", "it.yaml", "-o", "run", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert said in done.stdout + done.stderr


def test_nothing_in_a_cassette_is_run(tmp_path):
    """Tags of Python objects are refused, not obeyed."""
    (tmp_path / "it.yaml").write_text(
        "version: 1\ninteractions:\n- request: !!python/object/apply:os.system ['touch done']\n"
        "  response: {}\n"
    )
    done = run_command("import", "it.yaml", "-o", "run", cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert not (tmp_path / "done").exists()


def test_a_coding_that_cannot_be_undone_is_not_taken(tmp_path):
    """Nobody could look for secrets in it."""
    made = interaction({"string": b"\x01"}, headers={"content-encoding": ["compress"]})
    (tmp_path / "it.yaml").write_text(yaml.safe_dump({"version": 1, "interactions": [made]}))
    report = reenact.import_runs(tmp_path / "it.yaml", tmp_path / "run")
    assert report.verdict == "partly"
    assert "'compress'" in report.runs[0].losses[0].reason


def test_a_folder_of_cassettes_becomes_a_folder_of_runs(tmp_path):
    """Named as the cassettes are, which is where the pytest plugin looks for a test's capture."""
    folder = tmp_path / "cassettes" / "test_agent"
    folder.mkdir(parents=True)
    for name in ("test_one", "TestMore.test_two", "test_three[a-1]"):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(CASSETTE))
    (folder / "README").write_text("nothing to import")
    report = reenact.import_runs(tmp_path / "cassettes", tmp_path / "captures")
    names = sorted(Path(run.path).relative_to(tmp_path / "captures").as_posix() for run in report.runs)
    assert names == ["test_agent/TestMore.test_two", "test_agent/test_one", "test_agent/test_three[a-1]"]
    assert (report.verdict, report.skipped) == ("whole", ["test_agent/README"])


def test_the_manifest_says_where_the_run_comes_from(tmp_path):
    """Source, digest, importer and fidelity; the digest is the file's."""
    (tmp_path / "it.yaml").write_text(yaml.safe_dump(CASSETTE))
    reenact.import_runs(tmp_path / "it.yaml", tmp_path / "run")
    found = json.loads((tmp_path / "run" / "manifest.json").read_text())["imported"]
    digest = sha256((tmp_path / "it.yaml").read_bytes()).hexdigest()
    assert found["source"] == {
        "name": "it.yaml", "bytes": (tmp_path / "it.yaml").stat().st_size, "digest": f"sha256:{digest}"
    }  # fmt: skip
    assert (found["format"], found["importer"], found["fidelity"]) == ("vcr", "reenact.vcr 1", "replayable")
    assert re.search("chunks", " ".join(found["missing"]))


def test_what_cassetter_recorded_replays_strictly(tmp_path):
    """In the order in which it was asked, though the cassette is sorted by address."""
    expected = ["You said yes", "You said yes", "404"]
    reenact.import_runs(FIXTURES / "cassetter.yaml", tmp_path / "run")
    with reenact.replay(tmp_path / "run") as run:
        assert ask_cassetter_fixture(openai, requests, f"http://127.0.0.1:{PORT}") == expected
    assert (run.divergences, run.blocked, run.notes) == ([], [], [])


def test_a_project_of_pytest_recording_moves_with_one_command(tmp_path):
    """Its tests, parametrized and in classes, pass offline with another marker and nothing else."""
    project = tmp_path / "project"
    shutil.copytree(FIXTURES / "pytest-recording", project)
    done = run_command("import", "cassettes", "-o", "captures", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    shutil.rmtree(project / "cassettes")
    # In names of cassettes pytest-recording writes a dash for some signs.
    (project / "captures/test_agent/test_it_knows[rome]").rename(
        project / "captures/test_agent/test_it_knows[r-o-me]"
    )
    tests = project / "test_agent.py"
    tests.write_text(
        tests.read_text()
        .replace("mark.vcr", "mark.reenact")
        .replace('["rome", "Oslo"]', '["r/o:me", "Oslo"]')
        .replace(
            "def test_it_knows(city: str) -> None:",
            "def test_it_knows(city: str) -> None:\n    city = city.replace('/', '').replace(':', '')",
        )
    )
    words = [PYTHON, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-c", os.devnull]
    tested = subprocess.run(
        [*words, "--rootdir=.", "."],
        cwd=project,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 replayed" in tested.stdout, tested.stdout + tested.stderr
    assert "4 passed" in tested.stdout


@pytest.mark.parametrize("name", ["cassetter.yaml", "pytest-recording/cassettes/test_agent"])
def test_a_large_cassette_is_read_piece_by_piece(tmp_path, monkeypatch, name):
    """With the same calls as one that is read as a whole; aliases lead to what was read before."""
    source = FIXTURES / name
    whole = reenact.import_runs(source, tmp_path / "whole").runs
    monkeypatch.setattr("reenact.importers.source.LARGE_BYTES", 0)
    pieces = reenact.import_runs(source, tmp_path / "pieces").runs
    assert [(run.counts, run.losses, run.unknown) for run in pieces] == [
        (run.counts, run.losses, run.unknown) for run in whole
    ]
    for one, other in zip(whole, pieces, strict=True):
        assert called(Path(one.path)) == called(Path(other.path))


def called(run: Path) -> list[Any]:
    """What was asked and answered, in any order: cassetter does not write calls as they were made."""
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    kinds = ("request", "response", "value", "pieces")
    return sorted(
        json.dumps([event["data"].get(kind) for kind in kinds])
        for event in events
        if event["type"] != "run_end"
    )


def test_what_can_be_read_of_a_large_cassette_is_read(tmp_path, monkeypatch):
    """Up to the line where it was cut off; a list is no cassette of today."""
    monkeypatch.setattr("reenact.importers.source.LARGE_BYTES", 0)
    answer = "  response: {status: {code: 200, message: OK}}\n"
    part = f"- request: &a {{method: GET, uri: 'http://x.test/1'}}\n{answer}"
    again = f"- request: *a\n{answer}"
    cut = tmp_path / "cut.yaml"
    cut.write_text(f"version: 1\ninteractions:\n{part}{again}- request: {{method: GET\n")
    (run,) = reenact.import_runs(cut, tmp_path / "cut").runs
    assert (run.counts.requests, len(run.losses), run.losses[0].line) == (2, 1, 8)
    listed = tmp_path / "listed.yaml"
    listed.write_text("interactions: nothing\nrequest: 1\n")
    assert reenact.import_runs(listed, tmp_path / "listed").verdict == "nothing"


_SCALARS = st.sampled_from([
    "text", "12:30", "on", "~", "null", "true", "-1.5e3", "0x1f", "<<", "", " ", "a: b", "# no", "é\n\tü",
    "=", 3, -2.5, True, None, b"\x00gz", "2026-01-01",
])  # fmt: skip
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_SCALARS, inner, max_size=3),
    max_leaves=12,
)


@given(_VALUES, st.sampled_from([None, "'", '"', "|"]), st.booleans())
def test_both_ways_to_read_yaml_give_the_same(value, style, is_flow):
    """What the parser tells is put together as composed nodes are, aliases and tags included."""
    text = yaml.dump(
        [value, value], default_style=style, default_flow_style=is_flow, allow_unicode=True
    ).encode()
    assert repr(load_yaml(text)) == repr(yaml.load(text, _Loader))


@pytest.mark.parametrize(
    "text",
    ["a: &x {b: 1}\nc: *x", "a: &x 1\nb: *x", "<<: {a: 1}\nb: 2", "!!python/unicode 'x'", "a: ! 12", "- [",
     "a: 1\n--- \nb: 2", "", "? [a]\n: 1", "!!binary aGk=", "a: *none", "!!python/object:os.system x"],
)  # fmt: skip
def test_uncommon_yaml_is_read_by_composing_it(text):
    """Aliases, merges, tags and several documents: the same value, or the same refusal."""

    def outcome(load):
        try:
            return repr(load(text.encode()))
        except (yaml.YAMLError, ValueError) as error:
            return type(error), str(error)

    assert outcome(load_yaml) == outcome(lambda given: yaml.load(given, _Loader))


@pytest.mark.parametrize("is_json", [False, True])
def test_a_version_that_is_not_known_is_a_loss_with_its_line(tmp_path, is_json):
    """What can be read is read as the version that is known."""
    value = {"interactions": [], "version": 9}
    text = json.dumps(value, indent=1) if is_json else yaml.safe_dump(value)
    (tmp_path / "it").write_text(text)
    report = reenact.import_runs(tmp_path / "it", tmp_path / "run", format="vcr")
    [loss] = report.runs[0].losses
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "version" in each)
    assert ("version 9" in loss.reason, loss.line, report.verdict) == (True, line, "partly")


def test_a_compressed_answer_that_was_cut_off_is_a_loss_with_its_line(tmp_path: Path) -> None:
    """What comes before the cut is read."""
    events = b"".join(
        b'data: {"choices": [{"delta": {"content": "%d"}}]}\n\n' % number for number in range(99)
    )
    request = {"method": "POST", "uri": "https://api.openai.com/v1/chat/completions", "headers": {}}
    request |= {"body": json.dumps({"model": "m", "messages": HELLO, "stream": True})}
    response = {"status": {"code": 200, "message": "OK"}, "body": {"string": gzip.compress(events)[:-30]}}
    response |= {"headers": {"content-type": ["text/event-stream"], "content-encoding": ["gzip"]}}
    cassette = yaml.dump({"interactions": [{"request": request, "response": response}], "version": 1})
    (tmp_path / "it.yaml").write_text(cassette)
    (run,) = reenact.import_runs(tmp_path / "it.yaml", tmp_path / "run").runs
    (loss,) = run.losses
    assert ("was cut off" in loss.reason, loss.line, run.counts.model_calls) == (True, 2, 1)


def test_cassettes_one_after_the_other_in_a_file_are_all_read(tmp_path: Path) -> None:
    """A parser of one document sees the first alone."""
    text = (FIXTURES / "cassetter.yaml").read_text().removeprefix("---\n")
    (tmp_path / "one.yaml").write_text(text)
    (tmp_path / "two.yaml").write_text(f"{text}...\n---\n{text}")
    one, two = (
        reenact.import_runs(tmp_path / name, tmp_path / name[:3]) for name in ("one.yaml", "two.yaml")
    )
    assert two.verdict == "whole"
    assert two.runs[0].counts.model_calls == 2 * one.runs[0].counts.model_calls
