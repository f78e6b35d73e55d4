"""One agent tried: recorded as it is against a model that listens here, then replayed three times."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from reenact.testing import ScriptedProvider
from tests.frameworks import model
from tests.frameworks.installed import FRAMEWORKS, Framework, later_date

REPLAYS = ("same folder", "other folder", "other home and date")
TIMEOUT_S = 300
PRINTED = "it printed something else: "
DURATIONS = "it printed other durations: "
_DURATION = re.compile(r"\d+(?:\.\d+)?(?= ?(?:ms|s|sec|secs|seconds)\b)|\b\d+:\d\d:\d\d\b")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_NOT_THE_AGENT = shutil.ignore_patterns("__pycache__", "model.py", "requirements.txt")
_ASK = FRAMEWORKS / "_ask.py"
"""One question to a model, for agents whose framework asks none by itself."""
_KEPT = ("LANG", "TMPDIR")
_STARTERS = {".py": ("python",), ".mjs": ("node",), ".sh": ("sh",), ".go": ()}
"""What runs an agent, by the ending of its file; a Go program was compiled when it was installed."""


@dataclass(frozen=True)
class Result:
    """What became of one agent."""

    framework: str
    agent: str
    recorded: str
    """What is wrong with the recording; nothing when it is good."""
    replays: Mapping[str, str]
    """What is wrong with each replay; nothing when it is exact."""

    @property
    def is_exact(self) -> bool:
        return not self.recorded and not any(self.replays.values())

    def to_json(self) -> dict:
        return asdict(self)


@dataclass(frozen=True)
class Ended:
    status: int | None
    """``None`` when it had to be ended by force."""
    output: str
    errors: str


def try_agent(framework: Framework, agent: Path, scratch: Path) -> Result:
    """Record *agent* and replay it; everything it leaves is below *scratch*."""
    shutil.rmtree(scratch, ignore_errors=True)
    here, elsewhere = scratch / "work", scratch / "moved" / "place"
    _lay_out(framework, here)
    capture = scratch / "capture"
    replays = dict.fromkeys(REPLAYS, "not tried")
    with ScriptedProvider(_script(framework)) as provider:
        home = _surroundings(framework, provider, scratch / "home")
        words = command(framework, agent)
        recorded = run(["reenact", "record", "-o", capture, "--", *words], here, home)
        (scratch / "recorded.stderr").write_text(recorded.errors)
        if problem := _recording_problem(recorded, capture, provider):
            return Result(framework.name, agent.stem, problem, replays)
        later = {**_surroundings(framework, provider, scratch / "other"), "TZ": "Asia/Kathmandu"}
        later["LD_PRELOAD"] = str(later_date())
        for name, folder, surroundings in zip(
            REPLAYS, (here, elsewhere, elsewhere), (home, home, later), strict=True
        ):
            asked = provider.connections
            receipt = scratch / f"{name.replace(' ', '-')}.json"
            replay = ["reenact", "replay", capture, "--receipt", receipt, "--", *words]
            _lay_out(framework, folder)
            shutil.rmtree(surroundings["HOME"])
            Path(surroundings["HOME"]).mkdir()
            ended = run(replay, folder, surroundings)
            receipt.with_suffix(".stderr").write_text(ended.errors)
            outputs = (
                _without_chance(recorded.output, here, home["HOME"]),
                _without_chance(ended.output, folder, surroundings["HOME"]),
            )
            replays[name] = _replay_problem(outputs, ended, receipt, provider.connections - asked)
    return Result(framework.name, agent.stem, "", replays)


def _lay_out(framework: Framework, folder: Path) -> None:
    """Make *folder* what the recorded run found: what an earlier run left there would be a difference."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(framework.folder, folder, ignore=_NOT_THE_AGENT)
    shutil.copy(_ASK, folder)
    if (framework.place / "node_modules").exists():
        (folder / "node_modules").symlink_to(framework.place / "node_modules")


def command(framework: Framework, agent: Path) -> list[str]:
    """The words that start *agent* in its own folder."""
    if agent.suffix == ".go":
        return [str(framework.place / agent.stem)]
    return [*_STARTERS[agent.suffix], agent.name]


def run(words: list[object], folder: Path, environment: Mapping[str, str]) -> Ended:
    """Run *words* to their end, with all they started."""
    process = subprocess.Popen(
        [str(word) for word in words],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        output, errors = process.communicate(timeout=TIMEOUT_S)
        return Ended(process.returncode, output, errors)
    except subprocess.TimeoutExpired:
        _end_all_of(environment["HOME"])
        output, errors = process.communicate()
        return Ended(None, output, errors)
    finally:
        _end_all_of(environment["HOME"])


def _end_all_of(home: str) -> None:
    """End what runs with that home, which is ours alone: servers and kernels may outlive who started them."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"HOME={home}\0".encode() in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)


def _script(framework: Framework):
    if not (FRAMEWORKS / framework.name / "model.py").exists():
        return model.answer
    own = importlib.import_module(f"tests.frameworks.{framework.name}.model")
    return lambda request: own.answer(request) or model.answer(request)


def _surroundings(framework: Framework, provider: ScriptedProvider, home: Path) -> dict[str, str]:
    """An environment with nothing of ours but the addresses of the model."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = f"{framework.place / 'bin'}:{os.environ['PATH']}"
    keys = {f"{name}_API_KEY": "unused" for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE")}
    return {
        **kept,
        **keys,
        "PATH": path,
        "HOME": str(home),
        "TERM": "dumb",
        "OPENAI_BASE_URL": provider.base_url("openai"),
        "OPENAI_API_BASE": provider.base_url("openai"),
        "ANTHROPIC_BASE_URL": provider.base_url("anthropic"),
        "GOOGLE_GEMINI_BASE_URL": provider.base_url("gemini"),
        "OLLAMA_HOST": provider.base_url("ollama"),
    }


def _recording_problem(recorded: Ended, capture: Path, provider: ScriptedProvider) -> str:
    if recorded.status is None:
        return f"the recorded run did not end within {TIMEOUT_S} s"
    if recorded.status:
        return f"the recorded run ended with {recorded.status}: {_last_line(recorded.errors)}"
    if provider.unanswered:
        return f"the scripted model had no answer: {provider.unanswered[0]}"
    if not any(request.wire for request in provider.requests):
        return "the recorded run asked no model"
    if not (capture / "manifest.json").exists():
        said = (line for line in recorded.errors.splitlines() if line.startswith("reenact: "))
        return next(said, "nothing was recorded").removeprefix("reenact: ")
    return ""


def _without_chance(output: str, folder: Path, home: str) -> str:
    """What a run printed, with its own folders and each of its random UUIDs by another name."""
    output = output.replace(str(folder), "{folder}").replace(home, "{home}")
    names: dict[str, str] = {}
    return _UUID.sub(lambda found: names.setdefault(found[0], f"{{uuid {len(names)}}}"), output)


def _replay_problem(outputs: tuple[str, str], replayed: Ended, receipt: Path, asked: int) -> str:
    if replayed.status is None:
        return f"the replay did not end within {TIMEOUT_S} s"
    if asked:
        return f"{asked} connections reached the model in the replay"
    if replayed.status != 0 or not receipt.exists():
        return _first_finding(replayed)
    verdict = json.loads(receipt.read_bytes())["verdict"]
    if verdict != "reproduced":
        return f"the receipt says {verdict}"
    if outputs[0] != outputs[1]:
        timeless = [_DURATION.sub("#", output) for output in outputs]
        return (PRINTED if timeless[0] != timeless[1] else DURATIONS) + _first_difference(*outputs)
    return ""


def _first_finding(replayed: Ended) -> str:
    """What ``reenact`` says first about the difference; its summary only when there is nothing more."""
    lines = replayed.errors.splitlines()
    ours = [number for number, line in enumerate(lines) if line.startswith("reenact: ")]
    if not ours:
        return f"exit status {replayed.status}: {_last_line(replayed.errors)}"
    found = [line.strip() for line in lines[ours[-1] : ours[-1] + 2]]
    return found[-1]


def _first_difference(one: str, other: str) -> str:
    pairs = zip([*one.splitlines(), "(end)"], [*other.splitlines(), "(end)"], strict=False)
    first = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return f"{first[1]!r}, not {first[0]!r}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("reenact:")]
    plain = [line for line in lines if not line.startswith(("the run ended", "replay it with"))]
    return plain[-1] if plain else "(nothing on stderr)"
