"""For a path that cannot be used the public functions raise an error of the library, in one line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import reenact

TAKE_A_PATH: dict[str, Callable[[str], object]] = {
    "checkout": lambda path: reenact.checkout(path, "out"),
    "convert": lambda path: reenact.convert(path, "trace"),
    "diff": lambda path: reenact.diff(path, path),
    "disclose": lambda path: reenact.disclose(path, 1, ["tool"], seal=path),
    "doctor_command": lambda path: reenact.doctor_command(["true"], path),
    "export_runs": lambda path: reenact.export_runs(path, to="har", out="out"),
    "files": reenact.files,
    "hash_files": lambda path: list(reenact.hash_files(path)),
    "show_runs": reenact.show_runs,
    "fork": lambda path: reenact.fork(path, at=2, output="out"),
    "fork_command": lambda path: reenact.fork_command(path, ["true"], at=2, output="out"),
    "fork_samples": lambda path: reenact.fork_samples(path, ["true"], at=2, samples=1, output="out"),
    "fork_tree": reenact.fork_tree,
    "import_runs": lambda path: reenact.import_runs(path, "out"),
    "index": lambda path: reenact.index(path, out="out"),
    "list_runs": reenact.list_runs,
    "open_artifact": reenact.open_artifact,
    "open_query": lambda path: reenact.open_query("select 1 from runs", [path]).close(),
    "pack": lambda path: reenact.pack(path, out="out"),
    "project_prices": reenact.project_prices,
    "prove": lambda path: reenact.prove(path, 1, seal=path),
    "prune": lambda path: reenact.prune(path, keep=1),
    "publish": lambda path: reenact.publish(path, "out"),
    "pull": lambda path: reenact.pull(path, "out"),
    "push": lambda path: reenact.push(path, to="out"),
    "query": lambda path: reenact.query("select 1 from runs", path),
    "recover": reenact.recover,
    "replay": reenact.replay,
    "replay_command": lambda path: reenact.replay_command(path, ["true"]),
    "run": lambda path: reenact.run(path, mode="never"),
    "seal": lambda path: reenact.seal(path, key=path),
    "shadow": lambda path: reenact.shadow(path, ["true"]),
    "shadow_steps": lambda path: reenact.shadow_steps(path, change={"model": "other"}),
    "stats": reenact.stats,
    "test": reenact.test,
    "transcript": reenact.transcript,
    "update_command": lambda path: reenact.update_command(path, ["true"]),
    "validate": reenact.validate,
    "verify": reenact.verify,
    "verify_runs": reenact.verify_runs,
    "write_first_test": reenact.write_first_test,
    "write_page": lambda path: reenact.write_page(path, out="out.html"),
}
FILES = ("notes", "bytes")
PLACES = (*FILES, "nowhere", "nowhere/below", "notes/below", "loop", "a\0b", "x" * 300)
REPORTED = {
    "doctor_command": ("nowhere", "nowhere/below"),
    "fork_tree": FILES,
    "hash_files": PLACES,
    "import_runs": FILES,
    "index": FILES,
    "open_query": FILES,
    "project_prices": PLACES,
    "query": FILES,
    "show_runs": FILES,
    "stats": FILES,
    "test": FILES,
    "validate": PLACES,
    "verify_runs": FILES,
}
"""Where it takes several files, a report tells which cannot be read; ``doctor`` makes its folder."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text("hello\n")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "bytes").write_bytes(bytes(range(256)))
    return tmp_path


@pytest.mark.parametrize("path", PLACES)
@pytest.mark.parametrize("name", TAKE_A_PATH)
@pytest.mark.usefixtures("place")
def test_a_path_that_cannot_be_used_is_told_in_one_line(name: str, path: str) -> None:
    """Missing, below a file, no run, a link to itself, or no path at all."""
    try:
        TAKE_A_PATH[name](path)
    except reenact.ReenactError as error:
        message = str(error)
    else:
        assert path in REPORTED.get(name, ())
        return
    assert message
    assert "\n" not in message
    assert "\0" in path or path.partition("/")[0] in message


WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override"]
PROBE = """
import json, sys, reenact
from tests.test_public_errors import TAKE_A_PATH
told = {}
for name, function in TAKE_A_PATH.items():
    for path in ("closed", "locked.json"):
        try:
            function(path)
        except reenact.ReenactError as error:
            told[f"{name} {path}"] = str(error)
print(json.dumps(told))
"""


@pytest.mark.skipif(not shutil.which("setpriv"), reason="takes setpriv, for a process without root's rights")
def test_what_may_not_be_read_is_told_in_one_line(place: Path) -> None:
    """Of a folder and of a file."""
    (place / "closed").mkdir(mode=0)
    (place / "locked.json").touch(mode=0)
    done = subprocess.run(
        [*WITHOUT_RIGHTS, sys.executable, "-c", PROBE],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told) > len(TAKE_A_PATH)
    assert not [message for message in told.values() if "\n" in message]
    assert sum("Permission denied" in message for message in told.values()) > len(TAKE_A_PATH)


def test_every_function_that_takes_a_path_is_tried() -> None:
    """A new one is added here, or named as one that reads none."""
    functions = {
        name for name in reenact.__all__ if name[0].islower() and not isinstance(getattr(reenact, name), type)
    }
    read_none = {"capture", "demo", "find_capsule", "keygen", "list_capsules", "list_schemas"}
    read_none |= {"record_command", "schema", "tool"}
    take_an_artifact = {"find_steps", "play"}
    go_on = {"view", "watch_tests"}
    assert functions - read_none - take_an_artifact - go_on == set(TAKE_A_PATH)
