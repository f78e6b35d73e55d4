"""What an agent's own Python code writes, replayed in another folder: the same up to where that is."""

import pytest

from reenact.injected.output import Printed, describe_differing_line
from tests.cli.commands import PYTHON, run

AGENT = """
import json
import os
import sys
from pathlib import Path

import reenact


@reenact.tool
def look() -> int:
    return 1


whole, appended = sys.argv[1:]
Path("info.json").write_text(json.dumps({"root": os.getcwd(), "text": whole}))
with open("log.txt", "a") as log:
    log.write(f"in {os.getcwd()}\\n")
    log.write(f"{appended}\\n")
look()
print(f"working in {os.getcwd()}/sub")
os.chdir("sub")
Path("../up.txt").write_text("up")  # below the files, and not below where it works
look()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Recorded where no temporary folder is, as people do."""
    folder = tmp_path_factory.mktemp("writes")
    (folder / "agent.py").write_text(AGENT)
    (folder / "home" / "work" / "sub").mkdir(parents=True)
    (folder / "home" / "work" / "log.txt").write_text("begun\n")
    (folder / "tmp").mkdir()
    words = ["--workspace", "--", PYTHON, folder / "agent.py", "one", "two"]
    environment = {"TMPDIR": str(folder / "tmp"), "HOME": str(folder / "home")}
    done = run("record", "-o", folder / "a", *words, cwd=folder / "home" / "work", **environment)
    assert done.returncode == 0, done.stderr
    return folder


def replay(folder, *arguments):
    words = ["--workspace", "--", PYTHON, folder / "agent.py", *arguments]
    return run("replay", folder / "a", *words, cwd=folder, HOME=str(folder / "tmp"))


def test_files_that_name_their_folder_are_the_same_elsewhere(folder):
    """Whole or written on, below the working folder or beside it."""
    done = replay(folder, "one", "two")
    assert done.returncode == 0, done.stderr
    assert "reproduced" in done.stderr
    assert "note:" not in done.stderr


def test_what_is_printed_of_the_folder_is_the_same_elsewhere():
    """As far as whole lines are, whatever the folder is called."""
    told = []
    for folder in ("/home/me/work", "/tmp/x"):
        printed = Printed(b"salt", [folder])
        printed.add(f"in {folder}\n{folder}/x: {folder}.\nelse".encode())
        told.append(printed.end())
    assert told[0] == told[1]
    printed = Printed(b"salt", ["/tmp/x"])
    printed.add(b"in /tmp/x-1\n")
    assert "line 1" in (describe_differing_line(told[0], printed) or "")


def test_another_text_is_a_divergence_with_its_diff(folder):
    """Where it is written, and nothing is said of files that are no part of it."""
    done = replay(folder, "other", "two")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert any(line.strip().startswith("-{") and '"text": "one"' in line for line in lines), done.stderr
    assert any(line.strip().startswith("+{") and '"text": "other"' in line for line in lines), done.stderr
    assert "move it away" not in done.stderr


def test_other_text_that_is_written_on_is_found_by_the_next_look(folder):
    """What was written before is not known by itself, the file is."""
    done = replay(folder, "one", "other")
    assert done.returncode == 1
    assert "the files are not as they were before this call: changed log.txt" in done.stderr
    assert {"-two", "+other"} <= {line.strip() for line in done.stderr.splitlines()}, done.stderr
