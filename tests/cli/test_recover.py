"""``reenact recover``: one line for each directory, whatever it is."""

import json

import pytest

import reenact
from reenact.cli import main
from reenact.store.reader import CaptureReader
from tests.cli import commands


@reenact.tool
def look_up(item):
    return item.upper()


@pytest.fixture
def interrupted(tmp_path):
    """A capture whose process went away in the middle of a line."""
    commands.interrupted(tmp_path / "a", lambda: look_up("lamp"), torn=b'{"captureId":"cap')
    return tmp_path / "a"


@pytest.fixture
def complete(tmp_path):
    path = tmp_path / "complete"
    with reenact.capture(path):
        look_up("lamp")
    return path


def test_an_interrupted_capture_is_completed(interrupted, capsys):
    """What was kept and what was cut is said."""
    assert main(["recover", str(interrupted)]) == 0
    assert capsys.readouterr().out == f"{interrupted}: recovered, 3 events kept, 17 bytes cut\n"
    assert CaptureReader(interrupted).manifest.error == "interrupted"


def test_recovering_twice_is_good(interrupted, capsys):
    """The second time there is nothing to do."""
    main(["recover", str(interrupted)])
    capsys.readouterr()
    assert main(["recover", str(interrupted)]) == 0
    assert capsys.readouterr().out == f"{interrupted}: recovered, nothing to do\n"


def test_a_complete_capture_is_left_alone(complete, capsys):
    """That is no failure."""
    before = (complete / "manifest.json").read_bytes()
    assert main(["recover", str(complete)]) == 0
    assert capsys.readouterr().out == f"{complete}: complete, nothing to do\n"
    assert (complete / "manifest.json").read_bytes() == before


def test_a_run_that_goes_on_is_left_alone(tmp_path, capsys):
    """Exit 1: not now."""
    with reenact.capture(tmp_path / "open"):
        assert main(["recover", str(tmp_path / "open")]) == 1
    assert capsys.readouterr().out == (
        f"{tmp_path}/open: is still being recorded; recover it when that has ended\n"
    )


def test_damage_is_not_repaired(interrupted, capsys):
    """Exit 2, the line, and the directory as it was."""
    log = interrupted / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([lines[0], b"{}\n", *lines[2:]]))
    assert main(["recover", str(interrupted)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"reenact: {log}:2: ")
    assert captured.err.count("\n") == 1
    assert not (interrupted / "manifest.json").exists()


def test_one_bad_directory_does_not_keep_the_others(interrupted, complete, tmp_path, capsys):
    """The worst status counts."""
    assert main(["recover", str(tmp_path / "nothing"), str(complete), str(interrupted)]) == 2
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 2
    assert captured.err == (
        f"reenact: {tmp_path}/nothing: No such file or directory; name a capture directory\n"
    )


def test_json_has_an_object_for_each(interrupted, complete, tmp_path, capsys):
    """Bad ones included."""
    assert main(["recover", "--json", str(interrupted), str(complete), str(tmp_path / "nothing")]) == 2
    assert json.loads(capsys.readouterr().out) == [
        {"path": str(interrupted), "state": "recovered", "events": 3, "removedBytes": 17},
        {"path": str(complete), "state": "complete"},
        {
            "path": f"{tmp_path}/nothing",
            "error": f"{tmp_path}/nothing: No such file or directory; name a capture directory",
        },
    ]
