"""Sealed and published: the files of a run."""

import json
from pathlib import Path

import pytest

import reenact
from reenact.cli import main

SECRET_WORD = "a most private sentence"


@reenact.tool
def write(path: str, text: str) -> None:
    """Write a file, in a folder that may be new."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


@pytest.fixture
def sealed(tmp_path, monkeypatch):
    """A run with files, sealed."""
    monkeypatch.chdir(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    (work / "README").write_text(SECRET_WORD)
    (work / ".env").write_text("KEY=1")
    (work / "link").symlink_to("README")
    with reenact.capture("run", workspace=work):
        write(f"{work}/src/app.py", SECRET_WORD + "!")
        write(f"{work}/README", "other")
    reenact.keygen("signer")
    reenact.seal("run", "signer")
    return tmp_path / "run"


def published(policy, *options):
    assert main(["publish", "run", "-o", "out.jsonl", "--policy", policy, "--force", *options]) == 0
    return json.loads(Path("out.files.json").read_text())


@pytest.mark.parametrize("policy", ["open", "private"])
def test_names_and_hashes_are_published_and_no_content(sealed, policy, capsys):
    """All of the start, and what each step changed."""
    found = published(policy)
    assert "out.files.json: names and hashes of the files, no contents" in capsys.readouterr().out
    assert SECRET_WORD not in Path("out.files.json").read_text()
    assert {file["path"]: file["kind"] for file in found["start"]["files"]} == {
        ".env": "left-out",
        "README": "file",
        "link": "link",
    }
    assert [[change["path"] for change in step["changes"]] for step in found["steps"]] == [
        ["src", "src/app.py"],
        ["README"],
    ]
    listed = {file.path: file.digest for file in reenact.files(sealed).files}
    assert found["steps"][0]["changes"][1]["hash"] == listed["src/app.py"]
    assert found["end"]["tree"] == reenact.files(sealed).tree


def test_a_paranoid_policy_blinds_them(sealed):
    """Names, hashes and sizes; what is equal stays equal, and a folder stays one."""
    found = published("paranoid")
    text = Path("out.files.json").read_text()
    real = reenact.files(sealed)
    assert not any(word in text for word in ("README", "app.py", "src", '"bytes"', real.tree))
    assert not any(file.digest and file.digest in text for file in real.files)
    folder, file = (change["path"] for change in found["steps"][0]["changes"])
    assert file.startswith(f"{folder}/")


def test_the_published_trees_are_those_of_the_seal(sealed):
    """A disclosure of the event proves the tree that is published, and nothing else of it."""
    found = published("private", "--seal", "run.seal.json")
    step = found["steps"][0]
    events = [json.loads(line) for line in (sealed / "events.jsonl").read_text().splitlines()]
    seq = next(event["seq"] for event in events if event["data"].get("type") == "workspace")
    field = ["--field", "$.data.details.tree"]
    assert main(["disclose", "run", str(seq), *field, "--seal", "run.seal.json", "-o", "d"]) == 0
    assert step["tree"] in Path("d").read_text()
    assert main(["verify", "d", "--seal", "run.seal.json", "--key", "signer.pub"]) == 0


def blob_of(capture, digest):
    return capture / "blobs" / "sha256" / digest[7:9] / digest[9:]


def change_file(capture):
    blob_of(capture, reenact.files(capture, at=1).files[1].digest).write_bytes(b"else")


def change_tree(capture):
    file = blob_of(capture, reenact.files(capture).tree)
    file.write_bytes(file.read_bytes().replace(b"README", b"READYOU"))


def remove_tree(capture):
    blob_of(capture, reenact.files(capture, at=1).tree).unlink()


def name_another_tree(capture):
    file = capture / "events.jsonl"
    start = reenact.files(capture, at=1).tree
    file.write_text(file.read_text().replace(reenact.files(capture).tree, start))


def end_in_another_tree(capture):
    start, end = reenact.files(capture, at=1).tree, reenact.files(capture).tree
    file = capture / "manifest.json"
    file.write_text(file.read_text().replace(end, start))


@pytest.mark.parametrize(
    "tamper", [change_file, change_tree, remove_tree, name_another_tree, end_in_another_tree]
)
def test_tampering_with_files_is_found(sealed, tamper):
    """Whatever of them is changed: a content, a tree, or which one an event or the manifest names."""
    words = ["verify", "run", "--seal", "run.seal.json", "--key", "signer.pub"]
    assert main(words) == 0
    tamper(sealed)
    assert main(words) != 0
