"""What is published is what the policy allows, and no word of anything else."""

import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact import canonical
from reenact.check.publishing import KINDS, POLICIES, WITHHELD, Publisher, without_users
from reenact.formats.dialects import DIALECTS, current, legacy
from reenact.formats.replay_log import read_replay_log
from tests.check.sealed_logs import DIALECT_NAMES, SEED, golden_log
from tests.formats import law


def events_of(lines):
    text = b"".join(canonical.encode(line) + b"\n" for line in lines)
    return [event for _, event in read_replay_log(io.BytesIO(text), file="log")]


def publish(lines, dialect, policy, seed=SEED):
    """The lines of a log as *policy* publishes them."""
    events = events_of(lines)
    publisher = Publisher(events, DIALECTS[dialect], seed)
    return [publisher.publish(event, policy) for event in events]


def golden_lines(dialect):
    return [json.loads(line) for line in golden_log(dialect).splitlines()]


HEADER = {"type": "ReplayHeader", "created_at": "2026-02-15T00:00:01Z", "producer": "p", "replay_version": 1}
FAILED = {
    "type": "ToolResult",
    "step_id": "step-1",
    "ok": False,
    "output_hash": "sha256:00",
    "latency_ms": 3,
    "side_effects": ["fs_read", "custom"],
    "error": {"name": "NotFound", "message": "Error in /Users/alice/project/src/main.rs:42", "stack": "at x"},
}
VERIFIED = {"type": "Verification", "command": "cargo test --token ghp_0123456789abcdefghij", "exit_code": 0}


def result(policy, **members):
    return publish([HEADER, FAILED | members], "current", policy)[1]


def test_open_keeps_texts_without_users_and_credentials():
    """The path policy and the shapes of secrets apply to what stays."""
    assert result("open")["error"] == {
        "name": "NotFound",
        "message": "Error in /workspace/project/src/main.rs:42",
        "stack": "at x",
    }
    command = publish([HEADER, VERIFIED], "current", "open")[1]["command"]
    assert re.fullmatch(r"cargo test --token <secret:github-token:[0-9a-f]{8}>", command)


def test_private_keeps_names_and_hashes_only():
    """A text that the format requires says that it is withheld; others are gone."""
    line = result("private")
    assert line["error"] == {"name": "NotFound", "message": WITHHELD}
    assert (line["output_hash"], line["side_effects"]) == ("sha256:00", ["fs_read", "custom"])


def test_paranoid_blinds_names_and_hashes():
    """Equal ones stay equal within a log, differ between logs, and the format's own words stay."""
    line = result("paranoid")
    assert line["error"]["message"] == WITHHELD
    assert re.fullmatch("name-[0-9a-f]{16}", line["step_id"])
    assert re.fullmatch("hmac-sha256:[0-9a-f]{64}", line["output_hash"])
    assert line["side_effects"][0] == "fs_read"
    assert line["side_effects"][1].startswith("name-")
    assert line == result("paranoid")
    other = publish([HEADER, FAILED], "current", "paranoid", seed=SEED[::-1])[1]
    assert not {other["step_id"], other["output_hash"]} & {line["step_id"], line["output_hash"]}


def test_a_guess_at_parameters_cannot_be_checked_under_paranoid():
    """Their hash alone would tell which of few values they had."""
    lines = golden_lines("current")
    text = json.dumps(publish(lines, "current", "paranoid"))
    guesses = [line["params_hash"] for line in lines if "params_hash" in line]
    assert guesses
    assert not any(guess.partition(":")[2] in text for guess in guesses)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("dialect", DIALECT_NAMES)
def test_what_is_published_is_a_log(dialect, policy):
    """Readers take it; parameters are nowhere; no line is lost."""
    lines = publish(golden_lines(dialect), dialect, policy)
    assert len(events_of(lines)) == len(golden_lines(dialect))
    assert b'"params":' not in canonical.encode(lines)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_nobody_knows_stays_at_home(policy):
    """Unknown members anywhere, and unknown events whole."""
    odd = FAILED | {"output": "raw", "event": "raw", "error": FAILED["error"] | {"cause": "raw"}}
    published = publish([HEADER, odd, {"type": "Thought", "text": "raw"}], "current", policy)
    assert published[2] is None
    assert b"raw" not in canonical.encode(published)


def test_derived_calls_say_so():
    """Nobody saw them happen, which a reader must know."""
    call = {"type": "ToolCall", "step_id": "s", "tool": "t", "params_hash": "h", "derived": True}
    assert publish([HEADER, call], "current", "paranoid")[1]["derived"] is True
    assert "derived" not in publish([HEADER, call | {"derived": "a text"}], "current", "open")[1]


def test_an_error_that_repeats_its_parameters_is_masked():
    """Also where the parameters stand in another line, and also parts of them; names of tools stay."""
    call = {
        "type": "ToolCall",
        "step_id": "step-1",
        "tool": "read_report",
        "params": {"file": "q3 acquisition-of-initech.xlsx", "with": "read_report", "pin": 123456789},
        "params_hash": "sha256:00",
    }
    error = {"name": "NotFound", "message": "read_report: acquisition-of-initech.xlsx: no (pin 123456789)"}
    published = publish([HEADER, FAILED | {"error": error}, call], "current", "open")
    assert published[1]["error"]["message"] == "read_report: …: no (pin …)"


PATHS = {
    "Error in /Users/alice/project/src/main.rs:42": "Error in /workspace/project/src/main.rs:42",
    "/home/bob/x and /home/eve/y": "/workspace/x and /workspace/y",
    r"C:\Users\Ann Lee\code\a.py": r"/workspace/code\a.py",
    r"d:\\Users\\ann\\a.py": r"/workspace/a.py",
    "/var/folders/zz/zyxvpxvq6csfxvn_n0/T/x": "/tmp/T/x",
    "cd /home/bob": "cd /workspace/",
    '"/home/bob"': '"/workspace/"',
    "/usr/home/bob/x": "/usr/workspace/x",
    "/srv/app": "/srv/app",
}


@pytest.mark.parametrize("text", PATHS)
def test_paths_name_no_people(text):
    """Homes are workspaces, private temporary folders are /tmp/."""
    assert without_users(text) == PATHS[text]
    assert without_users(PATHS[text]) == PATHS[text]


def test_every_member_of_both_dialects_has_a_kind():
    """A new member is judged before it is published."""
    kept = {"extra", "params", "error", "repo"}
    for dialect in (current, legacy):
        for kind in (*dialect._Kinds.__args__, dialect.ReplayHeader):
            assert set(kind.__struct_fields__) - kept <= KINDS.keys()


# Letters beyond f: no hash can hold such a word by chance.
words = st.text("ghijklmnopqrstuvwxyz", min_size=8, max_size=12)
sentences = st.lists(words | st.sampled_from(["in", "at", "/", "é"]), max_size=4).map(" ".join)
private_values = st.recursive(
    sentences | st.builds("-".join, st.lists(words, min_size=1, max_size=2)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=3,
)
params = st.dictionaries(words, private_values, min_size=1, max_size=3)


@st.composite
def private_logs(draw):
    """A log with private words in its parameters, texts, unknown members and unknown events."""
    values = [draw(params) for _ in range(3)]
    said = " ".join(re.findall(r"\w+", json.dumps(values)))
    call = {
        "type": "ToolCall",
        "step_id": "step-1",
        "tool": "search",
        "params": values[0],
        "params_hash": "h",
    }
    error = {"name": "E", "message": f"{draw(sentences)}: {said}", "stack": said, "why": values[1]}
    ended = {"type": "SessionEnd", "status": "failure", "confidence": 0.5, "summary": said}
    lines = [HEADER, call, FAILED | {"error": error}, {"type": "Odd", "x": values[2]}, ended | values[1]]
    return lines, values


@law
@given(private_logs(), st.sampled_from(POLICIES))
def test_no_word_of_a_removed_value_survives(log, policy):
    """Of eight or more characters, anywhere in the output, keys included; nor of texts that are removed."""
    lines, removed = log
    if policy != "open":
        removed += [lines[2]["error"], lines[4]["summary"]]
    output = canonical.encode([line for line in publish(lines, "current", policy) if line]).decode()
    for word in re.findall(r"[g-z]{8,}", json.dumps(removed)):
        assert word not in output
