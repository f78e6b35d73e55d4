"""Sealing, publishing, disclosing and verifying on the command line."""

import json
import re
import stat
from contextlib import suppress

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

import reenact
from reenact.cli import main
from reenact.testing import ScriptedProvider, support_agent
from tests.cli.commands import run as run_process
from tests.formats import GOLDEN

LOGS = {name: GOLDEN / "replay_log" / f"{name}.jsonl" for name in ("current", "legacy")}


@reenact.tool
def find_customer(email: str) -> dict[str, str]:
    if email.startswith("nobody"):
        raise LookupError(f"no customer has the address {email}")
    return {"name": "Wilhelmina Vandersloot", "city": "Rotterdam"}


def record(path, *emails):
    with reenact.capture(path) as run:
        for email in emails:
            with suppress(LookupError):
                find_customer(email)
        run.final_output = "Her parcel is on its way."
    return path


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with a recorded run, a pair of keys and a seal."""
    monkeypatch.chdir(tmp_path)
    record("run", "wilhelmina@example.com", "nobody@example.com")
    assert main(["keygen", "-o", "signer"]) == 0
    assert main(["seal", "run", "--key", "signer"]) == 0
    return tmp_path


SEALED = ["--seal", "run.seal.json"]
CHECKED = [*SEALED, "--key", "signer.pub"]


def verified(capsys, *arguments):
    """The exit status of ``reenact verify`` and its report."""
    capsys.readouterr()
    status = main(["verify", *arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)


def codes(report):
    return [finding["code"] for finding in report["findings"]]


def said(capsys):
    return capsys.readouterr().err


def test_the_whole_way_in_processes_of_their_own(tmp_path):
    """Keys, seal, publication, proof and disclosure of the demo's run, as a user and an auditor do it."""
    pytest.importorskip("anthropic")
    provider = ScriptedProvider(support_agent.script(), models=(support_agent.MODEL,))
    with provider, reenact.capture(tmp_path / "run") as run:
        run.final_output = support_agent.answer(support_agent.QUESTION, provider.base_url("anthropic"))
    for words in (
        ["keygen", "-o", "signer"],
        ["seal", "run", "--key", "signer"],
        ["publish", "run", "-o", "published.jsonl", *SEALED],
        ["disclose", "run", "4", *SEALED, "--field", "$.data.args", "-o", "order.json"],
    ):
        done = run_process(*words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    published = (tmp_path / "published.jsonl").read_text()
    for text in ("A-1042", "Rotterdam", "Thursday", "Repetition", "RX-77", "shipped", "bookshop", "sk-ant"):
        assert text not in published
    (tmp_path / "auditor").mkdir()
    for name in ("published.jsonl", "order.json", "run.seal.json", "signer.pub"):
        (tmp_path / name).rename(tmp_path / "auditor" / name)
    for name in ("published.jsonl", "order.json"):
        done = run_process("verify", name, *CHECKED, cwd=tmp_path / "auditor")
        assert done.returncode == 0, done.stdout
    assert '"A-1042"' in done.stdout


def test_secrets_are_for_their_owner_alone(place):
    """The private key and the seal's secret; the others are for everybody."""
    modes = {name: stat.S_IMODE((place / name).stat().st_mode) for name in ("signer", "run.seal.secret")}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((place / "signer.pub").stat().st_mode) & 0o044


def test_a_capture_is_the_one_that_was_sealed(place, capsys):
    """Nothing but the directory, the seal and the key is needed."""
    status, report = verified(capsys, "run", *CHECKED)
    assert (status, report["findings"]) == (0, [])
    assert report["facts"]["sealedEvents"] == report["facts"]["events"]


@pytest.mark.parametrize("policy", ["open", "private", "paranoid"])
def test_a_published_capture_verifies_and_holds_no_private_text(policy, place, capsys):
    """Parameters, results, the final output and the words of errors are gone."""
    assert main(["publish", "run", "-o", "out.jsonl", "--policy", policy, *SEALED]) == 0
    text = (place / "out.jsonl").read_text()
    assert not any(word in text for word in ("Wilhelmina", "wilhelmina", "Rotterdam", "nobody@"))
    assert ("find_customer" in text) is (policy != "paranoid")
    status, report = verified(capsys, "out.jsonl", *CHECKED)
    assert (status, report["findings"]) == (0, [])


@pytest.mark.parametrize("dialect", LOGS)
def test_a_log_can_be_sealed_alone(dialect, place, capsys):
    """In both dialects; the log itself and its publication verify against the seal."""
    assert main(["seal", str(LOGS[dialect]), "--key", "signer", "-o", "log.seal.json"]) == 0
    options = ["--seal", "log.seal.json", "--key", "signer.pub"]
    assert main(["publish", str(LOGS[dialect]), "-o", "out.jsonl", *options[:2]]) == 0
    for path in (str(LOGS[dialect]), "out.jsonl"):
        report = verified(capsys, path, *options)[1]
        assert not [code for code in codes(report) if code.startswith("seal")]
        assert report["facts"]["sealedLines"] == 8


def test_a_capture_is_sealed_from_inside_too(place, monkeypatch):
    """Its seal goes beside it, whatever it is called from there."""
    monkeypatch.chdir(place / "run")
    assert main(["seal", ".", "--key", "../signer", "--force"]) == 0
    assert main(["verify", ".", "--seal", "../run.seal.json", "--key", "../signer.pub"]) == 0
    assert main(["seal", "..", "--key", "../signer"]) == 2


def test_withheld_lines_are_told_and_excuse_what_they_hide(place, capsys):
    """A call without its result is no fault of a log that says so."""
    assert main(["publish", "run", "-o", "out.jsonl", *SEALED, "--withhold", "3", "--withhold", "6"]) == 0
    status, report = verified(capsys, "out.jsonl", *CHECKED)
    assert (status, report["facts"]["withheldLines"]) == (0, [3, 6])
    assert all(finding["severity"] == "warning" for finding in report["findings"])


def test_a_log_is_published_without_a_seal_too(place, capsys):
    """Then it proves nothing, and says nothing of proofs."""
    capsys.readouterr()
    assert main(["publish", "run", "-o", "out.jsonl", "--json"]) == 0
    facts = {
        "output": "out.jsonl",
        "policy": "private",
        "shown": 7,
        "withheld": 0,
        "seal": None,
        "files": None,
    }
    assert json.loads(capsys.readouterr().out) == facts
    assert '"seal"' not in (place / "out.jsonl").read_text()
    assert verified(capsys, "out.jsonl")[0] == 0
    assert codes(verified(capsys, "out.jsonl", *CHECKED)[1]) == ["seal_foreign"]


def test_a_proof_tells_the_place_and_nothing_else(place, capsys):
    """Of an event of the capture, or of a line of its log."""
    for words in (["prove", "run", "3"], ["prove", "run", "3", "--log"]):
        assert main([*words, *SEALED, "-o", "proof.json", "--force"]) == 0
        status, report = verified(capsys, "proof.json", *CHECKED)
        assert (status, report["facts"]["position"], report["facts"]["disclosed"]) == (0, 3, {})


def test_a_disclosure_can_go_to_stdout(place, capsys):
    """For a pipe."""
    capsys.readouterr()
    assert main(["disclose", "run", "2", *SEALED, "--field", "$.data.args"]) == 0
    (place / "d.json").write_text(capsys.readouterr().out)
    status, report = verified(capsys, "d.json", *CHECKED)
    assert (status, report["facts"]["disclosed"]) == (0, {"$.data.args.email": "wilhelmina@example.com"})


def test_a_seal_alone_is_verified_by_its_key(place, capsys):
    """Whether it was signed with it, and what it covers."""
    status, report = verified(capsys, "run.seal.json", "--key", "signer.pub")
    assert (status, report["facts"]["sealedEvents"], report["facts"]["sealedLines"]) == (0, 6, 7)


# What does not agree: exit status 1


def change(path, old, new):
    text = path.read_bytes()
    assert old in text
    path.write_bytes(text.replace(old, new, 1))


def test_changed_events_are_found_out(place, capsys):
    """Beside what the capture says of itself."""
    change(place / "run" / "events.jsonl", b"wilhelmina@", b"wilhelmine@")
    status, report = verified(capsys, "run", *CHECKED)
    assert status == 1
    assert {"events_changed", "seal_events"} <= set(codes(report))


def test_a_manifest_changed_with_its_digests_is_found_out(place, capsys):
    """Who can change the capture can make it agree with itself, but not with the seal."""
    from reenact.formats.capture import read_manifest, write_manifest

    file = place / "run" / "manifest.json"
    change(file, b'"status":"ok"', b'"status": "ok"')
    manifest = read_manifest(file.read_bytes(), file="m")
    file.write_bytes(write_manifest(manifest).replace(b'"createdAt":1', b'"createdAt": 1'))
    assert codes(verified(capsys, "run")[1]) == []
    status, report = verified(capsys, "run", *CHECKED)
    assert (status, codes(report)) == (1, ["seal_manifest"])


def test_a_seal_from_another_run_is_found_out(place, capsys):
    """Its run is named."""
    record("other", "someone@example.com")
    assert main(["publish", "run", "-o", "out.jsonl", *SEALED]) == 0
    assert main(["seal", "other", "--key", "signer"]) == 0
    options = ["--seal", "other.seal.json", "--key", "signer.pub"]
    status, report = verified(capsys, "run", *options)
    assert (status, codes(report)) == (1, ["seal_foreign"])
    assert "the seal is for run run_" in report["findings"][0]["message"]
    assert codes(verified(capsys, "out.jsonl", *options)[1]) == ["seal_leaves"]
    for verb in (
        ["publish", "run", "-o", "x"],
        ["prove", "run", "1"],
        ["disclose", "run", "1", "--field", "$.ts"],
    ):
        assert main([*verb, *options[:2]]) == 1
        assert said(capsys) == (
            "reenact: other.seal.json: is not the seal of run; name the seal that was made for it\n"
        )


def test_a_secret_of_another_seal_is_found_out(place, capsys):
    """Before anything is written."""
    record("other", "someone@example.com")
    assert main(["seal", "other", "--key", "signer"]) == 0
    capsys.readouterr()
    assert main(["publish", "run", "-o", "out.jsonl", *SEALED, "--secret", "other.seal.secret"]) == 1
    assert said(capsys) == "reenact: other.seal.secret: is not the secret of this seal, or was changed\n"
    assert not (place / "out.jsonl").exists()


def test_another_key_is_found_out(place, capsys):
    """Both keys are named, and nothing else is believed."""
    assert main(["keygen", "-o", "other"]) == 0
    status, report = verified(capsys, "run", *SEALED, "--key", "other.pub")
    assert (status, codes(report)) == (1, ["seal_signature"])
    assert "is signed with another key: sha256:" in report["findings"][0]["message"]


def test_a_changed_seal_is_found_out(place, capsys):
    """One character of what was signed."""
    file = place / "run.seal.json"
    envelope = json.loads(file.read_bytes())
    flipped = "A" if envelope["payload"][40] != "A" else "B"
    envelope["payload"] = envelope["payload"][:40] + flipped + envelope["payload"][41:]
    file.write_text(json.dumps(envelope))
    status, report = verified(capsys, "run", *CHECKED)
    assert (status, codes(report)) == (1, ["seal_signature"])


# What cannot be read: exit status 2; wrong usage: 3


def rsa_pair(place):
    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (place / "rsa").write_bytes(private)
    (place / "rsa.pub").write_bytes(public)


def test_keys_of_the_wrong_kind_are_refused(place, capsys):
    """One line each, with the remedy."""
    rsa_pair(place)
    capsys.readouterr()
    assert main(["seal", "run", "--key", "rsa", "-o", "x.seal.json"]) == 2
    assert said(capsys).startswith("reenact: rsa: is a key of another kind (RSA); seals take Ed25519")
    assert main(["seal", "run", "--key", "signer.pub", "-o", "x.seal.json"]) == 2
    assert said(capsys) == "reenact: signer.pub: is a public key; signing takes the private one\n"
    assert main(["verify", "run", *SEALED, "--key", "rsa.pub"]) == 2
    assert said(capsys).startswith("reenact: rsa.pub: is a key of another kind (RSA)")
    assert main(["verify", "run", *SEALED, "--key", "signer"]) == 2
    assert said(capsys).startswith("reenact: signer: is a private key")
    assert not (place / "x.seal.json").exists()


REFUSED = {
    "verify without the key": (
        ["verify", "run", *SEALED],
        3,
        "run: is verified with a seal and its key; add --key FILE, the",
    ),
    "verify without the seal": (
        ["verify", "run", "--key", "signer.pub"],
        3,
        "run: is verified with a seal and its key; add --seal FILE",
    ),
    "a disclosure without a seal": (
        ["verify", "d.json"],
        3,
        "d.json: is verified with a seal and its key; add",
    ),
    "a bundle has no seal": (
        ["verify", "b.json", *CHECKED],
        3,
        "b.json: a bundle has no seal; captures and logs",
    ),
    "a seal that is none": (
        ["verify", "run", "--seal", "signer", "--key", "signer.pub"],
        2,
        "signer: not JSON",
    ),
    "a seal that is not there": (
        ["verify", "run", "--seal", "x", "--key", "signer.pub"],
        2,
        "x: No such file",
    ),
    "no secret": (
        ["publish", "run", "-o", "out", *SEALED, "--secret", "x"],
        2,
        "x: there is no such file; name the secret of the seal with --secret",
    ),
    "a secret without a seal": (
        ["publish", "run", "-o", "out", "--secret", "x"],
        3,
        "--secret belongs to a seal",
    ),
    "publishing over a file": (
        ["publish", "run", "-o", "signer"],
        3,
        "signer: exists already; name another, or add",
    ),
    "publishing over a directory": (
        ["publish", "run", "-o", "run", "--force"],
        3,
        "run: exists already; name a file",
    ),
    "sealing again": (
        ["seal", "run", "--key", "signer"],
        3,
        "run.seal.secret: exists already; name another, or add",
    ),
    "a key that is a directory": (["keygen", "-o", "."], 3, ".: exists already; name a file in it"),
    "a new key over an old one": (
        ["keygen", "-o", "signer"],
        3,
        "signer: exists already; name another, or add",
    ),
    "publishing what is no log": (["publish", "signer", "-o", "out"], 2, "signer:1: not JSON"),
    "publishing what is not there": (["publish", "nowhere", "-o", "out"], 2, "nowhere: No such file"),
    "sealing what is not there": (["seal", "nowhere", "--key", "signer"], 2, "nowhere: No such file"),
    "disclosing from what is not there": (
        ["disclose", "nowhere", "2", *SEALED, "--field", "$.data.args"],
        2,
        "nowhere: No such file",
    ),
    "proving what is not there": (["prove", "nowhere", "2", *SEALED], 2, "nowhere: No such file"),
    "withholding a line there is not": (
        ["publish", "run", "-o", "out", "--withhold", "99"],
        3,
        "there is no line 99 to withhold: the log has 7",
    ),
    "withholding the header": (["publish", "run", "-o", "out", "--withhold", "1"], 3, "Invalid value for"),
    "an event there is not": (["prove", "run", "99", *SEALED], 3, "there is no 99: 6 events were sealed"),
    "a line there is not": (
        ["prove", "run", "99", "--log", *SEALED],
        3,
        "there is no 99: 7 lines were sealed",
    ),
    "a field there is not": (
        ["disclose", "run", "2", *SEALED, "--field", "$.data.x"],
        3,
        "the event has no field '$.data.x'; it has $.captureId, $.data.args.email",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_refused_in_one_line(name, place, capsys):
    """With its place, its remedy and its exit status, and nothing is written."""
    words, status, message = REFUSED[name]
    (place / "d.json").write_text('{"disclosure": 1}')
    (place / "b.json").write_text('{"scenario": 1, "script": 1}')
    before = sorted(place.iterdir())
    capsys.readouterr()
    assert main(words) == status
    line = said(capsys)
    assert line.startswith(f"reenact: {message}")
    assert line.count("\n") == 1
    assert sorted(place.iterdir()) == before


def test_what_was_done_is_told_as_json(place, capsys):
    """Names of files, counts and the key, for scripts."""
    capsys.readouterr()
    assert main(["keygen", "-o", "other", "--json"]) == 0
    key = json.loads(capsys.readouterr().out)
    assert (key["private"], key["public"]) == ("other", "other.pub")
    assert main(["seal", "run", "--key", "other", "-o", "x.seal.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "seal": "x.seal.json",
        "secret": "x.seal.secret",
        "events": 6,
        "lines": 7,
        "key": key["key"],
    }


def test_force_replaces_what_is_there(place):
    """Seal and secret together, so that they stay a pair."""
    before = (place / "run.seal.secret").read_bytes()
    assert main(["seal", "run", "--key", "signer", "--force"]) == 0
    assert (place / "run.seal.secret").read_bytes() != before
    assert main(["publish", "run", "-o", "out.jsonl", *SEALED]) == 0
    assert main(["publish", "run", "-o", "out.jsonl", *SEALED, "--force"]) == 0
    assert main(["verify", "out.jsonl", *CHECKED]) == 0


@pytest.mark.parametrize("is_sealed", [False, True])
def test_an_open_log_tells_nothing_of_outputs_in_its_summary(is_sealed, tmp_path, monkeypatch):
    """What a tool returned is never published, and a summary likes to repeat it."""
    monkeypatch.chdir(tmp_path)
    with reenact.capture("run") as run:
        found = find_customer("wilhelmina@example.com")
        run.final_output = f"{found['name']} lives in {found['city']}; her parcel is on its way."
    seal = []
    if is_sealed:
        assert main(["keygen", "-o", "signer"]) == 0
        assert main(["seal", "run", "--key", "signer"]) == 0
        seal = ["--seal", "run.seal.json"]
    assert main(["publish", "run", "-o", "log.jsonl", "--policy", "open", *seal]) == 0
    text = (tmp_path / "log.jsonl").read_text()
    assert "parcel is on its way" in text
    assert not {"Wilhelmina", "Vandersloot", "Rotterdam"} & set(re.findall(r"\w+", text))
