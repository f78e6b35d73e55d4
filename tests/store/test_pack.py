"""Packs: many runs in one file, read in place; damage is found, and what is hostile refused."""

import struct
import zlib
from hashlib import sha256
from pathlib import Path

import pytest

from reenact.errors import FormatError, ReenactError, StoreError, UnknownVersion
from reenact.store import pack
from reenact.store.pack import LocalFile, Pack, PackedRun, PackWriter, is_pack

FILES = {"events.jsonl": b"x" * 5000, "empty": b"", "blobs/sha256/ab/cd": bytes(range(256)) * 40}


class CountedFile(LocalFile):
    read_bytes = requests = 0

    def read(self, start, length):
        self.read_bytes += length
        self.requests += 1
        return super().read(start, length)


def write_run(folder, files=FILES):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def write_pack(file, names, folder):
    with file.open("wb") as stream:
        writer = PackWriter(stream)
        for name in names:
            writer.add(name, folder, sorted(FILES))
        writer.close()
    return file


@pytest.fixture
def small(tmp_path):
    return write_pack(tmp_path / "a.pack", ["lamp", "team/lamp", "ü"], write_run(tmp_path / "run"))


def read_all(file, into):
    opened = Pack(LocalFile(file))
    for number, run in enumerate(opened):
        (into / str(number)).mkdir(parents=True)
        opened.unpack(run, into / str(number))
        yield run.name, {name: (into / str(number) / name).read_bytes() for name in FILES}


def test_what_is_packed_comes_out_again(small, tmp_path):
    """By name, file for file, empty ones too."""
    assert is_pack(small)
    assert not is_pack(tmp_path / "run" / "events.jsonl")
    assert not is_pack(tmp_path)
    assert list(read_all(small, tmp_path / "out")) == [(name, FILES) for name in ("lamp", "team/lamp", "ü")]
    assert Pack(LocalFile(small)).find("lam") is None
    assert Pack(LocalFile(small)).find("") is None
    assert Pack(LocalFile(small)).find("zz") is None


def test_an_empty_pack_is_one(tmp_path):
    file = write_pack(tmp_path / "a.pack", [], tmp_path)
    assert list(Pack(LocalFile(file))) == []
    assert Pack(LocalFile(file)).find("lamp") is None


def test_one_run_of_many_costs_itself_and_64_kib(tmp_path):
    """However many there are, and however long their names; those of 100,000 runs make three levels."""
    names = [f"team/{'long-' * 20}{number:06d}" for number in range(3000)]
    file = write_pack(tmp_path / "a.pack", names, write_run(tmp_path / "run"))
    counted = CountedFile(file)
    opened = Pack(counted)
    found = opened.find(names[1234])
    opened.unpack(found, tmp_path / "out")
    assert (tmp_path / "out" / "events.jsonl").read_bytes() == FILES["events.jsonl"]
    assert counted.read_bytes <= found.length + 64 * 1024
    assert counted.requests <= 5


def test_every_run_is_found_in_a_deep_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(pack, "_PAGE_BYTES", 300)
    names = [f"{number:04d}" for number in range(500)]
    file = write_pack(tmp_path / "a.pack", names, write_run(tmp_path / "run"))
    opened = Pack(LocalFile(file))
    assert [run.name for run in opened] == names
    assert [opened.find(name).name for name in names] == names
    assert opened.find("0123x") is None


def test_any_damage_is_found_and_named(small, tmp_path):
    """One bit anywhere, and any length that is missing or too much."""
    whole = small.read_bytes()
    for place in (*range(len(pack.MAGIC)), *range(len(pack.MAGIC), len(whole), 7)):
        damaged = bytearray(whole)
        damaged[place] ^= 4
        _refuse(small, bytes(damaged), tmp_path / f"bit-{place}", place)
    for length in range(0, len(whole), 97):
        _refuse(small, whole[:length], tmp_path / f"cut-{length}", length)
    _refuse(small, whole + b"\0", tmp_path / "longer", "longer")


def _refuse(small, content, out, what):
    small.write_bytes(content)
    with pytest.raises(FormatError) as refused:
        list(read_all(small, out))
    assert str(refused.value).startswith(f"{small}"), what
    assert "\n" not in str(refused.value)


def forge(file, runs, body=b"x" * 100):
    """A pack whose digests all fit, and that says something else than a writer says."""
    with file.open("wb") as stream:
        writer = PackWriter(stream)
        writer._write(body)
        writer._runs = runs(len(pack.MAGIC))
        writer.close()
    return file


def stored(files, sizes=None, more=b""):
    listed = pack._encode([(name, len(content)) for name, content in files] if sizes is None else sizes)
    text = struct.pack("<I", len(listed)) + listed + b"".join(content for _, content in files) + more
    return zlib.compress(text)


def packed(name, body, size_bytes, start=8, length=None):
    return PackedRun(name, start, len(body) if length is None else length, size_bytes, sha256(body).digest())


def test_names_that_lead_out_are_refused(tmp_path):
    for name in ("../out", "/etc/x", "a//b", "a/./b", "a\\b", "", "a\0b"):
        body = stored([("events.jsonl", b"x")])
        file = forge(tmp_path / "a.pack", lambda _, n=name, b=body: [packed(n, b, 1)], body)
        with pytest.raises(ReenactError, match="is not a file name of a run"):
            list(Pack(LocalFile(file)))
        body = stored([(name, b"x")])
        file = forge(tmp_path / "a.pack", lambda _, b=body: [packed("lamp", b, 1)], body)
        opened = Pack(LocalFile(file))
        with pytest.raises(ReenactError, match="is not a file name of a run"):
            opened.unpack(opened.find("lamp"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_directory_that_does_not_fit_is_refused(tmp_path):
    """Ranges that overlap, leave gaps or lead out; counts and sizes that nothing can have."""
    body = stored([("events.jsonl", b"x")])
    wrong = {
        "overlap": [packed("a", body, 1), packed("b", body, 1)],
        "gap": [packed("a", body, 1, start=9)],
        "out": [packed("a", body, 1, length=2**40)],
        "before": [packed("a", body, 1, start=0)],
        "negative": [packed("a", body, 1, length=-5)],
        "huge": [packed("a", body, 2**50)],
        "order": [packed("b", body[:10], 1, length=10), packed("a", body[10:], 1, start=18)],
        "twice": [packed("a", body[:10], 1, length=10), packed("a", body[10:], 1, start=18)],
    }
    for what, runs in wrong.items():
        file = forge(tmp_path / f"{what}.pack", lambda _, runs=runs: runs, body)
        with pytest.raises(FormatError, match="is not a complete pack"):
            list(Pack(LocalFile(file)))


def test_a_run_that_is_not_what_its_list_says_is_refused(tmp_path):
    """More, less, two of one name, a list without end: nothing larger than promised is ever written."""
    one = [("events.jsonl", b"x" * 10)]
    wrong = {
        "more": (stored(one, more=b"y" * 1000), 10),
        "less": (stored(one, sizes=[("events.jsonl", 20)]), 20),
        "other": (stored(one, sizes=[("events.jsonl", 10)]), 11),
        "twice": (stored([*one, *one]), 20),
        "negative": (stored(one, sizes=[("a", 20), ("b", -10)]), 10),
        "list": (zlib.compress(struct.pack("<I", 2**31) + b"x"), 10),
        "no list": (zlib.compress(b"ab"), 10),
        "no zlib": (b"x" * 40, 10),
        "cut": (stored(one)[:-5], 10),
        "behind": (stored(one) + b"zzz", 10),
    }
    for what, (body, size_bytes) in wrong.items():
        file = forge(tmp_path / f"{what}.pack", lambda _, b=body, s=size_bytes: [packed("a", b, s)], body)
        opened = Pack(LocalFile(file))
        (tmp_path / what).mkdir()
        with pytest.raises(FormatError):
            opened.unpack(opened.find("a"), tmp_path / what)
        written = sum(each.stat().st_size for each in (tmp_path / what).rglob("*"))
        assert written <= 20, what


def test_another_version_is_told(small):
    content = small.read_bytes()
    small.write_bytes(content[:-2] + b"09")
    with pytest.raises(UnknownVersion, match="another version; install a newer reenact"):
        Pack(LocalFile(small))


def test_a_run_that_changes_while_it_is_packed_is_told(tmp_path, monkeypatch):
    folder = write_run(tmp_path / "run")
    stat = pack.os.stat
    with (tmp_path / "a.pack").open("wb") as stream:
        writer = PackWriter(stream)
        writer.add("b", folder, sorted(FILES))
        with pytest.raises(StoreError, match="another run 'a'"):
            writer.add("a", folder, sorted(FILES))
        with pytest.raises(StoreError, match="longer than 1024 bytes"):
            writer.add("c" * 1025, folder, sorted(FILES))

        def seen_before(path):
            found = stat(path)
            Path(path).write_bytes(b"longer" * 10_000)
            return found

        monkeypatch.setattr(pack.os, "stat", seen_before)
        with pytest.raises(StoreError, match="was changed meanwhile"):
            writer.add("c", folder, ["events.jsonl"])
