"""reenact.toml: found upwards, and added to without a change to what is in it."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from reenact.errors import FormatError, StoreError
from reenact.store.project import append_to_project, find_project_file, project_file_to_write, read_project


def test_the_nearest_one_upwards_is_found(tmp_path: Path) -> None:
    """Nearer ones hide those above."""
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "reenact.toml").touch()
    assert find_project_file(below) == (tmp_path / "reenact.toml").resolve()
    (tmp_path / "a" / "reenact.toml").touch()
    assert find_project_file(below) == (tmp_path / "a" / "reenact.toml").resolve()


@pytest.mark.parametrize("before", ["", "[test]", "# ours\n[test]\nx = 1\n"])
def test_tables_are_added_at_the_end(before: str, tmp_path: Path) -> None:
    """Comments and order stay."""
    file = tmp_path / "reenact.toml"
    if before:
        file.write_text(before)
    append_to_project(file, "[[volatile]]\npath = '$'\n")
    append_to_project(file, "[[volatile]]\npath = '$.a'\n")
    assert file.read_text().startswith(before)
    assert [rule["path"] for rule in read_project(file)["volatile"]] == ["$", "$.a"]


def test_what_would_break_the_file_is_refused(tmp_path: Path) -> None:
    """It stays as it was."""
    file = tmp_path / "reenact.toml"
    file.write_text("volatile = []\n")
    with pytest.raises(FormatError, match=r"reenact.toml: the tables cannot be added: .*; add them by hand"):
        append_to_project(file, "[[volatile]]\npath = '$'\n")
    assert tomllib.loads(file.read_text()) == {"volatile": []}


def test_tables_go_through_a_link(tmp_path):
    (tmp_path / "real.toml").write_text("[test]\n")
    (tmp_path / "reenact.toml").symlink_to("real.toml")
    append_to_project(tmp_path / "reenact.toml", "[more]\n")
    assert (tmp_path / "reenact.toml").is_symlink()
    assert (tmp_path / "real.toml").read_text() == "[test]\n\n[more]\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("given_away", ["file", "folder"])
def test_what_belongs_to_somebody_else_is_ignored(given_away, tmp_path, caplog) -> None:
    """With one warning; what is above it and ours is found."""
    theirs = tmp_path / "theirs"
    below = theirs / "below"
    below.mkdir(parents=True)
    (theirs / "reenact.toml").write_text("[test]\n")
    os.chown(theirs / "reenact.toml" if given_away == "file" else theirs, 65534, 65534)
    assert find_project_file(below) is None
    assert find_project_file(below) is None
    assert [record.getMessage().split(": ")[1][:40] for record in caplog.records] == [
        "belongs to somebody else and is ignored;"
    ]
    (tmp_path / "reenact.toml").write_text("[test]\n")
    assert find_project_file(below) == tmp_path / "reenact.toml"


def test_what_everybody_may_change_is_ignored(tmp_path, caplog) -> None:
    (tmp_path / "reenact.toml").write_text("[test]\n")
    (tmp_path / "reenact.toml").chmod(0o666)
    assert find_project_file(tmp_path) is None
    assert "may be changed by everybody and is ignored" in caplog.text
    (tmp_path / "reenact.toml").chmod(0o664)
    assert find_project_file(tmp_path) == tmp_path / "reenact.toml"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_the_user_may_name_the_file(tmp_path, monkeypatch) -> None:
    """Then it does not matter whose it is."""
    file = tmp_path / "reenact.toml"
    file.write_text("[test]\n")
    os.chown(file, 65534, 65534)
    monkeypatch.setenv("REENACT_PROJECT", str(file))
    assert find_project_file(tmp_path / "below") == file
    monkeypatch.delenv("REENACT_PROJECT")
    monkeypatch.setenv("SUDO_UID", "65534")
    assert find_project_file(tmp_path) == file


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("given_away", ["file", "folder", "link"])
def test_nothing_is_written_that_would_be_ignored(given_away, tmp_path) -> None:
    """A link of somebody else's may lead to any file of ours."""
    file = tmp_path / "reenact.toml"
    assert project_file_to_write(tmp_path) == file
    if given_away == "file":
        file.write_text("[test]\n")
    elif given_away == "link":
        file.symlink_to("elsewhere")
    os.chown(tmp_path if given_away == "folder" else file, 65534, 65534, follow_symlinks=False)
    with pytest.raises(StoreError, match=r"would belong to somebody else .* with REENACT_PROJECT"):
        project_file_to_write(tmp_path)


def test_a_pipe_is_no_project_file(tmp_path) -> None:
    """Whoever reads one waits for ever."""
    os.mkfifo(tmp_path / "reenact.toml")
    with pytest.raises(StoreError, match="is not a regular file; remove it"):
        project_file_to_write(tmp_path)
