"""Makes the files in ``fixtures/``: runs the tools that write them against the scripted provider.

    python -m tests.importers.make_fixtures NAME…

Each tool must be installed, see ``requirements/producers.in``; agents come from npm. What they write goes
to ``REENACT_FIXTURES`` where that names a folder: ``make test-producers`` does so.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx2

from reenact.testing import Reply, Request, Script, ScriptedProvider, ToolCall

FIXTURES = Path(os.environ.get("REENACT_FIXTURES") or Path(__file__).parent / "fixtures")
LONGEST = 300
"""Of a text that is kept."""
PORT = int(os.environ.get("REENACT_FIXTURES_PORT", "8765"))
"""Fixed, so that what is recorded is asked for again at the same address, unless it is chosen."""


def pytest_recording() -> None:
    """A project's tests and their cassettes."""
    folder = FIXTURES / "pytest-recording"
    shutil.rmtree(folder / "cassettes", ignore_errors=True)
    program = Path(__file__).parent / "fixtures" / "pytest-recording" / "test_agent.py"
    if not (folder / program.name).exists():
        folder.mkdir(parents=True)
        (folder / program.name).write_text(program.read_text().replace(":8765/", f":{PORT}/"))
    answers = {"How warm is it in Oslo?": "21 degrees", "One?": "1", "Two?": "2"} | {
        f"Where is {city}?": f"{city} is in Europe" for city in ("rome", "Oslo")
    }
    script = Script.by_text({question: [Reply(text)] for question, text in answers.items()})
    with ScriptedProvider(script, port=PORT):
        words = ["-m", "pytest", "-q", "-p", "pytest_recording.plugin", "--record-mode=all", "--noconftest"]
        options = ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={folder}", str(folder)]
        # Other recorders are plugins too, with options of the same names.
        environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        subprocess.run([sys.executable, *words, *options], check=True, cwd=folder, env=environment)


def cassetter() -> None:
    """One cassette of every kind of body."""
    import cassetter as engine  # type: ignore[import-not-found]
    import openai
    import requests

    path = FIXTURES / "cassetter.yaml"
    path.unlink(missing_ok=True)

    def answer(request: Request) -> Reply:
        return Reply(f"You said {request.user_text}")

    with ScriptedProvider(answer, port=PORT) as provider, engine.use_cassette(str(path), record_mode="all"):
        ask_cassetter_fixture(openai, requests, provider.url)


def ask_cassetter_fixture(openai: object, requests: object, base: str) -> list[str]:
    """What the cassette holds; asked again by the test that replays it."""
    client = openai.OpenAI(base_url=f"{base}/v1", api_key="any")  # type: ignore[attr-defined]
    messages = [{"role": "user", "content": "yes"}]
    whole = client.chat.completions.create(model="m", messages=messages).choices[0].message.content
    stream = client.chat.completions.create(model="m", messages=messages, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    missing = requests.get(f"{base}/nothing").status_code  # type: ignore[attr-defined]
    return [whole, text, str(missing)]


NPM = Path(os.environ.get("REENACT_NPM_AGENTS", ".venv/npm-agents")).absolute() / "node_modules" / ".bin"
HOME = Path("/tmp/reenact-fixtures")
"""Of the agents; fixed, because it stands in what they write."""
QUESTION = "How many files are here?"
CODEX_PROVIDER = '{name="scripted", base_url="BASE", env_key="OPENAI_API_KEY", wire_api="responses"}'


def run_agent(
    name: str, shell: str, service: str, words: list[str], files: dict[str, str] | None = None, **environ: str
) -> None:
    """Let an agent run two commands, one of which fails, and answer; its home is ``HOME``."""
    shutil.rmtree(HOME, ignore_errors=True)
    (HOME / "work").mkdir(parents=True)
    (HOME / "work" / "one.txt").write_text("one\n")

    def answer(request: Request) -> Reply:
        if request.tool_results or not request.body.get("tools"):
            return Reply("There is one file.")
        commands = ["ls", "cat none.txt"]
        named = "cmd" if shell == "exec_command" else "command"
        told = {} if shell == "exec_command" else {"description": "look"}
        calls = [ToolCall(shell, {named: text, **told}) for text in commands]
        return Reply("I look.", calls, thinking="Which files are there?" if service == "anthropic" else "")

    for path, text in (files or {}).items():
        (HOME / path).parent.mkdir(parents=True, exist_ok=True)
        (HOME / path).write_text(text)
    with ScriptedProvider(answer, port=PORT) as provider:
        base = provider.base_url(service)  # type: ignore[arg-type]
        environment = os.environ | {"HOME": str(HOME), "PWD": str(HOME / "work"), "TERM": "dumb", **environ}
        command = [str(NPM / name), *(word.replace("BASE", base) for word in words)]
        subprocess.run(
            command, check=True, cwd=HOME / "work", env=environment, timeout=200, stdin=subprocess.DEVNULL
        )


def shorten(value: Any) -> Any:
    """*value* without the long texts of others, such as the instructions of an agent."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST else f"{value[:40]}… ({len(value)} characters)"
    if isinstance(value, list):
        return [shorten(child) for child in value]
    return {name: shorten(child) for name, child in value.items()} if isinstance(value, dict) else value


def keep(folder: str, base: str, pattern: str) -> None:
    """Keep what an agent wrote in the only folder that *base* is below its home."""
    [home] = HOME.glob(base)
    place = FIXTURES / folder
    shutil.rmtree(place, ignore_errors=True)
    for file in sorted(home.glob(pattern)):
        if file.suffix in (".json", ".jsonl"):
            (place / file.relative_to(home)).parent.mkdir(parents=True, exist_ok=True)
            text = file.read_text()
            lines = text.splitlines() if file.suffix == ".jsonl" else [text]
            shortened = [json.dumps(shorten(json.loads(line)), ensure_ascii=False) for line in lines]
            (place / file.relative_to(home)).write_text("\n".join(shortened) + "\n")


def claude_code() -> None:
    base = f"http://127.0.0.1:{PORT}"
    run_agent(
        "claude", "Bash", "anthropic", ["-p", QUESTION, "--allowedTools", "Bash"],
        ANTHROPIC_BASE_URL=base, ANTHROPIC_API_KEY="unused", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        IS_SANDBOX="1",
    )  # fmt: skip
    keep("claude-code", ".claude/projects/*", "**/*")


def codex() -> None:
    options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    provider = ["-c", "model_provider=scripted", "-c", f"model_providers.scripted={CODEX_PROVIDER}"]
    run_agent(
        "codex", "exec_command", "openai", ["exec", "-m", "gpt-5-codex", *options, *provider, QUESTION],
        CODEX_HOME=str(HOME / "codex"), OPENAI_API_KEY="unused", CODEX_ROLLOUT_TRACE_ROOT=str(HOME / "trace"),
        files={"codex/config.toml": ""},
    )  # fmt: skip
    keep("codex", "codex/sessions/*/*/*", "*")
    keep("codex-trace", "trace", "**/*")


def gemini() -> None:
    settings = {"privacy": {"usageStatisticsEnabled": False}}
    settings |= {"security": {"auth": {"selectedType": "gemini-api-key"}}}  # type: ignore[dict-item]
    run_agent(
        "gemini", "run_shell_command", "gemini", ["--yolo", "-m", "gemini-2.5-pro", "-p", QUESTION],
        GOOGLE_GEMINI_BASE_URL=f"http://127.0.0.1:{PORT}", GEMINI_API_KEY="unused",
        GEMINI_CLI_TRUST_WORKSPACE="true", files={".gemini/settings.json": json.dumps(settings)},
    )  # fmt: skip
    keep("gemini-cli", ".gemini/tmp/*/chats", "*")


def opencode() -> None:
    model = {"npm": "@ai-sdk/anthropic", "models": {"any": {"name": "any"}}}
    model["options"] = {"baseURL": f"http://127.0.0.1:{PORT}/v1", "apiKey": "unused"}
    settings = {"share": "disabled", "autoupdate": False, "provider": {"scripted": model}}
    run_agent(
        "opencode", "bash", "anthropic", ["run", "-m", "scripted/any", QUESTION],
        files={"work/opencode.json": json.dumps(settings)},
    )  # fmt: skip
    environment = os.environ | {"HOME": str(HOME), "PWD": str(HOME / "work")}
    export = [str(NPM / "opencode"), "export"]
    listed = [str(NPM / "opencode"), "session", "list", "--format", "json"]
    found = subprocess.run(listed, check=True, cwd=HOME / "work", env=environment, capture_output=True)
    session = json.loads(found.stdout)[0]["id"]
    done = subprocess.run(
        [*export, session], check=True, cwd=HOME / "work", env=environment, capture_output=True
    )
    (FIXTURES / "opencode.json").write_text(json.dumps(shorten(json.loads(done.stdout)), indent=1) + "\n")


def opencode_server() -> None:
    """A session that is driven through opencode's server, which keeps it in a newer table."""
    shutil.rmtree(HOME, ignore_errors=True)
    (HOME / "work").mkdir(parents=True)
    (HOME / "work" / "one.txt").write_text("one\n")
    capabilities = {"tools": True, "input": ["text"], "output": ["text"]}
    model = {"name": "any", "capabilities": capabilities, "limit": {"context": 200_000, "output": 8_000}}
    api = {"type": "aisdk", "package": "@ai-sdk/anthropic", "url": f"http://127.0.0.1:{PORT}/v1"}
    provider = {"name": "scripted", "api": api, "request": {"headers": {}, "body": {"apiKey": "unused"}}}
    permission = {"action": "*", "resource": "*", "effect": "allow"}
    settings = {
        "providers": {"scripted": {**provider, "models": {"any": model}}},
        "permissions": [permission],
    }
    (HOME / "work" / "opencode.json").write_text(json.dumps(settings))
    environment = os.environ | {"HOME": str(HOME), "PWD": str(HOME / "work"), "TERM": "dumb"}
    calls = [ToolCall("bash", {"command": text, "description": "look"}) for text in ("ls", "cat none.txt")]
    script = [Reply("I look.", calls, thinking="Which files are there?"), Reply("There is one file.")]
    words = [str(NPM / "opencode"), "serve", "--port", str(PORT + 1)]
    with (
        ScriptedProvider(script, port=PORT),
        subprocess.Popen(words, cwd=HOME / "work", env=environment) as server,
        httpx2.Client(base_url=f"http://127.0.0.1:{PORT + 1}/api", timeout=30) as client,
    ):
        try:
            session = ask_opencode(client)
            until = monotonic() + 60
            while not any(each.get("finish") == "stop" for each in messages_of_opencode(client, session)):
                assert monotonic() < until, "opencode does not answer"
                sleep(0.2)
        finally:
            server.terminate()


def ask_opencode(client: httpx2.Client) -> str:
    """The session in which opencode was asked, once its server answers."""
    about = {"model": {"id": "any", "providerID": "scripted"}, "location": {"directory": str(HOME / "work")}}
    for _ in range(300):
        with suppress(httpx2.TransportError):
            session = str(client.post("/session", json=about).json()["data"]["id"])
            client.get("/model")
            sleep(3)  # it reads its settings meanwhile
            client.post(f"/session/{session}/prompt", json={"prompt": {"text": QUESTION}})
            return session
        sleep(0.2)
    raise TimeoutError("the server of opencode does not answer")


def messages_of_opencode(client: httpx2.Client, session: str) -> list[Any]:
    return list(client.get(f"/session/{session}/message").json()["data"])


def pi() -> None:
    models = {
        "providers": {
            "scripted": {
                "baseUrl": f"http://127.0.0.1:{PORT}",
                "api": "anthropic-messages",
                "apiKey": "unused",
                "models": [{"id": "any"}],
            }
        }
    }
    run_agent(
        "pi", "bash", "anthropic", ["--provider", "scripted", "--model", "any", "-p", QUESTION],
        PI_CODING_AGENT_DIR=str(HOME / "agent"), PI_OFFLINE="1",
        files={"agent/models.json": json.dumps(models)},
    )  # fmt: skip
    keep("pi", "agent/sessions/*", "*")


def mini_swe_agent() -> None:
    """Its agent and its shell, with the models that it brings for tests: with tool calls, and without."""
    os.environ["MSWEA_GLOBAL_CONFIG_DIR"] = str(HOME)
    from minisweagent.agents.default import DefaultAgent  # type: ignore[import-not-found]
    from minisweagent.environments.local import LocalEnvironment  # type: ignore[import-not-found]
    from minisweagent.models import test_models as models  # type: ignore[import-not-found]

    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir()
    (HOME / "one.txt").touch()
    commands = ["ls", "cat none.txt", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo one"]
    actions = [{"command": text, "tool_call_id": f"call_{n}"} for n, text in enumerate(commands)]
    asked = [
        {"id": each["tool_call_id"], "function": {"name": "bash", "arguments": json.dumps({"command": text})}}
        for each, text in zip(actions, commands, strict=True)
    ]
    plain = [models.make_output("I look.", [{"command": text} for text in commands[:2]])]
    plain.append(models.make_output("Done.", [{"command": commands[2]}]))
    called = [models.make_toolcall_output("I look.", asked[:2], actions[:2])]
    called.append(models.make_toolcall_output("Done.", asked[2:], actions[2:]))
    for name, model in (
        ("plain", models.DeterministicModel(outputs=plain)),
        ("tools", models.DeterministicToolcallModel(outputs=called)),
    ):
        path = FIXTURES / f"mini-swe-agent-{name}.traj.json"
        agent = DefaultAgent(
            model, LocalEnvironment(cwd=str(HOME)), system_template="You look.", instance_template="{{task}}",
            output_path=path,
        )  # fmt: skip
        agent.run(QUESTION)
        path.write_text(json.dumps(shorten(json.loads(path.read_text())), indent=1) + "\n")


def with_hex_ids(value: Any) -> Any:
    """As OTLP writes ids in JSON, unlike protobuf."""
    if isinstance(value, list):
        return [with_hex_ids(child) for child in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {
        name: base64.b64decode(child).hex() if name in ids else with_hex_ids(child)
        for name, child in value.items()
    }


def opentelemetry() -> None:
    """Traces of two instrumentations of the same SDK, as protobuf and as JSON."""
    import openai
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import (  # type: ignore[import-not-found]
        encode_spans,
    )
    from opentelemetry.sdk.trace import TracerProvider  # type: ignore[import-not-found]
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # type: ignore[import-not-found]
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (  # type: ignore[import-not-found]
        InMemorySpanExporter,
    )

    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "span_only"
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    from openinference.instrumentation.openai import OpenAIInstrumentor as Inference  # type: ignore[import-not-found]
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor as GenAI  # type: ignore[import-not-found]

    look = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    script = [Reply("I look.", [ToolCall("look", {"q": "x"})]), Reply("There is one file.")]
    for name, instrumentor in (("genai", GenAI()), ("openinference", Inference())):
        kept = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(kept))
        instrumentor.instrument(tracer_provider=provider)
        tracer = provider.get_tracer("agent")
        with ScriptedProvider(script, port=PORT) as model, tracer.start_as_current_span("agent"):
            client = openai.OpenAI(base_url=f"{model.url}/v1", api_key="unused")
            said: list[Any] = [{"role": "user", "content": QUESTION}]
            first = client.chat.completions.create(model="m", messages=said, tools=[look])  # type: ignore[list-item]
            called = first.choices[0].message
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
            if name == "openinference":
                attributes = {
                    "openinference.span.kind": "TOOL",
                    "tool.name": "look",
                    "output.value": "one.txt",
                }
            with tracer.start_as_current_span("look", attributes=attributes):
                pass
            said += [called, {"role": "tool", "tool_call_id": called.tool_calls[0].id, "content": "one.txt"}]  # type: ignore[index]
            client.chat.completions.create(model="m", messages=said)
        instrumentor.uninstrument()
        request = encode_spans(kept.get_finished_spans())
        (FIXTURES / f"otlp-{name}.pb").write_bytes(request.SerializeToString())
        told = with_hex_ids(MessageToDict(request))
        (FIXTURES / f"otlp-{name}.json").write_text(json.dumps(told, indent=1) + "\n")


def inspect() -> None:
    """An evaluation of two samples, with the model that Inspect brings for tests; one of its tools fails."""
    from inspect_ai import Task  # type: ignore[import-not-found]
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample  # type: ignore[import-not-found]
    from inspect_ai.log import read_eval_log_samples  # type: ignore[import-not-found]
    from inspect_ai.model import ModelOutput, ModelUsage, get_model  # type: ignore[import-not-found]
    from inspect_ai.scorer import includes  # type: ignore[import-not-found]
    from inspect_ai.solver import generate, system_message, use_tools  # type: ignore[import-not-found]
    from inspect_ai.tool import ToolError, tool  # type: ignore[import-not-found]

    @tool  # type: ignore[untyped-decorator]
    def weather() -> Any:
        async def execute(place: str) -> str:
            """Tell the weather.

            Args:
                place: Where.
            """
            if place == "nowhere":
                raise ToolError("there is no such place")
            return f"21 degrees in {place}"

        return execute

    def say(text: str) -> Any:
        return ModelOutput.from_content("mockllm/model", text)

    def call(place: str) -> Any:
        return ModelOutput.for_tool_call("mockllm/model", "weather", {"place": place})

    outputs = [call("Oslo"), say("It is 21 degrees."), call("nowhere"), say("I cannot tell.")]
    for output in outputs:
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    samples = [
        Sample(input="How warm is it in Oslo?", target="21", id="oslo"),
        Sample(input="How warm is it nowhere?", target="cannot", id="nowhere"),
    ]
    solver = [system_message("Be brief."), use_tools(weather()), generate()]
    task = Task(dataset=samples, solver=solver, scorer=includes(), name="warm")
    model = get_model("mockllm/model", custom_outputs=outputs)
    shutil.rmtree(HOME, ignore_errors=True)
    evaluate(task, model=model, log_dir=str(HOME), display="none", max_samples=1)
    [log] = HOME.glob("*.eval")
    shutil.copy(log, FIXTURES / "inspect.eval")
    found = read_eval_log_samples(str(log), resolve_attachments="full")
    told = [sample.model_dump(mode="json", exclude_none=True) for sample in found]
    (FIXTURES / "inspect-samples.txt").write_text(json.dumps(shorten(told), indent=1) + "\n")


PRODUCERS: dict[str, Callable[[], None]] = {
    "pytest-recording": pytest_recording,
    "cassetter": cassetter,
    "claude-code": claude_code,
    "codex": codex,
    "gemini-cli": gemini,
    "opencode": opencode,
    "opencode-server": opencode_server,
    "pi": pi,
    "mini-swe-agent": mini_swe_agent,
    "opentelemetry": opentelemetry,
    "inspect": inspect,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or PRODUCERS:
        PRODUCERS[name]()
