"""What today's tools write is imported: every call and result, counted by somebody else than the importer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import pytest
import yaml

import reenact
from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.importers.make_fixtures import HOME
from tests.importers.test_transcripts import SOURCES, Counted, counted
from tests.npm.conftest import installed
from tests.npm.test_others import AGENTS
from tests.producers.conftest import FOLDER

ROOT = Path(__file__).parents[2]
FROM_NPM = {
    "claude-code": (AGENTS["claude"].package, AGENTS["claude"].version),
    "codex": (AGENTS["codex"].package, AGENTS["codex"].version),
    "gemini-cli": (AGENTS["gemini"].package, AGENTS["gemini"].version),
    "opencode": (AGENTS["opencode"].package, AGENTS["opencode"].version),
    "opencode-server": (AGENTS["opencode"].package, AGENTS["opencode"].version),
    "pi": ("@mariozechner/pi-coding-agent", "0.73.1"),
}
FROM_PYPI = {
    "cassetter": "cassetter",
    "inspect": "inspect_ai",
    "mini-swe-agent": "minisweagent",
    "opentelemetry": "opentelemetry",
    "pytest-recording": "pytest_recording",
}


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), FOLDER]), **more}


def produce(name: str, place: Path) -> None:
    """Run a tool against the scripted provider; what it writes goes to *place*."""
    if name in FROM_NPM:
        installed(*FROM_NPM[name])
    elif not (Path(FOLDER) / FROM_PYPI[name]).exists():
        pytest.skip(f"{FROM_PYPI[name]} is not installed; make test-producers does it")
    words = [sys.executable, "-m", "tests.importers.make_fixtures", name]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    settings = environment(REENACT_FIXTURES=str(place), REENACT_FIXTURES_PORT=port)
    done = subprocess.run(
        words, cwd=ROOT, env=settings, check=False, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr


def run_here(program: str, *words: str) -> Any:
    """What a Python program prints as JSON, with the tools at hand."""
    done = subprocess.run(
        [sys.executable, "-c", program, *words], env=environment(HF_HUB_OFFLINE="1"), check=False,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


TRANSCRIPTS = {
    "claude-code": ["claude-code"],
    "codex": ["codex"],
    "gemini-cli": ["gemini-cli"],
    "opencode": ["opencode"],
    "pi": ["pi"],
    "mini-swe-agent": ["swe-agent", "swe-agent plain"],
}


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_sessions_of_agents(name, tmp_path):
    """Nothing in them is unknown, nothing lost, and every call has its result."""
    produce(name, tmp_path)
    for number, source in enumerate(TRANSCRIPTS[name]):
        pattern, count = SOURCES[source]
        [path] = tmp_path.glob(pattern)
        (run,) = reenact.import_runs(path, tmp_path / f"run{number}").runs
        assert counted(run) == count(path)
        assert (run.fidelity, run.losses, run.unknown) == ("tools", [], {})
        assert reenact.verify(tmp_path / f"run{number}").is_good


def test_the_database_of_opencode_holds_what_it_exports(tmp_path):
    """With its latest changes, which stand in a file beside it."""
    produce("opencode", tmp_path)
    _, count = SOURCES["opencode"]
    source = HOME / ".local" / "share" / "opencode" / "opencode.db"
    (run,) = reenact.import_runs(source, tmp_path / "runs").runs
    assert counted(run) == count(tmp_path / "opencode.json")
    assert (run.fidelity, run.losses, run.unknown) == ("tools", [], {})
    assert reenact.verify(run.path).is_good


def test_the_newer_table_of_opencode_is_read(tmp_path):
    """What its server writes, which is in no other table."""
    produce("opencode-server", tmp_path)
    source = HOME / ".local" / "share" / "opencode" / "opencode.db"
    (run,) = reenact.import_runs(source, tmp_path / "runs").runs
    assert (run.losses, run.unknown, counted(run)) == ([], {}, (2, 2, 2))
    assert reenact.verify(run.path).is_good


def interactions(path: Path) -> int:
    return sum(len(yaml.safe_load(file.read_text())["interactions"]) for file in sorted(path.rglob("*.yaml")))


@pytest.mark.parametrize("name", ["pytest-recording", "cassetter"])
def test_cassettes(name, tmp_path):
    """Every interaction is a call."""
    produce(name, tmp_path)
    runs = reenact.import_runs(tmp_path, tmp_path / "runs").runs
    calls = sum(run.counts.model_calls + run.counts.requests for run in runs)
    assert (calls, {run.fidelity for run in runs}) == (interactions(tmp_path), {"replayable"})
    assert [loss for run in runs for loss in run.losses] == []


def count_spans(path: Path) -> Counted:
    spans = json.loads(path.read_text())["resourceSpans"][0]["scopeSpans"]
    names = [
        {each["key"]: each["value"].get("stringValue") for each in span.get("attributes", ())}
        for scope in spans
        for span in scope["spans"]
    ]
    models = [each for each in names if "gen_ai.request.model" in each or "llm.model_name" in each]
    tools = [each for each in names if "gen_ai.tool.name" in each or "tool.name" in each]
    return len(models), len(tools), len(tools)


def test_spans_of_opentelemetry(tmp_path):
    """Of both instrumentations, as JSON and as protobuf."""
    produce("opentelemetry", tmp_path)
    for name in ("genai", "openinference"):
        for suffix in ("json", "pb"):
            (run,) = reenact.import_runs(tmp_path / f"otlp-{name}.{suffix}", tmp_path / name / suffix).runs
            assert counted(run) == count_spans(tmp_path / f"otlp-{name}.json")
            assert run.losses == []


IMPORT = """
import json, sys, reenact
report = reenact.import_runs(sys.argv[1], sys.argv[2])
runs = [[run.fidelity, run.counts.model_calls, run.counts.tool_calls, run.counts.tool_results, run.unknown,
         len(run.losses)] for run in report.runs]
print(json.dumps([runs, [failed.reason for failed in report.failed]]))
"""


OLDER = """
import sys
from inspect_ai.log import read_eval_log, write_eval_log
log = read_eval_log(sys.argv[1])
log.eval.dataset.sample_ids = None
write_eval_log(log, sys.argv[2])
print("null")
"""


def test_evaluations_of_inspect(tmp_path):
    """By its own reader; a log that was cut off is reported, not half of it taken for the whole."""
    produce("inspect", tmp_path)
    told = json.loads((tmp_path / "inspect-samples.txt").read_text())
    kinds = [[event["event"] for event in sample["events"]] for sample in told]
    expected = [
        ["tools", each.count("model"), each.count("tool"), each.count("tool"), {}, 0] for each in kinds
    ]
    assert run_here(IMPORT, str(tmp_path / "inspect.eval"), str(tmp_path / "runs")) == [expected, []]
    run_here(OLDER, str(tmp_path / "inspect.eval"), str(tmp_path / "older.eval"))
    assert run_here(IMPORT, str(tmp_path / "older.eval"), str(tmp_path / "older")) == [expected, []]
    text = (tmp_path / "inspect.eval").read_bytes()
    (tmp_path / "cut.eval").write_bytes(text[: len(text) // 2])
    runs, failed = run_here(IMPORT, str(tmp_path / "cut.eval"), str(tmp_path / "cut"))
    assert (runs, failed[0].startswith("no log of Inspect")) == ([], True)


LOAD = """
import json, sys
from datasets import load_dataset
found = load_dataset(*json.loads(sys.argv[1]), cache_dir=sys.argv[2], **json.loads(sys.argv[3]))
print(json.dumps({name: list(found[name]) for name in found}))
"""


def load(cache: Path, *words: str, **options: Any) -> Any:
    return run_here(LOAD, json.dumps(words), str(cache), json.dumps(options))


def rows_in(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def ask(path: Path, answer: str, calls: list[ToolCall], delta: int, **options: Any) -> None:
    """A run with one question and, where there are *calls*, a tool between."""
    script = [*([Reply("I look.", calls)] if calls else []), Reply(answer)]
    with (
        ScriptedProvider(script) as provider,
        reenact.capture(path) as run,
        openai.OpenAI(base_url=f"{provider.url}/v1", api_key="unused") as client,
    ):
        messages: list[Any] = [{"role": "user", "content": "How warm is it?"}]
        for _ in script:
            said = client.chat.completions.create(model="m", messages=messages, **options).choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": "21"} for call in said.tool_calls or ()
            ]
        run.verification("pytest", 0, verification_delta=delta)


def function(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


def test_datasets_are_loaded_as_they_are_written(tmp_path):
    """By Hugging Face's package, row for row; also where tools come only behind megabytes without any."""
    long = "word " * 60_000
    for number in range(40):
        ask(tmp_path / "runs" / f"a{number:02}", f"{number} {long}", [], number)
    for number, key in enumerate(("place", "city")):
        tools = [function(f"look_{key}", **{key: {"type": "string"}})]
        ask(
            tmp_path / "runs" / f"z{number}", "21", [ToolCall(f"look_{key}", {key: "here"})], -1 - number,
            tools=tools,
        )  # fmt: skip
    for to in ("sft", "preference"):
        file = tmp_path / f"{to}.jsonl"
        reenact.export_runs(tmp_path / "runs", to, file)
        assert file.stat().st_size > 11_000_000
        rows = rows_in(file)
        assert load(tmp_path / "cache", "json", data_files=str(file)) == {"train": rows}
        reenact.export_runs(tmp_path / "runs", to, tmp_path / to, split={"train": 0.5, "test": 0.5})
        every = {name: rows_in(tmp_path / to / f"{name}.jsonl") for name in ("train", "test")}
        assert sum(map(len, every.values())) == len(rows)
        assert load(tmp_path / "cache", str(tmp_path / to)) == {
            name: rows for name, rows in every.items() if rows
        }


TRAIN = """
import json, sys
from datasets import load_dataset
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from trl.data_utils import apply_chat_template, is_conversational, maybe_extract_prompt
words = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?")
tokenizer.chat_template = sys.argv[2]
rows = list(load_dataset("json", data_files=sys.argv[1], cache_dir=sys.argv[3])["train"])
told = [apply_chat_template(row, tokenizer, tools=row["tools"]) for row in rows if is_conversational(row)]
prompts = [maybe_extract_prompt(row)["prompt"] == row["prompt"] for row in rows if "chosen" in row]
print(json.dumps([len(rows), told, prompts]))
"""
TEMPLATE = (
    "{% for tool in tools or [] %}({{ tool.function.name }}){% endfor %}"
    "{% for each in messages %}<{{ each.role }}>{{ each.content or '' }}"
    "{% for call in each.tool_calls or [] %}[{{ call.function.name }} {{ call.function.arguments | tojson }}]"
    "{% endfor %}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


def test_trl_takes_the_rows_as_they_are(tmp_path):
    """Its own functions put them into a chat template: chats, and pairs with one prompt, tools and all."""
    if not (Path(FOLDER) / "trl").exists():
        pytest.skip("trl is not installed; make test-producers does it")
    tools = [function("look", place={"type": "string"})]
    ask(tmp_path / "runs" / "good", "21", [ToolCall("look", {"place": "here"})], 2, tools=tools)
    ask(tmp_path / "runs" / "bad", "No idea", [], -1, tools=tools)
    asked = "(look)<user>How warm is it?"
    good, bad = '<assistant>I look.[look {"place": "here"}]<tool>21<assistant>21', "<assistant>No idea"
    told = {}
    for to in ("sft", "preference"):
        reenact.export_runs(tmp_path / "runs", to, tmp_path / f"{to}.jsonl")
        told[to] = run_here(TRAIN, str(tmp_path / f"{to}.jsonl"), TEMPLATE, str(tmp_path / "cache"))
    count, chats, _ = told["sft"]
    assert (count, sorted(chat["text"] for chat in chats)) == (2, sorted([asked + good, asked + bad]))
    pair = {"prompt": f"{asked}<assistant>", "chosen": good[11:], "rejected": bad[11:]}
    assert told["preference"] == [1, [pair], [True]]
