"""Trees of files: looked at, kept, restored, compared."""

import itertools
import json
import os
import re
import shlex
import stat
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reenact
from reenact.errors import FormatError, StoreError
from reenact.formats.workspace import TreeEntry, join_entries, read_tree, write_entry
from reenact.redaction import Redactor
from reenact.store.blobs import BlobStore
from reenact.workspace.compare import compare_trees, describe_change, find_entry, walk
from reenact.workspace.recording import WorkspaceOrder
from reenact.workspace.restore import apply_changes, restore_tree
from reenact.workspace.scan import Index, Scanner
from tests.hard import rounds


class Kept:
    """Blobs, and what reads trees from them."""

    def __init__(self, folder: Path) -> None:
        self.blobs = BlobStore(folder)

    def read(self, digest: str) -> tuple[TreeEntry, ...]:
        return read_tree(self.blobs.get(digest), file=digest)

    def content(self, entry: TreeEntry) -> bytes:
        return self.blobs.get(entry.digest)

    def restore(self, digest: str, folder: Path):
        return restore_tree(self.read, self.content, digest, folder)

    def paths(self, digest: str) -> list[str]:
        return [os.fsdecode(path) for path, _ in walk(self.read, digest)]


@pytest.fixture
def kept(tmp_path):
    return Kept(tmp_path / "blobs")


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def state_of(root: Path) -> dict[bytes, tuple]:
    """All that a tree keeps of a folder, read without any of our code."""
    found = {}
    for place, folders, files in os.walk(os.fsencode(root)):
        for name in folders + files:
            path = os.path.join(place, name)
            facts = os.lstat(path)
            relative = os.path.relpath(path, os.fsencode(root))
            if stat.S_ISLNK(facts.st_mode):
                found[relative] = ("link", os.readlink(path))
            elif stat.S_ISDIR(facts.st_mode):
                found[relative] = ("folder", stat.S_IMODE(facts.st_mode))
            else:
                with open(path, "rb") as stream:
                    found[relative] = ("file", stat.S_IMODE(facts.st_mode), stream.read())
    return found


_NAMES = ["a", "b", "ü", "with space", "c.txt", "not \udcff utf-8"]
_paths = st.lists(st.sampled_from(_NAMES), min_size=1, max_size=3).map("/".join)
_operations = st.one_of(
    st.tuples(st.just("printf %s {1} > {0}"), _paths, st.sampled_from(["", "x", "long text"])),
    st.tuples(st.just("printf %s {1} >> {0}"), _paths, st.sampled_from(["x", "more"])),
    st.tuples(st.just("truncate -s {1} {0}"), _paths, st.sampled_from(["0", "3", "10", "200000"])),
    st.tuples(st.just("ln -f {0} {1}"), _paths, _paths),
    st.tuples(st.just("rmdir {0}"), _paths, st.just("")),
    st.tuples(st.just("mv {0} {1}"), _paths, _paths),
    st.tuples(st.just("chmod {1} {0}"), _paths, st.sampled_from(["644", "755", "700", "604"])),
    st.tuples(st.just("ln -s {1} {0}"), _paths, st.sampled_from(["a", "../b", "nowhere", "."])),
    st.tuples(st.just("rm -rf {0}"), _paths, st.just("")),
    st.tuples(st.just("mkdir -p {0}"), _paths, st.just("")),
    st.tuples(st.just("cp -r {0} {1}"), _paths, _paths),
    st.tuples(st.just("touch -d @1000000000 {0}"), _paths, st.just("")),
)


@settings(
    max_examples=rounds(12, 300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operations=st.lists(_operations, min_size=1, max_size=12))
def test_tree_after_every_shell_command_is_restored_byte_for_byte(tmp_path_factory, operations):
    """Whatever a real shell does to files, the tree at every step comes back as it was."""
    folder = tmp_path_factory.mktemp("shell")
    root, kept = folder / "root", Kept(folder / "blobs")
    root.mkdir()
    scanner = Scanner(root, kept.blobs.put)
    states = [(scanner.take(), state_of(root))]
    script = iter(operations)
    shell = subprocess.Popen(
        ["sh"], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with shell:
        for form, *words in script:
            command = form.format(*map(shlex.quote, words))
            shell.stdin.write(os.fsencode(f"{command}\necho done\n"))
            shell.stdin.flush()
            assert shell.stdout.readline() == b"done\n"
            states.append((scanner.take(), state_of(root)))
        shell.stdin.close()
    for number, (digest, expected) in enumerate(states):
        target = folder / f"step{number}"
        kept.restore(digest, target)
        assert state_of(target) == expected
    # What differs between two steps, applied to the one, gives the other.
    for (one, _), (other, expected) in itertools.pairwise(states):
        target = folder / f"moved-{one[-8:]}-{other[-8:]}-{time.monotonic_ns()}"
        kept.restore(one, target)
        apply_changes(target, compare_trees(kept.read, one, other), kept.content, refuse_links_out=False)
        assert state_of(target) == expected
    # A look that remembers nothing sees the same tree.
    assert Scanner(root, kept.blobs.put).take() == states[-1][0]


@reenact.tool
def shell_command(folder: str, number: int, words: bytes) -> int:
    """What a coding agent's tool does; *number* makes each call another one."""
    assert number >= 0
    return subprocess.run(["sh", "-c", words], cwd=folder, check=False, stderr=subprocess.DEVNULL).returncode


@pytest.mark.parametrize("base", [None, "git"])
@settings(
    max_examples=rounds(3, 60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operations=st.lists(_operations, min_size=1, max_size=10))
def test_every_step_of_a_recorded_run_is_checked_out_byte_for_byte(tmp_path_factory, base, operations):
    """Also where files that are as in the commit are git's."""
    folder = tmp_path_factory.mktemp("recorded")
    root = folder / "root"
    (root / "a").mkdir(parents=True)
    for name in ("a/b", "b", "c.txt"):
        (root / name).write_text(name)
    identity = ["-c", "user.email=a@b", "-c", "user.name=n"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run(["git", *identity, *words], cwd=root, check=True)
    states = {}
    with reenact.capture(folder / "run", workspace=root, workspace_base=base):
        for number, (form, *words) in enumerate(operations):
            shell_command(str(root), number, os.fsencode(form.format(*map(shlex.quote, words))))
            states[number] = without_git(state_of(root))
    results = [
        event["seq"]
        for event in map(json.loads, (folder / "run/events.jsonl").read_bytes().splitlines())
        if event["type"] == "tool_result"
    ]
    assert reenact.verify(folder / "run").findings == []
    for (number, expected), at in zip(states.items(), results, strict=True):
        target = folder / f"at-{number}"
        reenact.checkout(folder / "run", target, at=at, repository=root)
        assert state_of(target) == expected
    reenact.checkout(folder / "run", folder / "end", repository=root)
    assert state_of(folder / "end") == expected


def without_git(state):
    return {path: facts for path, facts in state.items() if b".git" not in path.split(b"/")}


def test_names_that_are_not_utf8_come_back(root, kept, tmp_path):
    """Names and link targets are bytes."""
    top = os.fsencode(root)
    (root / "plain").write_text("x")
    with open(top + b"/\xff\xfe bad", "wb") as stream:
        stream.write(b"content")
    os.symlink(b"\xff\xfe bad", top + b"/link")
    digest = Scanner(root, kept.blobs.put).take()
    kept.restore(digest, tmp_path / "again")
    assert state_of(tmp_path / "again") == state_of(root)


def test_change_of_same_size_within_the_clocks_grain_is_seen(root, kept):
    """A file that was written so recently that its time cannot tell is read again."""
    file = root / "f"
    scanner = Scanner(root, kept.blobs.put)
    for number in range(200):
        file.write_text(f"{number % 10}")
        digest = scanner.take()
        entry = find_entry(kept.read, digest, b"f")
        assert kept.content(entry) == f"{number % 10}".encode()


def test_time_set_back_hides_no_change(root, kept):
    """Whoever sets a file's time back does not hide that it changed."""
    file = root / "f"
    file.write_text("one")
    scanner = Scanner(root, kept.blobs.put)
    before = file.stat()
    scanner.take()
    time.sleep(0.06)
    scanner.take()
    file.write_text("two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert kept.content(find_entry(kept.read, scanner.take(), b"f")) == b"two"


def test_unchanged_files_are_not_read_again(root, kept):
    """A look at a tree that rests reads no file."""
    (root / "sub").mkdir()
    for number in range(20):
        (root / "sub" / str(number)).write_text("x")
    scanner = Scanner(root, kept.blobs.put)
    digest = scanner.take()
    time.sleep(0.06)
    assert scanner.take() == digest
    time.sleep(0.06)
    kept_before = []
    scanner._put = kept_before.append
    assert scanner.take() == digest
    assert kept_before == []


def test_index_is_handed_to_another_process(root, kept, tmp_path):
    """What one look learned, another scanner starts from."""
    (root / "sub").mkdir()
    (root / "sub" / "f").write_text("x")
    scanner = Scanner(root, kept.blobs.put)
    scanner.take()
    time.sleep(0.06)
    digest = scanner.take()
    scanner.index.save(tmp_path / "index")
    reads = []
    other = Scanner(root, reads.append, index=Index.load(tmp_path / "index"))
    assert other.take() == digest
    assert reads == []
    (tmp_path / "index").write_bytes(b"damaged")
    assert Scanner(root, kept.blobs.put, index=Index.load(tmp_path / "index")).take() == digest


def test_what_cannot_be_kept_is_listed(root, kept):
    """Pipes, large files, secrets, ignored files and git's own are left out, and the tree says so."""
    os.mkfifo(root / "pipe")
    (root / "big").write_bytes(b"x" * 100)
    (root / ".env").write_text("KEY=1")
    (root / ".env.example").write_text("KEY=")
    (root / "server.pem").write_text("key")
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    (root / "a.log").write_text("x")
    (root / "build").mkdir()
    (root / "build" / "out").write_text("x")
    (root / ".git").mkdir()
    os.symlink("loop", root / "loop")
    scanner = Scanner(root, kept.blobs.put, limit_bytes=50)
    digest = scanner.take()
    assert {found.path: found.why for found in scanner.left_out()} == {
        ".env": "secret",
        ".git": "git",
        "a.log": "ignored",
        "big": "too-large",
        "build": "ignored",
        "pipe": "special",
        "server.pem": "secret",
    }
    tree = {entry.name: entry for entry in kept.read(digest)}
    assert tree[b"big"].kind == "left-out"
    assert tree[b"big"].size_bytes == 100
    assert tree[b".env.example"].kind == "file"
    assert tree[b"loop"].target == b"loop"


def test_a_changed_ignore_file_changes_what_is_left_out(root, kept):
    """Rules hold from the moment they are written, below their folder."""
    (root / "sub").mkdir()
    (root / "sub" / "x.log").write_text("x")
    (root / ".gitignore").write_text("")
    scanner = Scanner(root, kept.blobs.put)
    assert "sub/x.log" in list(kept.paths(scanner.take()))
    (root / ".gitignore").write_text("*.log\n")
    scanner.take()
    assert [found.path for found in scanner.left_out()] == ["sub/x.log"]
    (root / "sub" / ".gitignore").write_text("!x.log\n")
    scanner.take()
    assert scanner.left_out() == []


def test_captures_are_no_part_of_the_files(root, kept):
    """What we write ourselves is not looked at, whichever run it is of."""
    for folder in (root / "runs" / "one", root / "runs" / "two"):
        folder.mkdir(parents=True)
    (root / "runs" / "one" / "events.jsonl").write_text("")
    (root / "runs" / "one" / "manifest.open.json").write_text("")
    (root / "runs" / "two" / "other").write_text("")
    scanner = Scanner(root, kept.blobs.put, leave_out=[root / "runs" / "two"])
    scanner.take()
    assert [(found.path, found.why) for found in scanner.left_out()] == [
        ("runs/one", "capture"),
        ("runs/two", "capture"),
    ]
    (root / "events.jsonl").write_text("")
    (root / "manifest.json").write_text("")
    with pytest.raises(StoreError, match="is a capture"):
        scanner.take()


def test_a_workspace_that_is_gone_is_said(root, kept):
    """And is looked at again once it is back."""
    (root / "f").write_text("x")
    scanner = Scanner(root, kept.blobs.put)
    digest = scanner.take()
    root.rename(root.with_name("away"))
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        scanner.take()
    root.with_name("away").rename(root)
    assert scanner.take() == digest


def test_file_that_keeps_changing_is_left_out(root, kept, monkeypatch):
    """Half of one state and half of another is no state."""
    file = root / "f"
    file.write_text("0" * 10)
    scanner = Scanner(root, kept.blobs.put)
    real = os.read

    def read(fd, count):
        file.write_text("1" * (file.stat().st_size + 1))
        return real(fd, count)

    monkeypatch.setattr("reenact.workspace.scan._read", read)
    scanner.take()
    assert [(found.path, found.why) for found in scanner.left_out()] == [("f", "changing")]
    monkeypatch.setattr("reenact.workspace.scan._read", real)
    scanner.take()
    assert scanner.left_out() == []


def test_secrets_in_files_are_hidden_and_marked(root, kept, tmp_path):
    """What is stored of a file with a secret is its redacted form, and the tree says so."""
    (root / "config").write_bytes(b"say hunter2hunter2\n")
    (root / "plain").write_bytes(b"nothing\n")
    redactor = Redactor("none", secrets=["hunter2hunter2"], salt=b"salt")
    scanner = Scanner(root, kept.blobs.put, redactor=redactor)
    restored = kept.restore(scanner.take(), tmp_path / "again")
    assert restored.hidden == ["config"]
    assert re.fullmatch(r"say <secret:opaque:\w{8}>\n", (tmp_path / "again" / "config").read_text())


def test_link_into_the_workspace_follows_it(root, kept, tmp_path):
    """An absolute link to a file of the tree leads to that file of the restored one, not to the user's."""
    (root / "f").write_text("x")
    os.symlink(root / "f", root / "link")
    kept.restore(Scanner(root, kept.blobs.put).take(), tmp_path / "again")
    assert os.readlink(tmp_path / "again" / "link") == str(tmp_path / "again" / "f")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("..", "not a file name"),
        ("a/b", "not a file name"),
        ("/etc/passwd", "not a file name"),
        ("", "not a file name"),
        ("a\0b", "not a file name"),
    ],
)
def test_names_that_lead_out_are_refused(kept, tmp_path, name, message):
    """A capture that was made up writes nothing outside of the folder, and nothing at all."""
    bad = b'{"blob":"%b","bytes":1,"kind":"file","mode":"644","name":%b}'
    blob = kept.blobs.put(b"x").encode()
    tree = kept.blobs.put(join_entries([bad % (blob, json.dumps(name).encode())]))
    good = TreeEntry(b"good", "file", mode=0o644, digest=blob.decode(), size_bytes=1)
    folder = TreeEntry(b"sub", "folder", mode=0o755, digest=tree)
    whole = kept.blobs.put(join_entries([write_entry(good), write_entry(folder)]))
    with pytest.raises(FormatError, match=message):
        kept.restore(whole, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blobs"]


def test_names_twice_and_folders_without_end_are_refused(kept, tmp_path):
    """So is a file below a link of the same name, and a folder that would be restored for ever."""
    link = write_entry(TreeEntry(b"a", "link", target=b"/tmp"))
    empty = kept.blobs.put(join_entries([]))
    below = write_entry(TreeEntry(b"a", "folder", mode=0o755, digest=empty))
    with pytest.raises(FormatError, match="twice"):
        kept.restore(kept.blobs.put(join_entries([link, below])), tmp_path / "again")
    digest = empty
    for _ in range(300):
        digest = kept.blobs.put(
            join_entries([write_entry(TreeEntry(b"d", "folder", mode=0o755, digest=digest))])
        )
    with pytest.raises(FormatError, match="deep"):
        kept.restore(digest, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_changes_never_follow_a_link(kept, tmp_path, root):
    """What is put in place goes through no link that stands in the way."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "d").mkdir()
    scanner = Scanner(root, kept.blobs.put)
    before = scanner.take()
    (root / "d" / "f").write_text("x")
    after = scanner.take()
    target = tmp_path / "target"
    target.mkdir()
    os.symlink(outside, target / "d")
    with pytest.raises(StoreError):
        apply_changes(target, compare_trees(kept.read, before, after), kept.content)
    assert list(outside.iterdir()) == []


def test_changes_are_told_with_their_diff(root, kept):
    """Renames are seen, texts shown line by line, modes and links named."""
    (root / "a").write_text("one\ntwo\n")
    (root / "moved").write_text("content of its own\n")
    os.symlink("a", root / "l")
    scanner = Scanner(root, kept.blobs.put)
    before = scanner.take()
    (root / "a").write_text("one\n2\n")
    (root / "moved").rename(root / "new")
    (root / "l").unlink()
    os.symlink("new", root / "l")
    (root / "e").mkdir()
    changes = compare_trees(kept.read, before, scanner.take())
    assert list(map(str, changes)) == [
        "changed a",
        "added   e/",
        "changed l",
        "renamed new (was moved)",
    ]
    assert describe_change(changes[0], kept.content) == ["changed a", "@@ -1,2 +1,2 @@", " one", "-two", "+2"]
    assert describe_change(changes[2], kept.content) == ["changed l", "-→ a", "+→ new"]


_KNOWN = r"""*.log /a b/ a/b **/c a/** !b * !a/ ? [ab] [!a]c [^a]c [a-c] [[:alpha:]] [[:digit:]a] []a] [a]]
[a\]b] ** *** a** a**b /**/c **/b/** b/**/c a/*/c !!a \!b \#c #c \a a\ ! / // !/ /!b *.*g [ab]/[ab]c a/b/ a//b
./a ../a [!]a] [a-] [-a] [b-a] a? ?c **c c** .* *b* [[:upper:]] [[:nope:]] [[:alpha:]b[:digit:]] [\a-c] \* *\
[[:] [[:a] é ?? [é] [[:alpha:]-z] [a-\c] [!-a] [a&&b] [a||b] [a~~b] [a--b]"""
_PATHS = (
    "a/b/c",
    "a/c",
    "b/a",
    "c",
    "a.log",
    "b/a.log",
    "ab/c",
    "a/ac/b",
    "a b",
    "!b",
    "#c",
    "B",
    "é",
    "a/é",
)
_patterns = st.lists(
    st.one_of(
        st.sampled_from([*_KNOWN.split(), "a ", "a\\ ", "b  ", " a", "a\r", "\ufeffa", "a\tb"]),
        st.text(alphabet="ab/*?![]\\ .-^", min_size=1, max_size=6),
    ),
    max_size=4,
)


@settings(max_examples=rounds(25, 1000), deadline=None)
@given(above=_patterns, below=_patterns, excluded=_patterns, mine=_patterns)
def test_ignore_files_mean_what_git_says(tmp_path_factory, above, below, excluded, mine):
    """git itself is asked which files are left out, by all files that can say so."""
    root = tmp_path_factory.mktemp("ignoring")
    for path in _PATHS:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    (root / ".gitignore").write_text("\n".join(above))
    (root / "b" / ".gitignore").write_text("\n".join(below))
    home = tmp_path_factory.mktemp("home")
    (home / "mine").write_text("\n".join(mine))
    (home / ".gitconfig").write_text("[core]\nexcludesFile = ~/mine\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.delenv("GIT_CONFIG_GLOBAL", raising=False)
        subprocess.run(["git", "init", "-q", root], check=True)
        (root / ".git" / "info" / "exclude").write_text("\n".join(excluded))
        words = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
        told = subprocess.run(words, cwd=root, check=True, capture_output=True)
        kept = Kept(root.with_name(root.name + "-blobs"))
        tree = WorkspaceOrder.for_folder(root).scanner(kept.blobs.put).take()
    files = {path for path, entry in walk(kept.read, tree) if entry.kind == "file"}
    assert files == {path for path in told.stdout.split(b"\0") if path}
