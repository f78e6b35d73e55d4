"""HAR as browsers, proxies and API tools write it, beyond what the specification asks for."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

import reenact
from reenact.importers.building import ImportedRun
from tests.importers.test_importing import entry, har, post

URL = "https://x.test/a"


def import_har(tmp_path: Path, text: str) -> ImportedRun:
    (tmp_path / "it.har").write_text(text, encoding="utf-8")
    [run] = reenact.import_runs(tmp_path / "it.har", tmp_path / "run").runs
    return run


def answered(text: str | None = "grün", **response: Any) -> dict[str, Any]:
    made = entry(URL, text)
    made["response"] |= response
    return made


def asked(**request: Any) -> dict[str, Any]:
    made = entry(URL, "grün")
    made["request"] |= request
    return made


def test_a_har_without_a_creator_is_one(tmp_path: Path) -> None:
    """Small tools leave it out, and the version."""
    run = import_har(tmp_path, json.dumps({"log": {"entries": [answered()]}}))
    assert (run.format, run.counts.requests, run.losses) == ("har", 1, [])


@pytest.mark.parametrize("change", [
    {"status": "200"},
    {"headers": [{"name": "x"}, {"name": "content-type", "value": "text/plain"}]},
    {"cookies": None, "redirectURL": None, "statusText": None},
])  # fmt: skip
def test_what_tools_write_otherwise_is_read(tmp_path: Path, change: dict[str, Any]) -> None:
    """A status as text, a header without a value, nulls."""
    run = import_har(tmp_path, har(answered(**change)))
    assert run.losses == []
    with reenact.replay(tmp_path / "run"):
        assert post(URL) == "grün".encode()


def test_a_text_has_the_bytes_of_its_charset(tmp_path: Path) -> None:
    """HAR has texts, and the client decodes bytes by the charset of the header."""
    headers = [{"name": "content-type", "value": "text/plain; charset=ISO-8859-1"}]
    import_har(tmp_path, har(answered(headers=headers)))
    with reenact.replay(tmp_path / "run"), httpx.Client() as client:
        answer = client.post(URL, content="asked", headers={"content-type": "text/plain"})
    assert (answer.content, answer.text) == ("grün".encode("latin-1"), "grün")


def test_bytes_that_are_no_text_are_sent_as_they_were(tmp_path: Path) -> None:
    """As mitmproxy writes them: each as the character of its number."""
    body = bytes(range(256))
    data = {"mimeType": "", "text": body.decode("latin-1")}
    run = import_har(tmp_path, har(asked(method="POST", postData=data, bodySize=256)))
    assert run.losses == []
    with reenact.replay(tmp_path / "run"):
        assert httpx.post(URL, content=body).content == "grün".encode()


def test_bodies_in_files_beside_are_read(tmp_path: Path) -> None:
    """Playwright attaches bodies, and a folder of them is no list of unknown files."""
    (tmp_path / "har").mkdir()
    (tmp_path / "har" / "a1.txt").write_text("grün", encoding="utf-8")
    (tmp_path / "har" / "b2.txt").write_text("asked")
    made = answered(None)
    made["response"]["content"]["_file"] = "a1.txt"
    made["request"]["postData"] = {"mimeType": "text/plain", "text": "", "_file": "b2.txt"}
    (tmp_path / "har" / "it.har").write_text(har(made))
    report = reenact.import_runs(tmp_path / "har", tmp_path / "runs")
    assert (report.verdict, report.skipped) == ("whole", [])
    with reenact.replay(tmp_path / "runs" / "it"):
        assert post(URL) == "grün".encode()


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/hostname", "missing.txt", "a/../../secret.txt"])
def test_a_file_elsewhere_is_not_read(tmp_path: Path, name: str) -> None:
    """Only files below the folder of the HAR belong to it."""
    (tmp_path / "secret.txt").write_text("private words")
    (tmp_path / "har").mkdir()
    made = answered(None)
    made["response"]["content"] |= {"_file": name}
    (tmp_path / "har" / "it.har").write_text(har(made))
    report = reenact.import_runs(tmp_path / "har" / "it.har", tmp_path / "run")
    assert ["was not saved" in loss.reason for loss in report.runs[0].losses] == [True]
    assert not any(
        b"private words" in file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()
    )


def test_chunks_in_base64_are_put_together(tmp_path: Path) -> None:
    """Polly keeps the pieces of a compressed answer as they came."""
    coded = gzip.compress("grün".encode())
    pieces = [base64.b64encode(piece).decode() for piece in (coded[:7], coded[7:])]
    made = answered(json.dumps(pieces), headers=[{"name": "content-encoding", "value": "gzip"}])
    made["response"]["content"]["encoding"] = "base64"
    run = import_har(tmp_path, har(made))
    assert run.losses == []
    with reenact.replay(tmp_path / "run"):
        assert post(URL) == "grün".encode()


@pytest.mark.parametrize("place", ["answer", "question"])
def test_half_a_character_takes_no_body_away(tmp_path: Path, place: str) -> None:
    """Programs in JavaScript write it; it becomes a replacement character, and that is a loss."""
    made = entry(URL, "gr\ud83dn" if place == "answer" else "grün")
    if place == "question":
        made["request"]["postData"]["text"] = "as\ud83dked"
    run = import_har(tmp_path, har(made))
    assert ["half a character" in loss.reason for loss in run.losses] == [True]
    with reenact.replay(tmp_path / "run"), httpx.Client() as client:
        said = "asked" if place == "answer" else "as\ufffdked"
        answer = client.post(URL, content=said, headers={"content-type": "text/plain"})
    assert answer.content.decode() == ("gr\ufffdn" if place == "answer" else "grün")


def test_an_encoding_that_is_not_known_is_a_loss(tmp_path: Path) -> None:
    """Such a body is not taken for a text."""
    made = answered("6772", headers=[])
    made["response"]["content"]["encoding"] = "rot13"
    [loss] = import_har(tmp_path, har(made)).losses
    assert "'rot13'" in loss.reason


@pytest.mark.parametrize("data", [
    {"mimeType": "multipart/form-data", "params": [{"name": "f", "fileName": "x.txt"}]},
    {"mimeType": "multipart/form-data; boundary=b", "params": [{"name": "f", "value": "1"}]},
])  # fmt: skip
def test_a_form_with_parts_is_no_list_of_pairs(tmp_path: Path, data: dict[str, Any]) -> None:
    """Its boundaries are not told, so its bytes are lost; its answer is not."""
    run = import_har(tmp_path, har(asked(postData=data)))
    assert ["was not saved" in loss.reason for loss in run.losses] == [True]
    assert run.counts.requests == 1
    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run"):
        post(URL)


def test_a_form_of_pairs_is_encoded(tmp_path: Path) -> None:
    """Firefox leaves its text out."""
    kind = "application/x-www-form-urlencoded"
    data = {
        "mimeType": kind,
        "text": "",
        "params": [{"name": "a", "value": "1 2"}, {"name": "b", "value": "é"}],
    }
    headers = [{"name": "content-type", "value": kind}]
    assert import_har(tmp_path, har(asked(postData=data, headers=headers))).losses == []
    with reenact.replay(tmp_path / "run"), httpx.Client() as client:
        assert client.post(URL, data={"a": "1 2", "b": "é"}).text == "grün"
