"""Codex with its files: recorded in one folder, replayed in another with an empty home."""

import shutil

import pytest

from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider, ToolCall
from reenact.workspace.history import WorkspaceHistory
from tests.cli.commands import run
from tests.npm.conftest import installed
from tests.npm.test_others import AGENTS

COMMANDS = (
    "pwd; printf 'one\\ntwo\\n' > list.txt; ln -s list.txt link",
    "mkdir -p src && mv list.txt src/ && sed -i s/two/2/ src/list.txt && echo file://$PWD/src",
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Where it was recorded, and the words that run it again."""
    codex = AGENTS["codex"]
    place = installed(codex.package, codex.version)
    program = next(each for each in place.parents if each.name == "node_modules") / ".bin" / "codex"
    folder = tmp_path_factory.mktemp("codex")
    for name in ("work", "home", "other-home", "elsewhere"):
        (folder / name).mkdir()
    (folder / "work" / "README").write_text("A project.\n")
    words = ["--workspace", "--", program, codex.words[0], "-m", "gpt-5-codex", *codex.words[1:]]

    def script(request):
        done = sum(item.get("type") == "function_call_output" for item in request.body["input"])
        if done == len(COMMANDS) or not request.body.get("tools"):
            return Reply("The list is sorted.")
        return Reply(tool_calls=[ToolCall(codex.shell, {"cmd": COMMANDS[done]}, id=f"call_{done}")])

    def surroundings(work, home):
        told = {"HOME": folder / home, "CODEX_HOME": folder / home, "PWD": folder / work}
        return {name: str(value) for name, value in told.items()} | {"TERM": "dumb", **codex.environment}

    with ScriptedProvider(script) as model:
        done = run(
            *["record", "-o", folder / "run", *words],
            cwd=folder / "work",
            timeout_s=200,
            OPENAI_BASE_URL=model.base_url("openai"),
            **surroundings("work", "home"),
        )
    assert done.returncode == 0, done.stderr
    return folder, words, surroundings


def test_the_files_of_codex_are_there_step_by_step(recorded):
    """What its shell did, each with the call's result."""
    folder, _, _ = recorded
    history = WorkspaceHistory(CaptureReader(folder / "run"))
    names = [{entry.name for entry in history.read_tree(state.tree)} for state in history.states]
    assert names == [{b"README"}, {b"README", b"link", b"list.txt"}, {b"README", b"link", b"src"}]
    done = run("checkout", folder / "run", "-o", folder / "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "out" / "src" / "list.txt").read_text() == "one\n2\n"


def test_codex_is_replayed_elsewhere_with_an_empty_home(recorded):
    """Its shell commands really run, and end in the same files; those of the user stay."""
    folder, words, surroundings = recorded
    shutil.rmtree(folder / "work")
    shutil.rmtree(folder / "home")
    done = run(
        *["replay", folder / "run", *words],
        cwd=folder / "elsewhere",
        timeout_s=200,
        **surroundings("elsewhere", "other-home"),
    )
    assert done.returncode == 0, done.stderr
    assert "reproduced" in done.stderr
    assert list((folder / "elsewhere").iterdir()) == []
