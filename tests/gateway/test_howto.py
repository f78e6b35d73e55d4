"""The pages about other languages say what really happens."""

import json
import re
import shutil
import subprocess

import pytest

from reenact.gateway.upstreams import variables
from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.injected.fenced import fences_stand
from tests.test_project import ROOT, commands_of, shell_environment, steady

PAGES = ROOT / "docs" / "howto"
SCRIPT = [
    Reply(tool_calls=[ToolCall("list_files", {"folder": "lamps"})]),
    Reply("There are two lamps."),
]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_commands_of_the_page_print_what_they_say(tmp_path):
    """With a model that plays its part."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with ScriptedProvider(SCRIPT) as provider:
        environment = shell_environment(tmp_path) | {"ANTHROPIC_BASE_URL": provider.base_url("anthropic")}
        page = (PAGES / "any-language.md").read_text()
        if not fences_stand():
            page = page.replace("nothing left this machine", "nothing was passed on")
        for command, output in commands_of(page):
            done = subprocess.run(
                command,
                shell=True,
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            assert sorted(steady(done.stdout)) == sorted(steady(output)), command
        provider.assert_finished()


def test_the_page_names_every_variable():
    """And no other."""
    text = (PAGES / "any-language.md").read_text()
    table = "".join(line for line in text.splitlines() if line.startswith("| `"))
    found = set(variables("http://127.0.0.1:1", {})) - {"NO_PROXY", "no_proxy"}
    assert set(re.findall(r"`([A-Z_]{5,})`", table)) == found


@pytest.mark.parametrize("page", ["pi", "openclaw"])
def test_configurations_on_the_pages_are_json(page):
    """And lead to the port that the commands name."""
    text = (PAGES / f"{page}.md").read_text()
    [example] = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    json.loads(example)
    assert set(re.findall(r"127\.0\.0\.1:(\d+)", example)) == set(re.findall(r"--port (\d+)", text))
