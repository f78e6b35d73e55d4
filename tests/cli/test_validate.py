"""``reenact validate``: accepted, rejected, unreadable; files, lines, directories; records, policies."""

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from reenact._version import __version__
from reenact.check.actions.action import ACTION
from reenact.check.actions.record import check_pack, check_record
from reenact.cli import main
from tests.formats import GOLDEN, ROOT

MINIMAL, FULL = (
    vector["subject"]
    for vector in json.loads((GOLDEN / "vectors" / "ai.agent.action-v0.json").read_bytes())["vectors"]
)
EXAMPLES = ROOT / "examples" / "actions"
DENY_ALL = "schema_version: 1\nrules: []\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a value, or lines of them, and names the file; the directory is the current one."""
    monkeypatch.chdir(tmp_path)

    def write(name, *values):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        lines = (value if isinstance(value, str) else json.dumps(value) for value in values)
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return name

    return write


def test_an_accepted_action(write, capsys):
    """Exit 0 and one line that shows what it was."""
    assert main(["validate", write("a.json", FULL)]) == 0
    assert capsys.readouterr().out == (
        "a.json:1: accepted (anthropic/claude-3-5-sonnet/20250101, 2 messages, 1 tool call)\n"
    )


def test_a_rejected_action(write, capsys):
    """Exit 1 and every problem with code and place."""
    assert (
        main(["validate", write("a.json", json.dumps({**MINIMAL, "agent_id": "", "x\n": 1}, indent=1))]) == 1
    )
    assert capsys.readouterr().out.splitlines() == [
        "a.json: rejected",
        "  unexpected_field      x\\n: no such field; remove it",
        "  empty_field           agent_id: must not be empty",
    ]


def test_many_problems_are_cut_for_people(write, capsys):
    """But not for programs."""
    name = write("a.json", {f"x{number}": 1 for number in range(20)})
    assert main(["validate", name]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "  and 17 more; --json lists them all"
    assert main(["validate", "--json", name]) == 1
    assert len(json.loads(capsys.readouterr().out)["results"][0]["problems"]) == 27


def test_many_bad_values_are_counted_for_people(write, capsys):
    """Whether rejected or unreadable; the summary stands behind them."""
    name = write("a.jsonl", *[{**MINIMAL, "agent_id": ""}] * 30, *["{"] * 5)
    assert main(["validate", name]) == 2
    out, err = capsys.readouterr()
    assert (out.count(": rejected\n"), err) == (20, "")
    assert "… and 15 more that did not pass; --json lists them all\n35 checked: 0 accepted, 30" in out


BAD = {
    "not JSON": (b'{"a": }', "a.json:1: not JSON: Expecting value at column 7"),
    "not JSON further down": (b'{\n "a": }', "a.json: not JSON: Expecting value at line 2 column 7"),
    "not UTF-8": (b'"\xff"', "a.json: not UTF-8 at byte 1"),
    "a repeated key": (b'{"a": 1, "a": 2}', "a.json: $: the key 'a' appears twice"),
    "NaN": (b"[NaN]", "a.json: not JSON: NaN is not a JSON number"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_what_is_no_json_is_unreadable(text, message, tmp_path, monkeypatch, capsys):
    """Exit 2 and one line with the place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_bytes(text)
    assert main(["validate", "a.json"]) == 2
    assert capsys.readouterr() == ("", f"reenact: {message}\n")


@pytest.mark.parametrize("value", ["null", "5", '"x"', "[]", "true", "{}"])
def test_any_json_value_is_judged(value, write, capsys):
    """JSON that is no action is rejected, not unreadable."""
    assert main(["validate", write("a.json", value)]) == 1
    assert capsys.readouterr().err == ""


def test_lines_are_counted(write, capsys):
    """What is wrong by line, then the counts by problem and by model."""
    name = write("day.jsonl", MINIMAL, {**MINIMAL, "output": {}}, "{", FULL, [])
    assert main(["validate", name]) == 2
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "day.jsonl:2: rejected",
        "  empty_output          output: has neither content nor tool_calls; an action needs one of them",
        "day.jsonl:5: rejected",
        "  invalid_type          the value: must be an object, not an array",
        "  empty_output          output: has neither content nor tool_calls; an action needs one of them",
        "5 checked: 2 accepted, 2 rejected, 1 unreadable",
        "problems  empty_output 2, invalid_type 1",
        "models    p/m 2, anthropic/claude-3-5-sonnet/20250101 1",
    ]
    assert err.startswith("reenact: day.jsonl:3: not JSON: ")


def test_all_good_lines_give_the_counts_alone(write, capsys):
    """Exit 0."""
    assert main(["validate", write("day.jsonl", MINIMAL, MINIMAL)]) == 0
    assert capsys.readouterr().out == ("2 checked: 2 accepted, 0 rejected, 0 unreadable\nmodels    p/m 2\n")


def test_models_beyond_ten_are_counted_together(write, capsys):
    """The largest are named."""
    models = [{"provider": "p", "name": str(number)} for number in range(12)]
    name = write("day.jsonl", *({**MINIMAL, "model": model} for model in [*models, models[5]]))
    assert main(["validate", name]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("models    p/5 2, p/0 1, ")
    assert line.endswith(", and 2 more")


def test_a_directory_is_searched(write, capsys):
    """Every JSON file below it, in the order of their paths; others are passed over."""
    write("in/b.json", [])
    write("in/a/x.jsonl", MINIMAL, [])
    write("in/a/notes.txt", "hello")
    assert main(["validate", "in"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith("rejected")] == [
        "in/a/x.jsonl:2: rejected",
        "in/b.json:1: rejected",
    ]
    assert "3 checked: 1 accepted, 2 rejected, 0 unreadable" in lines


def test_a_directory_without_json_is_unreadable(write, capsys):
    """Nothing was proved."""
    write("in/notes.txt", "hello")
    assert main(["validate", "in"]) == 2
    assert capsys.readouterr().err == "reenact: in: holds no file that ends in .json or .jsonl or .ndjson\n"


def test_a_missing_file_does_not_hide_the_others(write, capsys):
    """All are judged; the exit status remembers."""
    assert main(["validate", "none.json", write("a.json", MINIMAL)]) == 2
    out, err = capsys.readouterr()
    assert "2 checked: 1 accepted, 0 rejected, 1 unreadable" in out
    assert err == "reenact: none.json: No such file or directory\n"


def test_standard_input_is_a_dash(monkeypatch, capsys):
    """One value or many."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(FULL, indent=1).encode())))
    assert main(["validate", "-"]) == 0
    assert capsys.readouterr().out.startswith("-: accepted (anthropic/")


def test_json_is_one_object(write, capsys):
    """Each result as the library gives it, and the summary."""
    name = write("day.jsonl", MINIMAL, [], "{")
    assert main(["validate", "--json", name]) == 2
    document = json.loads(capsys.readouterr().out)
    good, bad, unreadable = document["results"]
    assert good == {"file": name, "line": 1, **msgspec.to_builtins(ACTION.execute(MINIMAL))} | {
        "problems": []
    }
    assert [problem["code"] for problem in bad["problems"]] == ["invalid_type", "empty_output"]
    assert (unreadable["line"], unreadable["status"]) == (3, "unreadable")
    assert unreadable["error"].startswith("day.jsonl:3: not JSON")
    assert (document["summary"]["count"], document["summary"]["models"]) == (3, {"p/m": 1})


# Records


def test_records_are_printed_alone(write, capsys):
    """One line each, that verify; words go to stderr."""
    name = write("day.jsonl", MINIMAL, [], FULL)
    assert main(["validate", "--record", name]) == 1
    out, err = capsys.readouterr()
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["subject"] for record in records] == [MINIMAL, FULL]
    assert all(check_record(record).is_ok for record in records)
    assert records[0]["producer"] == {"name": "reenact", "version": __version__}
    assert "day.jsonl:2: rejected" in err
    assert err.splitlines()[-1] == f"pack      {check_pack(records).digest}"


def test_a_number_without_a_record_is_rejected(write, capsys):
    """Not accepted and then impossible."""
    action = {**MINIMAL, "params": {"seed": 2**53 + 1}}
    assert main(["validate", "--record", write("a.json", action)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "params.seed: is an integer that no double holds" in err


def test_what_javascript_writes_of_a_large_number_is_read(write, capsys):
    """An integer of more than 64 bits that is the text of a double."""
    action = {**MINIMAL, "params": {"seed": 0}}
    name = write("a.json", action)
    file = Path(name)
    file.write_text(file.read_text().replace('"seed": 0', '"seed": 123456789012345680000'))
    assert main(["validate", "--record", name]) == 0
    assert check_record(json.loads(capsys.readouterr().out)).is_ok


def test_records_in_json(write, capsys):
    """Beside each result; the pack in the summary."""
    assert main(["validate", "--record", "--json", write("a.json", MINIMAL)]) == 0
    document = json.loads(capsys.readouterr().out)
    record = document["results"][0]["record"]
    assert check_record(record).is_ok
    assert document["summary"]["pack"] == check_pack([record]).digest


# Policies


def test_a_policy_that_allows(capsys):
    """Exit 0."""
    assert main(["validate", "--policy", str(EXAMPLES / "policy.yaml"), str(EXAMPLES / "triage.json")]) == 0
    assert ": accepted (" in capsys.readouterr().out


def test_a_policy_that_does_not(capsys):
    """Exit 1; each refusal with its rule and reason, and counts by verdict."""
    assert main(["validate", "--policy", str(EXAMPLES / "policy.yaml"), str(EXAMPLES / "day.jsonl")]) == 1
    lines = [line.replace(f"{EXAMPLES}{os.sep}", "") for line in capsys.readouterr().out.splitlines()]
    assert "day.jsonl:3: up for review by large-refunds: refund: a person looks at refunds above 50" in lines
    assert "day.jsonl:4: denied by default: run_shell: no rule names this call" in lines
    assert lines[-1] == "policy    allow 3, deny 2, review 1"


def test_only_what_the_policy_allows_is_recorded(write, capsys):
    """A record says that the action passed."""
    policy = write("policy.yaml", DENY_ALL + "models: {allow: [p/*]}\n")
    assert main(["validate", "--record", "--policy", policy, write("day.jsonl", MINIMAL, FULL)]) == 1
    assert [json.loads(line)["subject"] for line in capsys.readouterr().out.splitlines()] == [MINIMAL]


def test_json_has_the_decision(write, capsys):
    """As the library gives it."""
    assert (
        main(["validate", "--json", "--policy", write("policy.yaml", DENY_ALL), write("a.json", FULL)]) == 1
    )
    document = json.loads(capsys.readouterr().out)
    reason = "route_to_team: no rule names this call"
    assert document["results"][0]["policy"] == {"verdict": "deny", "rule": "default", "reason": reason}
    assert document["summary"]["verdicts"] == {"deny": 1}


def test_a_policy_at_fault_stops_everything(write, capsys):
    """Nothing is judged by half a policy."""
    policy = write("policy.yaml", "schema_version: 1\nrules:\n- {id: a, verdict: allow}\n")
    assert main(["validate", "--policy", policy, write("a.json", MINIMAL)]) == 2
    assert capsys.readouterr() == ("", "reenact: policy.yaml:3: $.rules[0].tools: required, but missing\n")


USAGE = {
    "no file": [],
    "an unknown capsule": ["--capsule", "x", "a.json"],
    "records of another capsule": ["--capsule", "x", "--record", "a.json"],
    "a policy for another capsule": ["--capsule", "x", "--policy", "p.yaml", "a.json"],
}


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage(name, capsys):
    """Exit 3 before any file is opened."""
    assert main(["validate", *USAGE[name]]) == 3
    assert capsys.readouterr().out == ""


def test_a_long_file_shows_a_bar_on_a_terminal_only(tmp_path):
    """Stdout holds the results alone."""
    large = json.dumps({**MINIMAL, "context": "x" * 1024 * 1024})
    (tmp_path / "large.jsonl").write_text(f"{large}\n" * 17)
    terminal, side = pty.openpty()
    program = [sys.executable, "-m", "reenact", "validate", str(tmp_path / "large.jsonl")]
    done = subprocess.run(program, stdout=subprocess.PIPE, stderr=side, check=True)
    os.close(side)
    assert done.stdout == b"17 checked: 17 accepted, 0 rejected, 0 unreadable\nmodels    p/m 17\n"
    assert b"validating" in os.read(terminal, 100_000)
    os.close(terminal)
    quiet = subprocess.run(program, capture_output=True, check=True)
    assert (quiet.stdout, quiet.stderr) == (done.stdout, b"")
