"""The how-to about validation does what it says."""

import os
import re
import shlex
import subprocess
import sys

from tests.formats import ROOT
from tests.test_project import commands_of

PAGE = (ROOT / "docs" / "howto" / "validate-actions.md").read_text(encoding="utf-8")


def test_every_command_prints_what_the_page_shows(tmp_path):
    """With its exit status where that is shown."""
    script = tmp_path / "reenact"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m reenact "$@"\n')
    script.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONUTF8": "1"}
    status, ran = 0, 0
    for command, output in commands_of(PAGE):
        if command == "echo $?":
            assert output == f"{status}\n"
            continue
        done = subprocess.run(
            command,
            shell=True,
            cwd=ROOT,
            env=environment,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.stdout == f"{output.rstrip()}\n", command
        status, ran = done.returncode, ran + 1
    assert ran == 5


def test_every_piece_of_python_runs(monkeypatch, capsys):
    """Its own assertions are the test."""
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "validate-actions.md", "exec"), {"__name__": "howto"})
    assert "a person looks at refunds above 50?" in capsys.readouterr().out
