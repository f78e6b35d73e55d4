"""The how-to page does what it says."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reenact.pytest_plugin.lifetime import Options
from reenact.pytest_plugin.marker import MODES
from tests.pytest_plugin.conftest import Suite

pytest_plugins = ["pytester"]

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
PAGE = (HOWTO / "pytest.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(python|yaml|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("page", "expected"), [("pytest", 14), ("web-app", 2), ("databases", 2)])
def test_the_page_s_files_and_commands(suite: Suite, page: str, expected: int) -> None:
    """Written and run in order; each command prints the lines below it, among others."""
    loops = ("-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function")
    commands = 0
    for language, block in BLOCK.findall((HOWTO / f"{page}.md").read_text(encoding="utf-8")):
        if language != "console":
            name = block.splitlines()[0].removeprefix("# ")
            (suite.path / name).write_text(block, encoding="utf-8")
            continue
        for part in re.split(r"^\$ pytest ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            result = suite.run(*loops, *shlex.split(command))
            result.stdout.fnmatch_lines(output.splitlines())
            commands += 1
    assert commands == expected


def test_the_page_on_leaving_vcrpy(suite: Suite) -> None:
    """Its test, with the cassette that pytest-recording made of it, passes after the commands of the page."""
    fixture = Path(__file__).parents[1] / "importers" / "fixtures" / "pytest-recording" / "cassettes"
    page = (HOWTO / "from-vcrpy.md").read_text(encoding="utf-8")
    [(_, program), (_, commands)] = BLOCK.findall(page)
    (suite.path / "test_agent.py").write_text(program, encoding="utf-8")
    tapes = suite.path / "cassettes" / "test_agent"
    tapes.mkdir(parents=True)
    shutil.copy(fixture / "test_agent" / "test_it_answers.yaml", tapes)
    for part in re.split(r"^\$ ", commands, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        if command.startswith("pytest "):
            suite.run(*shlex.split(command)[1:]).stdout.fnmatch_lines(output.splitlines())
        else:
            words = command.replace("reenact ", f"{sys.executable} -m reenact ", 1)
            done = subprocess.run(
                words, shell=True, cwd=suite.path, capture_output=True, text=True, check=True
            )
            assert done.stdout == output


@pytest.mark.parametrize("mode", MODES)
def test_the_page_names_every_mode(mode: str) -> None:
    """In the table."""
    assert f"\n| `{mode}`" in PAGE


@pytest.mark.parametrize("option", Options.__dataclass_fields__)
def test_the_page_names_every_option(option: str) -> None:
    """In the table."""
    assert f"\n| `{option}=" in PAGE
