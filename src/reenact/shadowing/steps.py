"""Step by step: send each recorded model request again with a change, on the recorded history.

No agent and no tool runs: the new answer of the model is compared with the recorded one, request by request.
Captures of any language have the requests as they were sent, and so have some imported runs. Those of
imported transcripts are rebuilt of what was said, and the report says so.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import httpx2
import msgspec

from reenact import canonical
from reenact.analysis.brief import plural
from reenact.canonical import JsonField
from reenact.check.kinds import name_runs
from reenact.errors import CheckFailed, UsageError
from reenact.forks.change import read_change
from reenact.formats.record import ABSENT
from reenact.formats.shadow import AskedStep, Rate, StepsReport
from reenact.gateway.upstreams import upstreams_of
from reenact.progress import ProgressBar, no_progress_bar
from reenact.providers import ModelResponse, RequestChange, ToolCallPart, ask_otherwise, read_response
from reenact.shadowing.rebuilt import RebuiltRequest, rebuild_requests
from reenact.store.reader import CaptureReader
from reenact.store.remote import local_run
from reenact.suite.verdict import shorten
from reenact.trace.model_calls import model_response

_TIMEOUT_S: Final = 600.0
_TRIES: Final = 4
_MAX_PAUSE_S: Final = 30.0
_AGAIN: Final = (408, 429, 500, 502, 503, 504, 529)
_KEPT_HEADERS: Final = (
    "anthropic-beta",
    "anthropic-version",
    "content-type",
    "openai-beta",
    "openai-project",
)
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "openai_chat": ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"),
    "openai_responses": ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "ollama": ("OLLAMA_API_KEY",),
}
_KEY_HEADERS: Final = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
_UPSTREAMS: Final = {"openai_chat": "openai", "openai_responses": "openai"}
_SHOWN: Final = 120


class _Question(NamedTuple):
    path: str
    capture_id: str
    seq: int
    provider: Any
    url: str
    headers: dict[str, str]
    body: dict[str, JsonField]
    recorded: ModelResponse
    is_rebuilt: bool


def shadow_steps(
    runs: str | Path | Iterable[str | Path],
    *,
    change: Mapping[str, object],
    jobs: int = 4,
    upstreams: Mapping[str, str] | None = None,
    progress_bar: ProgressBar = no_progress_bar,
) -> StepsReport:
    """Send every recorded model request of *runs* again with *change*, and compare the answers.

    *change* has ``model``, ``system`` or ``temperature``. Requests go to the recorded address, or to the
    *upstreams* by name, with the keys of this environment, up to *jobs* at a time. Nothing is
    recorded.
    """
    read, _ = read_change(change)
    if read.changes_outcome or not read.request.is_any:
        raise UsageError("shadow: nothing is changed; give model, system or temperature")
    paths = name_runs([runs] if isinstance(runs, str | Path) else list(runs))
    questions: list[_Question] = []
    left_out = 0
    for path in paths:
        with local_run(path) as folder:
            for question in _questions_in(path, CaptureReader(folder), read.request, upstreams or {}):
                if question is None:
                    left_out += 1
                else:
                    questions.append(question)
    if not questions:
        raise UsageError(f"{paths[0]}: holds no model request that can be asked again")
    steps: dict[int, AskedStep] = {}
    is_interrupted = False
    with (
        progress_bar(len(questions), "asking") as advance,
        httpx2.Client(timeout=_TIMEOUT_S) as client,
        ThreadPoolExecutor(max(1, jobs)) as executor,
    ):
        places = {executor.submit(_ask, client, each): place for place, each in enumerate(questions)}
        try:
            for future in as_completed(places):
                steps[places[future]] = future.result()
                advance(1)
        except KeyboardInterrupt:
            executor.shutdown(wait=False, cancel_futures=True)
            is_interrupted = True
    done = [steps[place] for place in sorted(steps)]
    answered = [step for step in done if not step.problem]
    if done and not answered:
        raise CheckFailed(f"{done[0].path}: event {done[0].seq}: {done[0].problem}")
    return StepsReport(
        steps=done,
        change=msgspec.to_builtins(read),
        tools=Rate.of(sum(step.same_tools for step in answered), len(answered)),
        arguments=Rate.of(sum(step.same_arguments for step in answered), len(answered)),
        words=Rate.of(sum(step.same_words for step in answered), len(answered)),
        failed=len(done) - len(answered),
        left_out=left_out,
        is_interrupted=is_interrupted,
    )


def _questions_in(
    path: str, reader: CaptureReader, change: RequestChange, upstreams: Mapping[str, str]
) -> Iterator[_Question | None]:
    """The changed requests of a run; ``None`` for each that cannot be sent again."""
    waiting: dict[str, tuple[int, dict[str, object]]] = {}
    rebuilt = rebuild_requests(reader)
    for number, line in enumerate(reader.lines(), 1):
        if b'"type":"llm_re' not in line:
            continue
        event = msgspec.json.decode(line)
        data = event["data"]
        if event["type"] == "llm_request":
            waiting[data["callId"]] = number, data
        elif data["callId"] in waiting:
            seq, request = waiting.pop(data["callId"])
            yield _question(path, reader, seq, request, data, change, upstreams, rebuilt.get(data["callId"]))
    yield from (None for _ in waiting)


def _question(
    path: str,
    reader: CaptureReader,
    seq: int,
    data: dict[str, Any],
    outcome: dict[str, object],
    change: RequestChange,
    upstreams: Mapping[str, str],
    rebuilt: RebuiltRequest | None,
) -> _Question | None:
    provider = data["provider"]
    pieces = reader.resolve(outcome["pieces"]) if "pieces" in outcome else ABSENT
    recorded = model_response(provider, reader.resolve(outcome.get("response")), pieces)
    if recorded is None or recorded.error is not None:
        return None
    if rebuilt is not None:
        provider, asked_url, headers, body = rebuilt
    else:
        request = reader.resolve(data.get("request"))
        is_wire = isinstance(request, dict) and isinstance(request.get("url"), str)
        if not is_wire or provider not in _KEYS or not isinstance(request.get("body"), dict):
            return None
        asked_url, body = request["url"], request["body"]
        headers = {name.lower(): str(value) for name, value in dict(data.get("headers") or {}).items()}
    other = ask_otherwise(provider, asked_url, body, change)
    url, key_headers = _with_key(f"{path}: event {seq}", provider, other.url, headers)
    kept = {name: value for name, value in headers.items() if name in _KEPT_HEADERS}
    kept |= {"content-type": "application/json"} | key_headers
    if provider == "anthropic":
        kept.setdefault("anthropic-version", "2023-06-01")
    name = _UPSTREAMS.get(provider, provider)
    if name in upstreams:
        url = _redirect(url, upstreams_of({})[name], upstreams[name])
    capture_id, is_rebuilt = reader.manifest.captureId, rebuilt is not None
    return _Question(path, capture_id, seq, provider, url, kept, other.body, recorded, is_rebuilt)


def _with_key(place: str, provider: str, url: str, headers: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Add the key from the environment, because keys are never recorded."""
    name = next((name for name in _KEY_HEADERS if name in headers), None)
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    in_query = any(key == "key" for key, _ in query)
    if name is None and not in_query:
        return url, {}
    key = next((os.environ[each] for each in _KEYS[provider] if os.environ.get(each)), None)
    if key is None:
        raise UsageError(f"{place}: no API key; set {_KEYS[provider][0]}")
    if name is None:
        changed = [(each, key if each == "key" else value) for each, value in query]
        return urlunsplit(parts._replace(query=urlencode(changed))), {}
    return url, {name: f"Bearer {key}" if name == "authorization" else key}


def _redirect(url: str, usual: str, base: str) -> str:
    """Move *url* from the *usual* base to another *base*; if it is elsewhere, only its host changes."""
    if url.startswith(usual):
        return base + url.removeprefix(usual)
    parts = urlsplit(url)
    return base + urlunsplit(("", "", parts.path, parts.query, ""))


def _ask(client: httpx2.Client, question: _Question) -> AskedStep:
    recorded = _describe_answer(question.recorded)
    step = AskedStep(
        path=question.path,
        capture_id=question.capture_id,
        seq=question.seq,
        recorded=recorded,
        recorded_tokens=_tokens(question.recorded),
        is_rebuilt=question.is_rebuilt,
    )
    try:
        answer = _send(client, question)
    except httpx2.HTTPError as error:
        return msgspec.structs.replace(step, problem=f"{urlsplit(question.url).netloc}: {error}")
    if answer.error is not None:
        said = " ".join(answer.error.message.split())
        remedy = "; is the key right?" if answer.status in (401, 403) else ""
        return msgspec.structs.replace(step, problem=f"status {answer.status}: {said}{remedy}")
    before, now = _calls(question.recorded), _calls(answer)
    same_tools = Counter(name for name, _ in before) == Counter(name for name, _ in now)
    same_arguments = Counter(before) == Counter(now)
    return msgspec.structs.replace(
        step,
        candidate=_describe_answer(answer),
        same_tools=same_tools,
        same_arguments=same_arguments,
        same_words=same_arguments and question.recorded.text == answer.text,
        tokens=_tokens(answer),
    )


def _send(client: httpx2.Client, question: _Question) -> ModelResponse:
    for attempt in range(_TRIES):
        response = client.post(question.url, headers=question.headers, json=question.body)
        if response.status_code not in _AGAIN or attempt == _TRIES - 1:
            break
        wait = response.headers.get("retry-after", "")
        time.sleep(min(float(wait) if wait.replace(".", "", 1).isdecimal() else 2.0**attempt, _MAX_PAUSE_S))
    return read_response(question.provider, response.status_code, {}, response.content)


def _calls(answer: ModelResponse) -> list[tuple[str, str]]:
    return [
        (part.name, canonical.encode(part.arguments).decode())
        for part in answer.parts
        if isinstance(part, ToolCallPart)
    ]


def _describe_answer(answer: ModelResponse) -> str:
    calls = [f"{name} {arguments}" for name, arguments in _calls(answer)]
    text = ", ".join(calls) if calls else shorten(answer.text, _SHOWN)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _tokens(answer: ModelResponse) -> int:
    usage = answer.usage
    return (usage.input_tokens or 0) + (usage.output_tokens or 0) if usage is not None else 0


def step_lines(report: StepsReport, *, every: bool = False) -> Iterator[str]:
    """The steps with another answer, and the rates of equal answers."""
    for step in report.steps:
        if step.problem:
            yield f"no answer       {step.path}: event {step.seq}: {step.problem}"
        elif every or not step.same_arguments:
            word = (
                "the same" if step.same_arguments else "other arguments" if step.same_tools else "other tools"
            )
            yield f"{word:<15} {step.path}: event {step.seq}: {step.recorded} -> {step.candidate}"
    left = f"; {report.left_out} left out, which hold no request as it was sent" if report.left_out else ""
    count = len(report.steps) - report.failed
    failed = f", {report.failed} without an answer" if report.failed else ""
    yield f"{plural(count, 'request')} asked again{failed}{left}"
    if rebuilt := sum(step.is_rebuilt for step in report.steps):
        yield f"  {rebuilt} rebuilt of a transcript: no instructions, and tools as they were called"
    yield f"  same tools      {report.tools}"
    yield f"  same arguments  {report.arguments}"
    yield f"  same words      {report.words}"
    if report.is_interrupted:
        yield "  interrupted: this is about what was done by then"
