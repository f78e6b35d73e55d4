"""What people name as output: regular files are replaced whole, everything else is written through."""

import os
import stat
from pathlib import Path
from threading import Thread

import pytest

from reenact.errors import StoreError, UsageError
from reenact.store.outfile import is_written_through, open_output, write_output

NULL = os.makedev(1, 3)
FULL = os.makedev(1, 7)


def device(path, number):
    """A character device of our own; the machine's are never named in a test that may destroy them."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, number)
        path.open("wb").close()
    except PermissionError:
        pytest.skip("device nodes need root, and a file system that allows them")
    return path


def test_a_device_is_written_through(tmp_path):
    null = device(tmp_path / "null", NULL)
    write_output(null, b"gone")
    with open_output(null) as stream:  # and no --force is needed for it
        stream.write(b"gone")
    assert stat.S_ISCHR(os.lstat(null).st_mode)
    assert [*tmp_path.iterdir()] == [null]


def test_a_device_that_refuses_is_an_error_and_stays(tmp_path):
    full = device(tmp_path / "full", FULL)
    with pytest.raises(StoreError, match="No space left"):
        write_output(full, b"x")
    assert stat.S_ISCHR(os.lstat(full).st_mode)


def test_a_pipe_is_written_through(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_output(pipe, b"all of it")
    reader.join(10)
    assert found == [b"all of it"]
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to("there/report.json")
    write_output(link, b"first")  # where it leads there is nothing yet
    write_output(link, b"second")
    assert link.is_symlink()
    assert (tmp_path / "there/report.json").read_bytes() == b"second"
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["report.json"]


def test_a_link_that_leads_back_to_itself_is_refused_and_stays(tmp_path):
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "there").symlink_to("back")
    (tmp_path / "back").symlink_to("there")
    for name in ("self", "there"):
        with pytest.raises(StoreError, match=r"symbolic links; remove the link"):
            write_output(tmp_path / name, b"x")
    assert all(path.is_symlink() for path in tmp_path.iterdir())
    assert len([*tmp_path.iterdir()]) == 3


def test_a_link_to_a_device_leads_to_the_device(tmp_path):
    null = device(tmp_path / "null", NULL)
    link = tmp_path / "link"
    link.symlink_to(null)
    write_output(link, b"x")
    assert link.is_symlink()
    assert stat.S_ISCHR(os.lstat(null).st_mode)


def test_a_file_that_has_no_name_any_more_is_written_through(tmp_path):
    file = tmp_path / "file"
    with file.open("w+b") as stream:
        file.unlink()
        write_output(Path(f"/proc/self/fd/{stream.fileno()}"), b"kept")
        assert stream.read() == b"kept"
    assert [*tmp_path.iterdir()] == []


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o604)
    write_output(file, b"new")
    assert stat.S_IMODE(file.stat().st_mode) == 0o604
    assert file.read_bytes() == b"new"


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), open_output(file, replace=True) as stream:
        stream.write(b"half")
        raise ZeroDivisionError
    assert file.read_bytes() == b"before"
    assert [*tmp_path.iterdir()] == [file]


def test_nothing_is_replaced_unasked(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        with pytest.raises(UsageError, match="--force"), open_output(tmp_path / name):
            pass
    with pytest.raises(UsageError, match="name a file in it"), open_output(tmp_path, replace=True):
        pass


def test_only_what_is_there_is_written_through(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    assert not is_written_through(tmp_path / "file")
    assert not is_written_through(tmp_path / "link")
    assert not is_written_through(tmp_path / "missing")
