"""``pi`` with its files: recorded in one folder, replayed in another with an empty home."""

import json
import shutil
import socket

import pytest

from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider, ToolCall
from reenact.workspace.history import WorkspaceHistory
from tests.cli.commands import run
from tests.npm.conftest import installed

SCRIPT = [
    Reply(
        tool_calls=[ToolCall("bash", {"command": "printf 'one\\ntwo\\n' > list.txt; ln -s list.txt link"})]
    ),
    Reply(
        tool_calls=[
            ToolCall("bash", {"command": "mkdir -p src && mv list.txt src/ && sed -i s/two/2/ src/list.txt"})
        ]
    ),
    Reply("The list is sorted."),
]
OTHERWISE = [
    Reply(tool_calls=[ToolCall("bash", {"command": "sort -r list.txt > reversed.txt; rm link"})]),
    Reply("The list is reversed."),
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Where it was recorded, and the words that run it again."""
    pi = installed("@mariozechner/pi-coding-agent", "0.73.1")
    folder = tmp_path_factory.mktemp("pi")
    for name in ("agent", "work", "home", "elsewhere"):
        (folder / name).mkdir()
    (folder / "work" / "README").write_text("A project.\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    provider = {"baseUrl": f"http://127.0.0.1:{port}/anthropic", "api": "anthropic-messages", "apiKey": "any"}
    models = {"providers": {"reenact": provider | {"models": [{"id": "scripted"}]}}}
    (folder / "agent" / "models.json").write_text(json.dumps(models))
    options = ["--provider", "reenact", "--model", "scripted", "--no-session", "-p", "Sort the list."]
    words = ["--port", port, "--workspace", "--", shutil.which("node"), pi / "dist" / "cli.js", *options]
    environment = {"PI_CODING_AGENT_DIR": str(folder / "agent"), "PI_OFFLINE": "1"}
    with ScriptedProvider([*SCRIPT, *OTHERWISE]) as model:
        base_url = model.base_url("anthropic")
        done = run(
            *["record", "-o", folder / "run", *words],
            cwd=folder / "work",
            ANTHROPIC_BASE_URL=base_url,
            **environment,
        )
        assert (done.returncode, done.stdout) == (0, "The list is sorted.\n"), done.stderr
        yield folder, words, environment
        model.assert_finished()


def test_the_files_of_pi_are_there_step_by_step(recorded):
    """What its shell did, each with the call's result."""
    folder, _, _ = recorded
    history = WorkspaceHistory(CaptureReader(folder / "run"))
    names = [{entry.name for entry in history.read_tree(state.tree)} for state in history.states]
    assert names == [{b"README"}, {b"README", b"link", b"list.txt"}, {b"README", b"link", b"src"}]
    done = run("checkout", folder / "run", "-o", folder / "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "out" / "src" / "list.txt").read_text() == "one\n2\n"


def test_pi_is_replayed_elsewhere_with_an_empty_home(recorded):
    """Its shell commands really run, and end in the same files; those of the user stay."""
    folder, words, environment = recorded
    shutil.rmtree(folder / "work")
    done = run(
        *["replay", folder / "run", *words],
        cwd=folder / "elsewhere",
        HOME=str(folder / "home"),
        **environment,
    )
    assert (done.returncode, done.stdout) == (0, "The list is sorted.\n"), done.stderr
    assert "reproduced, 3 calls answered from the capture" in done.stderr
    assert list((folder / "elsewhere").iterdir()) == []


def test_pi_is_forked_among_the_files_of_a_step(recorded):
    """Its shell goes on where the files of the step are, does something else, and replays so elsewhere."""
    folder, words, environment = recorded
    every = map(json.loads, CaptureReader(folder / "run").lines())
    second = [event["seq"] for event in every if event["type"] == "llm_request"][1]
    options = ["--at", second, "--temperature", "0.5", "--on-miss", "live", "-o", folder / "fork"]
    done = run(*["fork", folder / "run", *options, *words], cwd=folder / "elsewhere", **environment)
    assert (done.returncode, done.stdout) == (0, "The list is reversed.\n"), done.stderr
    done = run("checkout", folder / "fork", "-o", folder / "of-fork", cwd=folder)
    assert sorted(path.name for path in (folder / "of-fork").iterdir()) == [
        "README",
        "list.txt",
        "reversed.txt",
    ]
    assert (folder / "of-fork" / "reversed.txt").read_text() == "two\none\n"
    done = run(
        *["replay", folder / "fork", *words],
        cwd=folder / "elsewhere",
        HOME=str(folder / "home"),
        **environment,
    )
    assert (done.returncode, done.stdout) == (0, "The list is reversed.\n"), done.stderr
