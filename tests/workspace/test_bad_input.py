"""Folders and captures as nobody wishes for: said plainly, and the run goes on."""

import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

import reenact
from reenact.cli import main
from reenact.formats.workspace import TreeEntry, join_entries, write_entry
from reenact.store.blobs import BlobStore
from reenact.workspace.ignore import make_rules
from reenact.workspace.recording import WorkspaceOrder
from reenact.workspace.restore import restore_tree
from reenact.workspace.scan import Scanner
from tests.cli.commands import PYTHON, run
from tests.hard import HARD, say
from tests.workspace.test_trees import Kept

NOBODY = 65534


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def kept(tmp_path):
    return Kept(tmp_path / "blobs")


@pytest.fixture
def not_root():
    """For the test this process has no more rights than others."""
    if os.geteuid() == 0:
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
        yield
        os.seteuid(0)
        os.setegid(0)
    else:
        yield


def left_out(scanner):
    return {found.path: found.why for found in scanner.left_out()}


def test_what_may_not_be_read_is_left_out(not_root):
    """Files, folders, and folders that may be listed but not entered; the rest is recorded."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        root = Path(place, "root")
        for name in ("closed", "listed", "open"):
            (root / name).mkdir(parents=True)
            (root / name / "f").write_text(name)
        (root / "secret.txt").write_text("x")
        (root / "secret.txt").chmod(0)
        (root / "closed").chmod(0)
        (root / "listed").chmod(0o444)
        kept = Kept(Path(place, "blobs"))
        scanner = Scanner(root, kept.blobs.put)
        try:
            tree = scanner.take()
            found = left_out(scanner)
            assert found["secret.txt"] == found["closed"] == "unreadable"
            assert {path for path, why in found.items() if why != "unreadable"} == set()
            assert "open/f" in kept.paths(tree)
            assert scanner.take() == tree
            (root / "secret.txt").chmod(0o644)
            (root / "closed").chmod(0o755)
            assert {"secret.txt", "closed/f"} <= set(kept.paths(scanner.take()))
        finally:
            for name in ("closed", "listed"):
                (root / name).chmod(0o755)


def test_pipes_sockets_and_devices_are_not_opened(root, kept):
    """None of them is waited for, whatever it is called."""
    os.mkfifo(root / "pipe")
    os.mkfifo(root / ".gitignore")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(root / "socket"))
        expected = {".gitignore": "special", "pipe": "special", "socket": "special"}
        if os.geteuid() == 0:
            try:
                os.mknod(root / "device", 0o600 | 0o020000, os.makedev(1, 5))
                expected["device"] = "special"
            except PermissionError:
                pass
        scanner = Scanner(root, kept.blobs.put)
        scanner.take()
        assert left_out(scanner) == expected


def test_links_that_lead_in_circles_are_links(root, kept, tmp_path):
    """Nobody follows them, neither to look nor to restore."""
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / "d").mkdir()
    (root / "d" / "up").symlink_to("..")
    (root / "self").symlink_to("self")
    tree = Scanner(root, kept.blobs.put).take()
    assert sorted(kept.paths(tree)) == ["a", "b", "d", "d/up", "self"]
    kept.restore(tree, tmp_path / "again")
    assert os.readlink(tmp_path / "again" / "d" / "up") == ".."


def test_paths_longer_than_the_system_takes_come_back(kept, tmp_path):
    """Each name is looked at, and made, from its folder."""
    root = tmp_path / "long"
    root.mkdir()
    fd = os.open(root, os.O_RDONLY)
    for _ in range(40):
        os.mkdir("n" * 250, dir_fd=fd)
        below = os.open("n" * 250, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("f" * 255, os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd))
    os.close(fd)
    try:
        tree = Scanner(root, kept.blobs.put).take()
        kept.restore(tree, tmp_path / "again")
        assert Scanner(tmp_path / "again", kept.blobs.put).take() == tree
    finally:
        subprocess.run(["rm", "-rf", root, tmp_path / "again"], check=True)


def test_large_files_with_holes_are_not_read(root, kept):
    """What is over the limit is listed with its size."""
    with (root / "image").open("wb") as file:
        file.truncate(1 << 40)
    began = time.monotonic()
    scanner = Scanner(root, kept.blobs.put)
    tree = scanner.take()
    assert time.monotonic() - began < 5
    assert left_out(scanner) == {"image": "too-large"}
    assert kept.read(tree)[0].size_bytes == 1 << 40


def test_a_file_that_is_written_all_the_time_is_seen_as_it_was_or_not_at_all(root, kept):
    """A real writer: no tree has half of it, and the last one has all."""
    file = root / "log"
    file.write_bytes(b"")
    is_over = threading.Event()

    def write():
        number = 0
        while not is_over.is_set():
            number += 1
            temp = b"%08d" % number
            file.write_bytes(temp * 20_000)

    writing = threading.Thread(target=write)
    writing.start()
    scanner = Scanner(root, kept.blobs.put)
    try:
        for _ in range(30):
            for entry in kept.read(scanner.take()):
                if entry.kind == "file":
                    content = kept.content(entry)
                    assert content == content[:8] * (len(content) // 8)
                else:
                    assert entry.why == "changing"
    finally:
        is_over.set()
        writing.join()
    (entry,) = kept.read(scanner.take())
    assert kept.content(entry) == file.read_bytes()


FULL = """
import resource
from pathlib import Path
import reenact

def limit(size_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))

@reenact.tool
def write(name, size_bytes):
    limit(resource.RLIM_INFINITY)
    Path("work", name).write_text("x" * size_bytes)
    limit(100_000)
    return name

@reenact.tool
def remove(name):
    Path("work", name).unlink()

limit(100_000)
with reenact.capture("run", workspace="work") as run:
    assert write("small", 10) == "small"
    assert write("large", 500_000) == "large"
    assert write("other", 10) == "other"
    remove("large")
limit(resource.RLIM_INFINITY)
print(run.manifest.status, *run.warnings, sep="\\n")
"""


def test_a_disk_that_takes_no_more_does_not_end_the_run(tmp_path):
    """What could not be written is said once, and files are recorded again when there is room."""
    (tmp_path / "work").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", FULL], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    warnings = done.stdout.splitlines()[1:]
    assert len(warnings) == 1, done.stdout
    assert "File too large" in warnings[0]
    assert reenact.verify(tmp_path / "run").findings == []
    assert [file.path for file in reenact.files(tmp_path / "run").files] == ["other", "small"]


def test_a_disk_that_takes_nothing_at_the_start_does_not_end_the_run(tmp_path):
    """It is recorded without its files, and says so."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "large").write_text("x" * 500_000)
    done = subprocess.run(
        [sys.executable, "-c", FULL], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "the files are not recorded: " in done.stdout
    assert reenact.verify(tmp_path / "run").findings == []


def test_a_checkout_that_does_not_fit_leaves_nothing(tmp_path, monkeypatch, capsys):
    """One line, exit status 2, and the folder is as it was."""
    resource = pytest.importorskip("resource")
    monkeypatch.chdir(tmp_path)
    Path("work").mkdir()
    Path("work/large").write_text("x" * 500_000)
    with reenact.capture("run", workspace="work"):
        pass
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        assert main(["checkout", "run", "-o", "out"]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    said = capsys.readouterr().err
    assert said.startswith(f"reenact: {tmp_path / 'out'}: ")
    assert len(said.splitlines()) == 1
    assert sorted(os.listdir()) == ["run", "work"]


def test_names_that_would_forge_lines_are_shown_escaped(tmp_path, monkeypatch, capsys):
    """A name is one line, and moves no cursor."""
    monkeypatch.chdir(tmp_path)
    Path("work").mkdir()
    names = ["two\nlines", "\x1b[2Jgone", "tab\tbed", "right\u202eleft", os.fsdecode(b"\xff\xfe")]
    for name in names:
        Path("work", name).write_text("x")
    with reenact.capture("run", workspace="work"):
        pass
    assert main(["files", "run"]) == 0
    said = capsys.readouterr().out
    assert len(said.splitlines()) == len(names)
    assert not any(mark in said for mark in ("\x1b", "\u202e"))
    assert main(["checkout", "run", "-o", "out"]) == 0
    assert sorted(os.listdir("out")) == sorted(names)


HOSTILE_LINKS = {
    "absolute": b"/etc",
    "upwards": b"../../..",
    "through itself": b"a/../../..",
    "inside, and out": b"../x",
    "through another link": b"d/e/../..",
}


@pytest.mark.parametrize("target", HOSTILE_LINKS.values(), ids=HOSTILE_LINKS)
def test_a_made_up_capture_writes_nothing_through_a_link(target, tmp_path, kept):
    """A link and a file below it cannot both be; and no link of another is followed for a replay."""
    blob = kept.blobs.put(b"owned")
    link = TreeEntry(b"a", "link", target=target)
    file = TreeEntry(b"f", "file", mode=0o644, digest=blob, size_bytes=5)
    tree = kept.blobs.put(join_entries([write_entry(link), write_entry(file)]))
    done = restore_tree(kept.read, kept.content, tree, tmp_path / "out", refuse_links_out=True)
    assert done.refused == ["a"]
    assert sorted(os.listdir(tmp_path / "out")) == ["f"]


HOSTILE = {
    "upwards": b'{"blob":"%b","bytes":5,"kind":"file","mode":"644","name":".."}',
    "absolute": b'{"blob":"%b","bytes":5,"kind":"file","mode":"644","name":"/etc/owned"}',
    "a path": b'{"blob":"%b","bytes":5,"kind":"file","mode":"644","name":"../owned"}',
    "NUL": b'{"blob":"%b","bytes":5,"kind":"file","mode":"644","name":"a\\u0000b"}',
    "UTF-8 in hex": b'{"blob":"%b","bytes":5,"kind":"file","mode":"644","nameHex":"2e2e"}',
    "a path in hex": b'{"blob":"%b","bytes":5,"kind":"file","mode":"644","nameHex":"2f80"}',
    "very long": b'{"blob":"%b","bytes":5,"kind":"file","mode":"644","name":"' + b"x" * 300 + b'"}',
    "a mode of its own": b'{"blob":"%b","bytes":5,"kind":"file","mode":"4755","name":"a"}',
    "no digest": b'{"blob":"../%b","bytes":5,"kind":"file","mode":"644","name":"a"}',
    "an inside that is out": b'{"inside":true,"kind":"link","name":"a","target":"../owned"}',
}


@reenact.tool
def nothing():
    """A call to record."""


@pytest.mark.parametrize("entry", HOSTILE.values(), ids=HOSTILE)
def test_a_made_up_capture_is_refused_by_whatever_restores_it(entry, tmp_path, monkeypatch, capsys):
    """Its digests are right, its names are not: one line, exit status 2, and nothing is written."""

    def take(scanner, *, in_git=None):
        assert in_git is not None
        blob = scanner._put(b"owned").encode()
        return scanner._put(join_entries([entry % blob if b"%b" in entry else entry]))

    work = tmp_path / "here" / "work"
    work.mkdir(parents=True)
    with monkeypatch.context() as patched:
        patched.setattr(Scanner, "take", lambda self, in_git=None: take(self, in_git=in_git or {}))
        with reenact.capture(tmp_path / "here/run", workspace=work):
            nothing()
    monkeypatch.chdir(tmp_path / "here")
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    before = sorted(tmp_path.rglob("*"))
    for words in (
        ["checkout", "run", "-o", "out"],
        ["checkout", "run", "--at", "1", "-o", "out"],
        ["replay", "run", "--workspace", "--", "true"],
        ["fork", "run", "--workspace", "--at", "2", "-o", "out", "--", "true"],
        ["update", "run", "--", "true"],
    ):
        assert main(words) == 2, words
        said = capsys.readouterr()
        assert (said.out, len(said.err.splitlines())) == ("", 1), said.err
        assert "Traceback" not in said.err
        assert sorted(tmp_path.rglob("*")) == before, words
    if "x" * 300 not in entry.decode():
        assert main(["verify", "run"]) != 0
    for words in (["pack", "run", "-o", "all.pack"], ["pull", "all.pack", "copy"]):
        assert main(words) in (0, 2), words  # trees are bytes to the one, and verified by the other
        assert sorted(os.listdir(tmp_path)) == ["here", "temp"]
        assert {*os.listdir(tmp_path / "here")} <= {"all.pack", "copy", "run", "work"}


def test_names_that_are_no_utf8_are_recorded_by_the_command_line(tmp_path):
    """Of files, folders and links, and in ignore files above; each process begins with what was learned."""
    work = tmp_path / "repository" / "work"
    (work / os.fsdecode(b"folder\xff")).mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    (tmp_path / "repository" / ".gitignore").write_bytes(b"ignored\xe9\n")
    for name in (b"file\xff", b"folder\xff/below", b"ignored\xe9", b"ignored\xe8"):
        (work / os.fsdecode(name)).write_text("x")
    os.symlink(b"\xfe", os.fsencode(work) + b"/link")
    words = ["sh", "-c", f"{PYTHON} {tmp_path}/agent.py; {PYTHON} {tmp_path}/agent.py"]
    (tmp_path / "agent.py").write_text(
        "import os, reenact\n@reenact.tool\ndef rename(): os.rename(b'link', b'link\\xfd')\n"
        "os.path.lexists('link') and rename()\n"
    )
    done = run("record", "-o", tmp_path / "a", "--workspace", "--", *words, cwd=work)
    assert done.returncode == 0, done.stderr
    assert {file.path for file in reenact.files(tmp_path / "a").files if file.kind != "left-out"} == {
        r"file\xff",
        r"folder\xff/",
        r"folder\xff/below",
        r"ignored\xe8",
        r"link\xfd",
    }
    done = run("replay", tmp_path / "a", "--workspace", "--", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    inside = work / os.fsdecode(b"folder\xff")
    done = run("record", "-o", tmp_path / "b", "--workspace", work, "--", *words, cwd=inside)
    message = r"reenact: folder\xff: is not UTF-8; let the run work in another folder"
    assert (done.returncode, done.stderr) == (3, f"{message}\n")


def git(folder, *words):
    identity = ["-c", "user.email=a@b", "-c", "user.name=n", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_repositories_within_and_worktrees_are_folders(tmp_path, kept):
    """What git keeps of them is left out; what they ignore is what git says there."""
    main_tree = tmp_path / "main"
    main_tree.mkdir()
    (main_tree / "a.txt").write_text("a")
    git(main_tree, "init", "-q")
    git(main_tree, "add", "-A")
    git(main_tree, "commit", "-qm", "x")
    (main_tree / ".git" / "info" / "exclude").write_text("*.tmp\n")
    git(main_tree, "worktree", "add", "-q", str(tmp_path / "tree"))
    git(main_tree, "clone", "-q", str(main_tree), str(tmp_path / "tree" / "nested"))
    git(tmp_path / "tree", "submodule", "add", "-q", str(main_tree), "module")
    for folder in ("", "nested", "module"):
        (tmp_path / "tree" / folder / "x.tmp").write_text("x")
    scanner = WorkspaceOrder.for_folder(tmp_path / "tree").scanner(kept.blobs.put)
    paths = set(kept.paths(scanner.take()))
    assert {"a.txt", "nested/a.txt", "module/a.txt", ".gitmodules"} <= paths
    found = left_out(scanner)
    assert {path for path, why in found.items() if why == "git"} == {".git", "nested/.git", "module/.git"}
    assert found["x.tmp"] == "ignored"


@pytest.mark.timeout(3000)
@pytest.mark.skipif(not HARD, reason="a long one; REENACT_HARD=1")
def test_a_hundred_thousand_files(tmp_path):
    """Recorded, listed and restored, in a time that is no surprise."""
    root = tmp_path / "root"
    for folder in range(1000):
        place = root / f"{folder // 100}" / f"{folder}"
        place.mkdir(parents=True)
        for number in range(100):
            (place / f"{number}").write_bytes(b"%d %d" % (folder, number))
    blobs = BlobStore(tmp_path / "blobs")
    kept = Kept(tmp_path / "blobs")
    scanner = Scanner(root, blobs.put)
    tree = scanner.take()
    time.sleep(0.1)
    scanner.take()
    began = time.monotonic()
    assert scanner.take() == tree
    assert time.monotonic() - began < 5
    assert kept.restore(tree, tmp_path / "again").files == 100_000
    assert Scanner(tmp_path / "again", kept.blobs.put).take() == tree
    (root / "0/0/0").write_bytes(b"changed")
    before = peak_mib()
    for number in range(20):  # what was seen before is not kept twice
        (root / "0/0/new").write_bytes(b"%d" % number)
        scanner.take()
    assert peak_mib() - before < 16


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.timeout(3000)
@pytest.mark.skipif(not HARD, reason="a long one; REENACT_HARD=1")
def test_a_run_among_a_hundred_thousand_files(tmp_path, monkeypatch):
    """Recorded, listed, verified, checked out and replayed from the command line, in bounded memory."""
    work = tmp_path / "work"
    for folder in range(1000):
        place = work / f"{folder // 100}" / f"{folder}"
        place.mkdir(parents=True)
        for number in range(100):
            (place / f"{number}").write_bytes(b"%d %d" % (folder, number))
    agent = tmp_path / "agent.py"
    agent.write_text(
        "import reenact\nfrom pathlib import Path\n@reenact.tool\ndef note(n):\n"
        "    Path(f'new-{n}').write_text(str(n))\nfor n in range(3): note(n)\n"
    )
    monkeypatch.chdir(work)
    took = {}
    for words in (
        ["record", "-o", "../run", "--workspace", "--", sys.executable, str(agent)],
        ["files", "../run", "--diff", "1.."],
        ["verify", "../run"],
        ["checkout", "../run", "--at", "1", "-o", "../out"],
        ["replay", "../run", "--workspace", "--", sys.executable, str(agent)],
        ["fork", "../run", "--workspace", "--at", "2", "-o", "../f", "--", sys.executable, str(agent)],
    ):
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "reenact", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        took[words[0]] = round(time.monotonic() - began, 1)
    say(f"100,000 files: {took}, {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024} MiB")
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024 < 700


HOSTILE_LINES = {
    "*a" * 100 + "b": "a" * 255,
    "**/a/" * 60 + "b": "a/" * 2000 + "c",
    "**/*a*a*a/" * 30 + "b": ("a" * 30 + "/") * 120 + "c",
}


@pytest.mark.parametrize("line", HOSTILE_LINES)
def test_a_hostile_ignore_file_takes_no_time(line: str) -> None:
    """However many stars a line has, and however nearly a path matches it."""
    path = HOSTILE_LINES[line]
    began = time.process_time()
    assert not make_rules([("", line)]).ignores(path, is_folder=False)
    assert time.process_time() - began < 1
    assert make_rules([("", line)]).ignores(path[:-1] + "b", is_folder=False)
