"""Secrets in names of files and in targets of links: on no disk, in no message, left out and listed."""

import json
import os
from pathlib import Path

import pytest

import reenact
from reenact.redaction import Redactor
from reenact.store.blobs import BlobStore
from reenact.workspace.scan import Index, Scanner
from tests.cli.commands import PYTHON, run

KEY = "sk-ant-api03-" + "Zq8vT2Lm9XwR4bNc7KdY" * 4 + "-AbCdEfGhAA"
PASSWORD = "hunter2hunter2"
ORDINARY = [
    "xychartDiagram-S5SC5T6Z-CC41SK9q.js",
    "2026-11-16T15_31_12_440Z-debug-0.log",
    "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPdG3bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszv",
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069.blob",
    "lodash-npm-4.17.21-6382451519-eb835a2e51.zip",
    "0c8f1d0e-3a0b-4b57-9c3e-6f1f7e0a2b9d.json",
    "icon@2x.png",
    "getty@tty1.service",
    "react@18.2.0",
    "Server-TLSv12-ClientAuthRequestedAndEd25519Given",
    "Hellenic_Academic_and_Research_Institutions_RootCA_2015.crt",
    "token.py",
    "password.txt",
    "api_key.rs",
    "secrets.yaml",
]
"""Also for who hides random strings: these are names of caches, objects, chunks and certificates."""


def make(root):
    """Everything that can be called like a secret."""
    (root / f"{KEY}.txt").write_text("x")
    (root / KEY).mkdir()
    (root / KEY / "below").write_text("x")
    (root / f"password={PASSWORD}").write_text("x")
    (root / f"api_key%3D{PASSWORD}").write_text("x")
    (root / f"{KEY}-link").symlink_to("plain")
    (root / "link").symlink_to(f"https://user:{PASSWORD}@host.example/x")
    (root / "sub").mkdir()
    (root / "sub" / f"{KEY}.pem").write_text("x")
    (root / "plain").write_text("x")


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def scan(root, tmp_path, profile, secrets=()):
    blobs = BlobStore(tmp_path / "blobs")
    return Scanner(root, blobs.put, redactor=Redactor(profile, secrets=secrets, salt=b"salt")), blobs


@pytest.mark.parametrize("profile", ["default", "strict"])
def test_what_is_called_like_a_secret_is_left_out_under_another_name(root, tmp_path, profile):
    """The tree lists it, whole folders and links too; nothing that is written has the secret."""
    make(root)
    scanner, blobs = scan(root, tmp_path, profile)
    scanner.take()
    scanner.index.save(tmp_path / "index", Redactor(profile, salt=b"salt"))
    left_out = {found.path: found.why for found in scanner.left_out()}
    assert len(left_out) == 7
    assert set(left_out.values()) == {"secret"}
    assert {path for path in left_out if "<secret:" not in path} == {"link"}
    written = [(tmp_path / "index").read_bytes(), *map(blobs.get, blobs), repr(left_out).encode()]
    assert not any(secret.encode() in text for text in written for secret in (KEY, PASSWORD))


def test_a_folder_is_looked_at_on_where_names_were_hidden(root, tmp_path):
    """By the same process and by one that begins with what it wrote down; names come and go."""
    make(root)
    scanner, blobs = scan(root, tmp_path, "default")
    first = scanner.take()
    scanner.index.save(tmp_path / "index")
    again = Scanner(
        root, blobs.put, redactor=Redactor("default", salt=b"salt"), index=Index.load(tmp_path / "index")
    )
    assert again.take() == scanner.take() == first
    (root / f"{KEY}.txt").rename(root / "harmless.txt")
    assert again.take() == scanner.take() != first
    assert "harmless.txt" in scanner.index.root.files
    assert len(scanner.left_out()) == 6


def test_two_names_of_one_secret_are_two_entries(root, tmp_path):
    """However it is spelled; no tree has a name twice."""
    (root / f"password={PASSWORD}").write_text("x")
    (root / f"password%3D{PASSWORD}").write_text("x")
    scanner, blobs = scan(root, tmp_path, "default", secrets=[PASSWORD])
    (root / "<secret:opaque:00000000>").write_text("a file that an agent called so")
    names = [entry["name"] for entry in json.loads(blobs.get(scanner.take()))["entries"]]
    assert len(set(names)) == 3
    assert names == sorted(names, key=os.fsencode)


@pytest.mark.parametrize("profile", ["none", "default", "strict"])
def test_ordinary_names_are_no_secrets(root, tmp_path, profile):
    """What looks random is usual among names, so that strict hides no more of them than default."""
    for name in ORDINARY:
        (root / name).write_text("x")
    scanner, _ = scan(root, tmp_path, profile)
    scanner.take()
    assert scanner.left_out() == []


def test_registered_values_are_hidden_in_names_by_every_profile(root, tmp_path):
    """Also inside a word."""
    (root / "for-correcthorse-only").write_text("x")
    scanner, _ = scan(root, tmp_path, "none", secrets=["correcthorse"])
    scanner.take()
    assert [found.path for found in scanner.left_out()] != ["for-correcthorse-only"]
    assert len(scanner.left_out()) == 1


AGENT = f"""
import subprocess
from pathlib import Path

import reenact


@reenact.tool
def make() -> None:
    Path("{KEY}.new").write_text("x")
    Path("other").symlink_to("https://user:{PASSWORD}@host.example/x")


make()
subprocess.run(["sh", "-c", "mv link elsewhere; rmdir empty"], check=True)
"""


def test_no_verb_shows_or_stores_such_a_name(root, tmp_path):
    """Of a run that makes and moves such files: the capture, what is printed, published and restored."""
    make(root)
    (root / "empty").mkdir()
    (tmp_path / "agent.py").write_text(AGENT)
    words = ["--workspace", "--", PYTHON, tmp_path / "agent.py"]
    told = [run("record", "-o", "../a", *words, cwd=root)]
    for verb in (
        ["files", "a"],
        ["show", "a"],
        ["checkout", "a", "-o", "out"],
        ["publish", "a", "-o", "published/log.jsonl"],
        ["replay", "a", "--receipt", "receipt.json", *words],
        ["fork", "a", "--at", "2", "-o", "f", *words],
    ):
        (tmp_path / "published").mkdir(exist_ok=True)
        told.append(run(*verb, cwd=tmp_path))
    assert {done.returncode for done in told} == {0}, [done.stderr for done in told]
    assert "9 secret" in told[0].stderr
    assert "(left out: secret)" in told[1].stdout
    places = [tmp_path / name for name in ("a", "f", "out", "published", "receipt.json")]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*"))]
    texts = [file.read_bytes() for file in files if file.is_file()]
    texts += [os.fsencode(file) for file in files] + [(done.stdout + done.stderr).encode() for done in told]
    assert not any(secret.encode() in text for text in texts for secret in (KEY, PASSWORD))
    assert {path.name for path in Path(tmp_path, "out").iterdir()} == {"sub", "plain"}
    assert reenact.verify(tmp_path / "a").findings == []
