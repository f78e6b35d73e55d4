"""``reenact verify`` on the command line: what is printed, and the exit status."""

import json

import pytest

import reenact
from tests.cli.commands import run
from tests.formats import GOLDEN

CURRENT = GOLDEN / "replay_log" / "current.jsonl"
LEGACY = GOLDEN / "replay_log" / "legacy.jsonl"
RECEIPT = GOLDEN / "receipt" / "current.json"


def test_a_good_log_and_its_receipt(tmp_path):
    """The verdict first, then what was looked at."""
    done = run("verify", CURRENT, "--receipt", RECEIPT, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    first, *facts = done.stdout.splitlines()
    assert first == f"good: the replay log {CURRENT} is valid, and agrees with {RECEIPT}"
    assert facts == [
        "  events         8",
        "  tool calls     2",
        "  results        2",
        "  total latency  127.5 ms",
    ]


def test_many_findings_of_a_kind_are_counted(tmp_path):
    """People see ten of them; programs see all."""
    lines = CURRENT.read_bytes().splitlines(keepends=True)
    (tmp_path / "log.jsonl").write_bytes(b"".join([lines[0], *[b"x\n"] * 1200, *lines[1:]]))
    done = run("verify", "log.jsonl", "--lenient", cwd=tmp_path)
    assert done.stdout.startswith("bad: the replay log log.jsonl has 1,200 errors\n")
    assert done.stdout.count("error    log.jsonl:") == 10
    assert "… and 1,190 more [line_unreadable]; --json lists them all" in done.stdout
    report = json.loads(run("verify", "log.jsonl", "--lenient", "--json", cwd=tmp_path).stdout)
    assert len(report["findings"]) == 1200


def test_every_finding_has_line_code_and_severity(tmp_path):
    """For people and, with --json, for programs."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(CURRENT.read_bytes().replace(b'"path":"src/auth.rs"', b'"path":"src/eve.rs"'))
    done = run("verify", log, "--receipt", RECEIPT, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("bad: the replay log ")
    assert "\n\nerror    log.jsonl:5: params have sha256:" in done.stdout
    report = json.loads(run("verify", log, "--json", cwd=tmp_path).stdout)
    assert report["good"] is False
    (finding,) = report["findings"]
    assert (finding["code"], finding["line"], finding["severity"]) == ("params_hash", 5, "error")


def test_two_logs_are_compared(tmp_path):
    """The same calls in another dialect agree; other calls do not."""
    run("convert", CURRENT, "--to", "replay-log-legacy", "-o", "other.jsonl", cwd=tmp_path)
    same = run("verify", CURRENT, "--against", "other.jsonl", cwd=tmp_path)
    assert same.returncode == 0
    other = run("verify", CURRENT, "--against", LEGACY, cwd=tmp_path)
    assert (other.returncode, "[call_missing]" in other.stdout) == (1, True)


def test_broken_lines_are_all_reported(tmp_path):
    """And with --lenient the rest is checked as well."""
    lines = CURRENT.read_bytes().splitlines(keepends=True)
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join([*lines[:2], b"x\n", *lines[2:4], b"y\n", *lines[5:]]))
    strict, lenient = (run("verify", log, *words, cwd=tmp_path) for words in ((), ("--lenient",)))
    for done in (strict, lenient):
        assert done.returncode == 1
        assert done.stdout.count("[line_unreadable]") == 2
    assert "[not_checked]" in strict.stdout
    assert "log.jsonl:7: no earlier call is 'step-2' [result_without_call]" in lenient.stdout


def test_what_a_file_says_cannot_steer_the_terminal(tmp_path):
    """Names from an artifact are printed with their control characters spelled out."""
    receipt = json.loads(RECEIPT.read_bytes()) | {"session_id": "\x1b[2J"}
    (tmp_path / "r.json").write_text(json.dumps(receipt))
    done = run("verify", "r.json", cwd=tmp_path)
    assert (done.returncode, "\x1b" in done.stdout, "\\x1b[2J" in done.stdout) == (0, False, True)


def test_processes_change_nothing_but_the_time(tmp_path):
    """Asked for by number."""
    one, two = (run("verify", LEGACY, "--json", "-j", number, cwd=tmp_path) for number in (1, 2))
    assert (one.stdout, one.returncode) == (two.stdout, two.returncode)


def test_a_capture_and_its_replay_receipt(tmp_path):
    """A receipt speaks of one recording only."""
    for name in ("one", "two"):
        with reenact.capture(tmp_path / name) as run_:
            run_.clock.now()
    with reenact.replay(tmp_path / "one") as run_:
        run_.clock.now()
    (tmp_path / "receipt.json").write_text(json.dumps(receipt_json(run_.receipt)))
    good, wrong = (run("verify", name, "--receipt", "receipt.json", cwd=tmp_path) for name in ("one", "two"))
    assert (good.returncode, wrong.returncode) == (0, 1)
    assert "[receipt_differs]" in wrong.stdout


def receipt_json(receipt):
    from reenact.formats.replay_receipt import receipt_codec

    return receipt_codec.to_json(receipt)


WRONG = {
    "nothing there": (["nowhere"], 2, "nowhere: No such file or directory"),
    "no capture": (["."], 2, "name a capture directory"),
    "no artifact": (["a.json"], 2, "a.json: is not an artifact that reenact knows"),
    "no JSON": (["a.txt"], 2, "a.txt: not JSON"),
    "an empty log": (["empty.jsonl"], 2, "is not a REPLAY.jsonl"),
    "no receipt there": ([CURRENT, "--receipt", "nowhere"], 2, "nowhere: No such file"),
    "a receipt that is none": ([CURRENT, "--receipt", "a.json"], 2, "a.json: is not an artifact"),
    "a receipt of something else": ([CURRENT, "--receipt", CURRENT], 3, "a log has a RECEIPT.json"),
    "a receipt for a receipt": ([RECEIPT, "--receipt", RECEIPT], 3, "is not the receipt of a receipt"),
    "no log to compare": ([CURRENT, "--against", RECEIPT], 3, "is not a log that can be compared"),
    "no path": ([], 3, "Missing argument 'PATH'"),
    "two paths": ([CURRENT, LEGACY], 3, "unexpected extra argument"),
    "jobs that are no number": ([CURRENT, "-j", "all"], 3, "not a valid integer"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_gets_one_clear_line(name, tmp_path):
    """And the exit status that its kind has everywhere."""
    words, status, message = WRONG[name]
    (tmp_path / "a.json").write_text('{"x": 1}')
    (tmp_path / "a.txt").write_text("words")
    (tmp_path / "empty.jsonl").touch()
    done = run("verify", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (status, 1, "")
    assert message in done.stderr
