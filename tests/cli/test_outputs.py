"""Every verb that writes a file: into devices, pipes and through links, which stay what they are."""

import os
import stat
import subprocess
from threading import Thread

import pytest

import reenact
from reenact.cli import main
from tests.cli.commands import ENVIRONMENT, PYTHON, command, run
from tests.store.test_outfile import FULL, NULL, device

SEALED = ["--seal", "run.seal.json"]

WRITING = {
    "convert": ["convert", "run", "--to", "replay-log", "-o"],
    "atif": ["export", "run", "--to", "atif", "-o"],
    "har": ["export", "run", "--to", "har", "-o"],
    "parquet": ["query", "select * from events", "run", "--parquet"],
    "disclose": ["disclose", "run", *SEALED, "2", "--field", "$.data.args", "-o"],
    "junit": ["test", "test.yaml", "--junit"],
    "publish": ["publish", "run", "-o"],
    "prove": ["prove", "run", *SEALED, "1", "-o"],
    "receipt": ["replay", "run", "--receipt"],
    "test": ["test", "test.yaml", "--json"],
    "init": ["test", "--init", "run"],
    "view": ["view", "run", "--full", "--html"],
}
WITH_NEIGHBOUR = {
    "keygen": ["keygen", "-o"],
    "seal": ["seal", "run", "--key", "signer", "-o"],
}
AGENT = ["--", PYTHON, "agent.py"]
FOLDERS = {
    "capture": ["convert", "log.jsonl", "--to", "capture", "-o"],
    "checkout": ["checkout", "with-files", "-o"],
    "fork": ["fork", "run", "--at", "2", "--set", '$="other"', *AGENT, "-o"],
    "samples": ["fork", "run", "--at", "2", "--set", '$="other"', "-n", "1", *AGENT, "-o"],
    "index": ["index", "run", "-o"],
    "pull": ["pull", "runs.pack"],
    "record": ["record", *AGENT, "-o"],
    "shadow": ["shadow", "run", *AGENT, "-o"],
}


@reenact.tool
def search(query: str) -> str:
    return f"all about {query}"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a recorded run, its seal and a test of it."""
    folder = tmp_path_factory.mktemp("outputs")
    (folder / "agent.py").write_text(
        "import reenact\n@reenact.tool\ndef search(query): return f'all about {query}'\nsearch('bees')\n"
    )
    for words in (
        ["record", "-o", "run", "--", PYTHON, "agent.py"],
        ["keygen", "-o", "signer"],
        ["seal", "run", "--key", "signer"],
        ["test", "--init", "run"],
        ["record", "--workspace", "-o", "with-files", "--", PYTHON, "agent.py"],
        ["convert", "run", "--to", "replay-log", "-o", "log.jsonl"],
        ["pack", "run", "-o", "runs.pack"],
    ):
        done = run(*words, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def place(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


def words_of(name, target):
    words = [*(WRITING | WITH_NEIGHBOUR | FOLDERS)[name], str(target)]
    if "--" in words:  # the command comes last
        place = words.index("--")
        words = [*words[:place], *words[place + 3 :], *words[place : place + 3]]
    return [*words, "--", PYTHON, "agent.py"] if name == "receipt" else words


@pytest.mark.parametrize("name", WRITING)
def test_a_device_stays_a_device(name, place, tmp_path):
    null = device(tmp_path / "null", NULL)
    assert main(words_of(name, null)) == 0
    assert stat.S_ISCHR(os.lstat(null).st_mode)
    assert [*tmp_path.iterdir()] == [null]


@pytest.mark.parametrize("name", WRITING)
def test_a_device_that_is_full_is_told(name, place, tmp_path, capsys):
    full = device(tmp_path / "full", FULL)
    assert main(words_of(name, full)) == 2
    told = capsys.readouterr().err
    assert f"{full}: cannot be written: No space left on device" in told
    assert "Traceback" not in told
    assert stat.S_ISCHR(os.lstat(full).st_mode)


@pytest.mark.parametrize("name", WRITING)
def test_a_pipe_and_a_link_carry_what_a_file_holds(name, place, tmp_path):
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    link.symlink_to("linked")
    found = []
    reader = Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    for target in (pipe, link, file):
        assert main(words_of(name, target)) == 0
    reader.join(10)
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)
    assert link.is_symlink()
    sizes = [len(found[0]), (tmp_path / "linked").stat().st_size, file.stat().st_size]
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) < 20  # ids and times have not always the same length


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_stdout_has_a_path_too(name, kind, place, tmp_path):
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            command(*words_of(name, "/dev/stdout")),
            cwd=place,
            env=ENVIRONMENT,
            stdout=out if kind == "file" else subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out").read_bytes() if kind == "file" else done.stdout
    assert b"{" in text or b"<" in text or b"assertions" in text
    assert os.path.islink("/dev/stdout")


@pytest.mark.parametrize("name", WITH_NEIGHBOUR)
def test_what_is_two_files_needs_a_file(name, place, tmp_path):
    null = device(tmp_path / "null", NULL)
    done = run(*words_of(name, null), "--force", cwd=place)
    assert done.returncode == 3
    assert "next to it; name a file" in done.stderr
    assert [*tmp_path.iterdir()] == [null]


@pytest.mark.parametrize("name", WITH_NEIGHBOUR)
def test_what_is_two_files_follows_links(name, place, tmp_path):
    (tmp_path / "link").symlink_to("linked")
    done = run(*words_of(name, tmp_path / "link"), "--force", cwd=place)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "linked").stat().st_size


def test_the_receipt_of_the_library_is_written_through(place, tmp_path):
    null = device(tmp_path / "null", NULL)
    with reenact.capture(tmp_path / "run"):
        search("bees")
    with reenact.replay(tmp_path / "run", receipt=null):
        search("bees")
    assert stat.S_ISCHR(os.lstat(null).st_mode)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_link_to_an_empty_folder_is_followed(name, place, tmp_path):
    """It stays a link, and the folder keeps its permissions."""
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("folder")
    assert main(words_of(name, tmp_path / "link")) == 0
    assert (tmp_path / "link").is_symlink()
    assert [*(tmp_path / "folder").iterdir()]
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700
    assert {*tmp_path.iterdir()} == {tmp_path / "link", tmp_path / "folder"}


@pytest.mark.parametrize("name", FOLDERS)
def test_what_is_no_folder_is_refused_at_once(name, place, tmp_path, capsys):
    """Before the command starts, which would write a file."""
    null, nowhere = device(tmp_path / "null", NULL), tmp_path / "nowhere"
    nowhere.symlink_to("not/there")
    for target in (null,) if name == "checkout" else (null, nowhere):  # it makes the folder of the link
        assert main(words_of(name, target)) in (2, 3)
        assert capsys.readouterr().err.startswith(f"reenact: {target}: ")
    assert stat.S_ISCHR(os.lstat(null).st_mode)
    assert {*tmp_path.iterdir()} == {null, nowhere}
