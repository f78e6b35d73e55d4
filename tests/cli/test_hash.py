"""``reenact hash``: digests, texts, refusals."""

import io
import json
import sys

import pytest

from reenact import canonical
from reenact.cli import main

VALUE = {"b": 1.0, "a": [None, "é"]}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "value.json"
    path.write_text(json.dumps(VALUE, indent=3))
    return path


@pytest.mark.parametrize("profile", ["replay", "jcs"])
def test_one_file_gives_its_digest_alone(profile, file, capsys):
    """Written as the profile writes it."""
    assert main(["hash", str(file), "--profile", profile]) == 0
    assert capsys.readouterr().out == canonical.digest(VALUE, profile) + "\n"


def test_replay_is_the_default_profile(file, capsys):
    """Digests say sha256 there."""
    assert main(["hash", str(file)]) == 0
    assert capsys.readouterr().out.startswith("sha256:")


def test_standard_input_is_a_dash(monkeypatch, capsys):
    """As everywhere."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(VALUE).encode())))
    assert main(["hash", "-"]) == 0
    assert capsys.readouterr().out == canonical.digest(VALUE) + "\n"


def test_several_files_give_lines_with_names(file, capsys):
    """Two spaces between, as sha256sum has them."""
    assert main(["hash", str(file), str(file)]) == 0
    assert capsys.readouterr().out == f"{canonical.digest(VALUE)}  {file}\n" * 2


def test_canonical_prints_the_text_itself(file, capfdbinary):
    """Bytes, not a locale's idea of them."""
    assert main(["hash", "--canonical", str(file)]) == 0
    assert capfdbinary.readouterr().out == canonical.encode(VALUE) + b"\n"


def test_json_gives_one_object_per_file(file, capsys):
    """For machines."""
    assert main(["hash", "--json", "--profile", "jcs", str(file)]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"file": str(file), "profile": "jcs", "digest": canonical.digest(VALUE, "jcs")}
    ]


BAD = {
    "not JSON": (b'{"a": }', "not JSON: Expecting value at column 7"),
    "two values": (b"{}\n{}\n", "not JSON: Extra data at line 2 column 1"),
    "nothing": (b"", "not JSON: Expecting value at column 1"),
    "a repeated key": (b'{"x": [{"a": 1, "a": 2}]}', "$.x[0]: the key 'a' appears twice"),
    "NaN": (b"[NaN]", "not JSON: NaN is not a JSON number"),
    "a lone surrogate": (b'["\\ud800"]', "$[0]: a lone surrogate is not Unicode text"),
    "not UTF-8": (b'"\xff"', "not UTF-8 at byte 1"),
}


@pytest.mark.parametrize(("text", "reason"), BAD.values(), ids=BAD)
def test_bad_json_is_refused_with_its_place(text, reason, tmp_path, capsys):
    """Exit 2 and one line that starts with the file."""
    path = tmp_path / "bad.json"
    path.write_bytes(text)
    assert main(["hash", str(path)]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"reenact: {path}: {reason}\n")


def test_what_only_jcs_refuses(tmp_path, capsys):
    """The profiles differ in the integers they can hold."""
    path = tmp_path / "big.json"
    path.write_text("[9007199254740993]")
    assert main(["hash", str(path)]) == 0
    assert main(["hash", str(path), "--profile", "jcs"]) == 2
    assert "$[0]: integer 9007199254740993 is beyond" in capsys.readouterr().err


def test_a_bad_file_does_not_hide_the_others(file, tmp_path, capsys):
    """All are tried; the exit status remembers."""
    assert main(["hash", str(tmp_path / "none"), str(file), str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == f"{canonical.digest(VALUE)}  {file}\n"
    assert captured.err == (
        f"reenact: {tmp_path / 'none'}: No such file or directory\nreenact: {tmp_path}: Is a directory\n"
    )


def test_json_reports_bad_files_too(tmp_path, capsys):
    """The same message, in its place in the array."""
    missing = str(tmp_path / "none")
    assert main(["hash", "--json", missing]) == 2
    assert json.loads(capsys.readouterr().out) == [
        {"file": missing, "error": f"{missing}: No such file or directory"}
    ]


@pytest.mark.parametrize("arguments", [[], ["--canonical", "--json", "x"], ["--profile", "md5", "x"]])
def test_wrong_usage(arguments, capsys):
    """Exit 3 before any file is opened."""
    assert main(["hash", *arguments]) == 3
    assert capsys.readouterr().err.endswith("; see: reenact hash --help\n")
