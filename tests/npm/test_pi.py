"""``pi``, a coding agent in Node: a turn with a real shell command, recorded and replayed without a model."""

import json
import shutil
import socket

import pytest

from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.cli.commands import run
from tests.npm.conftest import installed

SCRIPT = [
    Reply(tool_calls=[ToolCall("bash", {"command": "echo $((6 * 7)) > answer.txt; cat answer.txt"})]),
    Reply("The answer is 42."),
]
NEXT_MONTH = """
const Real = Date;
const shift = 40 * 24 * 3600 * 1000;
globalThis.Date = class extends Real {
  constructor(...parts) { parts.length ? super(...parts) : super(Real.now() + shift); }
  static now() { return Real.now() + shift; }
};
"""


class Recorded:
    """Where it was recorded, and how to run it again."""

    def __init__(self, folder, port, words):
        self.folder = folder
        self.work = folder / "work"
        self.environment = {"PI_CODING_AGENT_DIR": str(folder / "agent"), "PI_OFFLINE": "1"}
        self.port = port
        self.words = words
        self.provider_port = 0

    def record(self, provider):
        environment = self.environment | {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
        options = ["-o", self.folder / "run", "--port", self.port]
        return run("record", *options, "--", *self.words, cwd=self.work, **environment)

    def replay(self, cwd, **environment):
        words = ["replay", self.folder / "run", "--port", self.port, "--", *self.words]
        return run(*words, cwd=cwd, **self.environment, **environment)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A run of pi; the provider is gone."""
    pi = installed("@mariozechner/pi-coding-agent", "0.73.1")
    folder = tmp_path_factory.mktemp("pi")
    for name in ("agent", "work", "elsewhere"):
        (folder / name).mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    models = {
        "providers": {
            "reenact": {
                "baseUrl": f"http://127.0.0.1:{port}/anthropic",
                "api": "anthropic-messages",
                "apiKey": "any",
                "models": [{"id": "scripted"}],
            }
        }
    }
    (folder / "agent" / "models.json").write_text(json.dumps(models))
    options = [
        "--provider",
        "reenact",
        "--model",
        "scripted",
        "--no-session",
        "-p",
        "What is six times seven?",
    ]
    again = Recorded(folder, port, [shutil.which("node"), pi / "dist" / "cli.js", *options])
    with ScriptedProvider(SCRIPT) as provider:
        again.provider_port = provider.port
        done = again.record(provider)
        provider.assert_finished()
    assert (done.returncode, done.stdout) == (0, "The answer is 42.\n"), done.stderr
    return again


def test_pi_is_recorded_with_its_tool(recorded):
    """Two model calls, and between them the shell command with what it said."""
    reader = CaptureReader(recorded.folder / "run")
    events = {event.__struct_config__.tag: event.data for event in reader.events()}
    assert reader.manifest.model.provider == "anthropic"
    assert (events["tool_call"].tool, events["tool_call"].derived) == ("bash", True)
    assert events["tool_result"].result == "42\n"
    assert len(reader) == 8


def test_pi_is_replayed_strictly_without_its_provider(recorded):
    """The shell command really runs; what the model said comes from the capture."""
    (recorded.work / "answer.txt").unlink()
    done = recorded.replay(recorded.work)
    assert (done.returncode, done.stdout) == (0, "The answer is 42.\n"), done.stderr
    assert "reproduced, 2 calls answered from the capture" in done.stderr
    assert (recorded.work / "answer.txt").read_text() == "42\n"


CHANGES = {"another directory": ("elsewhere", False), "another date": ("work", True)}


@pytest.mark.parametrize(("place", "is_later"), CHANGES.values(), ids=CHANGES)
def test_pi_elsewhere_or_later_passes_or_says_what_differs(place, is_later, recorded):
    """Where no rule covers it, the difference is named with its path and both values."""
    (recorded.folder / "later.cjs").write_text(NEXT_MONTH)
    later = {"NODE_OPTIONS": f"--require {recorded.folder / 'later.cjs'}"} if is_later else {}
    done = recorded.replay(recorded.folder / place, **later)
    if done.returncode:
        assert done.returncode == 1
        assert " became " in done.stderr
        assert " at $.body.system[0].text: expected …" in done.stderr
