"""Files recorded with a run: ``record --workspace``, ``files``, ``checkout``."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import reenact
from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider, ToolCall
from reenact.workspace.history import WorkspaceHistory
from tests.cli.commands import AGENTS, PYTHON, agent, run

CODING = [PYTHON, "-I", str(AGENTS / "coding.py"), "Work"]
SCRIPT = [
    Reply(tool_calls=[ToolCall("bash", {"command": "echo one > a.txt; mkdir d; pwd"})]),
    Reply(tool_calls=[ToolCall("bash", {"command": "mv a.txt d/; echo two >> d/a.txt; chmod 755 d/a.txt"})]),
    Reply("Done."),
]


@pytest.fixture
def work(tmp_path):
    """A folder with something in it."""
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "start.txt").write_text("start\n")
    (folder / ".env").write_text("KEY=abc")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "big.log").write_text("x")
    return folder


@pytest.fixture
def recorded(work, tmp_path):
    """A run of a coding agent that no seam sees."""
    with ScriptedProvider(SCRIPT) as provider:
        base_url = provider.base_url("anthropic")
        done = run(
            "record",
            "-o",
            tmp_path / "a",
            "--workspace",
            "--",
            *CODING,
            cwd=work,
            ANTHROPIC_BASE_URL=base_url,
        )
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert "files left out: 1 secret, 1 ignored; list them with: reenact files" in done.stderr
    assert f"reenact replay {tmp_path / 'a'} --workspace -- " in done.stderr
    return tmp_path / "a"


def listed(path, *options):
    report = json.loads(run("files", path, "--json", *options, cwd=path).stdout)
    return {file["path"]: file for file in report["files"]}


def test_the_files_are_there_at_every_step(recorded, tmp_path):
    """What a shell did to them between two model calls, with modes and folders."""
    assert listed(recorded, "--at", "1").keys() == {".env", ".gitignore", "big.log", "start.txt", "sub/"}
    states = WorkspaceHistory(CaptureReader(recorded)).states
    assert len(states) == 3
    first = listed(recorded, "--at", states[1].seq)
    assert {"a.txt", "d/"} <= first.keys()
    last = listed(recorded)
    assert last["d/a.txt"]["mode"] == "755"
    assert last[".env"] == {"path": ".env", "kind": "left-out", "why": "secret"}
    assert "a.txt" not in last
    done = run("checkout", recorded, "--at", states[1].seq, "-o", tmp_path / "out", cwd=tmp_path)
    assert done.stdout == f"{tmp_path / 'out'}: 3 files of {recorded} at event {states[1].seq}\n"
    assert (tmp_path / "out" / "a.txt").read_text() == "one\n"
    assert not (tmp_path / "out" / ".env").exists()


def test_what_a_step_changed_is_shown(recorded):
    """As a diff, from any event to any other."""
    states = WorkspaceHistory(CaptureReader(recorded)).states
    done = run("files", recorded, "--diff", f"{states[1].seq}..", cwd=recorded)
    assert done.stdout.splitlines() == [
        "removed a.txt",
        "  @@ -1 +0,0 @@",
        "  -one",
        "added   d/a.txt",
        "  @@ -0,0 +1,2 @@",
        "  +one",
        "  +two",
    ]
    assert run("files", recorded, "--diff", "1..1", cwd=recorded).stdout == "nothing changed\n"


def test_the_capture_verifies_and_a_damaged_file_is_found(recorded):
    """Trees and files are blobs of the events that name them."""
    assert run("verify", recorded, cwd=recorded).returncode == 0
    report = reenact.verify(recorded)
    assert report.findings == []
    digest = listed(recorded)["d/a.txt"]["digest"]
    blob = recorded / "blobs" / "sha256" / digest[7:9] / digest[9:]
    blob.write_bytes(b"other")
    assert [finding.code for finding in reenact.verify(recorded).findings] == ["blob_damaged"]
    blob.unlink()
    assert [finding.code for finding in reenact.verify(recorded).findings] == ["blob_missing"]
    done = run("checkout", recorded, "-o", recorded.parent / "out", cwd=recorded)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not (recorded.parent / "out").exists()


def test_python_agents_are_recorded_call_by_call(work, tmp_path):
    """Before and after each call, and what the agent did with its own hands in between."""
    done = run("record", "-o", tmp_path / "a", "--workspace", work, "--", *agent("filing"), cwd=work)
    assert done.returncode == 0, done.stderr
    states = WorkspaceHistory(CaptureReader(tmp_path / "a")).states
    assert [(len(state.before), len(state.after)) for state in states] == [(0, 0), (0, 1), (1, 0), (0, 1)]
    assert reenact.verify(tmp_path / "a").findings == []
    report = reenact.files(tmp_path / "a", diff=f"1..{states[1].seq}")
    assert [(change.how, change.path) for change in report.changes] == [("added", "notes.txt")]
    reenact.checkout(tmp_path / "a", tmp_path / "out")
    (work / ".env").unlink()
    (work / "big.log").unlink()
    assert subprocess.run(["diff", "-r", work, tmp_path / "out"], check=False).returncode == 0


def test_captures_in_the_workspace_are_no_part_of_it(work):
    """The run that is being recorded, and others."""
    for name in ("one", "two"):
        done = run("record", "-o", f"runs/{name}", "--workspace", "--", *agent("filing"), cwd=work)
        assert done.returncode == 0, done.stderr
    assert not [path for path, file in listed(work / "runs" / "two").items() if "events" in path]
    assert listed(work / "runs" / "two")["runs/one"]["why"] == "capture"


def test_secrets_in_files_never_reach_the_disk(work, tmp_path):
    """A file is redacted before it is stored; who gets it back is reported."""
    secret = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8t" * 2
    (work / "config.py").write_text(f"API_KEY = '{secret}'\n")
    (work / "wide.ini").write_text(f"API_KEY = {secret}\n", encoding="utf-16")
    done = run("record", "-o", tmp_path / "a", "--workspace", "--", *agent("filing"), cwd=work)
    assert done.returncode == 0, done.stderr
    found = subprocess.run(["grep", "-r", secret, tmp_path / "a"], capture_output=True, check=False)
    assert found.stdout == b""
    done = run("checkout", tmp_path / "a", "-o", tmp_path / "out", cwd=tmp_path)
    assert "config.py: placeholders replace secrets in it" in done.stderr
    assert "<secret:" in (tmp_path / "out" / "config.py").read_text()
    assert "API_KEY = <secret:" in (tmp_path / "out" / "wide.ini").read_text(encoding="utf-16")
    assert "config.py  (secrets hidden)" in run("files", tmp_path / "a", cwd=tmp_path).stdout


def git(folder, *words):
    identity = ["-c", "user.email=a@b", "-c", "user.name=n"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_what_git_has_is_not_stored_again(work, tmp_path):
    """A run in a repository holds what differs from its commit; the rest comes from git."""
    big = "".join(f"{number}\n" for number in range(50_000))
    (work / "large.txt").write_text(big)
    git(work, "init", "-q")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "x")
    (work / "start.txt").write_text("changed\n")
    options = ["-o", tmp_path / "a", "--workspace", "--workspace-base", "git"]
    done = run("record", *options, "--", *agent("filing"), cwd=work)
    assert done.returncode == 0, done.stderr
    size = sum(path.stat().st_size for path in (tmp_path / "a" / "blobs").rglob("*") if path.is_file())
    assert size < len(big) / 10
    assert reenact.verify(tmp_path / "a").findings == []
    done = run("checkout", tmp_path / "a", "-o", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "name the repository with --repository DIR" in done.stderr
    assert not (tmp_path / "out").exists()
    done = run("checkout", tmp_path / "a", "-o", tmp_path / "out", "--repository", work, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "large.txt").read_text() == big
    assert (tmp_path / "out" / "start.txt").read_text() == "changed\n"


WRONG = {
    "no such folder": (["--workspace", "nowhere"], 3, "nowhere: the workspace is not there"),
    "a file": (["--workspace", "start.txt"], 3, "start.txt: the workspace is not a folder"),
    "no repository": (["--workspace", "--workspace-base", "git"], 3, "has no commit to start from"),
    "a limit for nothing": (["--workspace-limit", "1"], 3, "add --workspace"),
}


@pytest.mark.parametrize(("options", "status", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_one_line_before_anything_runs(options, status, message, work):
    """And leaves nothing behind."""
    done = run("record", "-o", "a", *options, "--", *agent("filing"), cwd=work)
    assert done.returncode == status
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (work / "a").exists()
    assert not (work / "notes.txt").exists()


def test_verbs_say_what_a_capture_without_files_lacks(work, tmp_path):
    """And which events there are, and that a folder is in use."""
    assert run("record", "-o", "a", "--", *agent("filing"), cwd=work).returncode == 0
    for words in (["files", "a"], ["checkout", "a", "-o", "out"]):
        done = run(*words, cwd=work)
        assert (done.returncode, done.stderr) == (3, "reenact: a: has no files; record with --workspace\n")
    (work / "notes.txt").unlink()
    run("record", "-o", tmp_path / "b", "--workspace", "--", *agent("filing"), cwd=work)
    done = run("files", tmp_path / "b", "--at", "999", cwd=work)
    assert done.returncode == 3
    assert "there is no event 999; choose 1 to" in done.stderr
    done = run("files", tmp_path / "b", "--diff", "x", cwd=work)
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1)
    done = run("checkout", tmp_path / "b", "-o", work, cwd=work)
    assert done.returncode == 2
    assert "is not empty" in done.stderr


def test_an_update_does_not_lose_the_files(tmp_path, work):
    """It works among them, and one without a difference changes nothing."""
    run("record", "-o", tmp_path / "a", "--workspace", "--", *agent("filing"), cwd=work)
    before = (tmp_path / "a" / "manifest.json").read_bytes()
    done = run("update", tmp_path / "a", "--", *agent("filing"), cwd=work)
    assert done.returncode == 0, done.stderr
    assert "unchanged" in done.stderr
    assert (tmp_path / "a" / "manifest.json").read_bytes() == before


def test_a_workspace_that_goes_away_does_not_end_the_run(tmp_path):
    """It is said, the calls are recorded, and the files are again once they are back."""
    folder = tmp_path / "work"
    folder.mkdir()

    @reenact.tool
    def step(number: int) -> int:
        if number == 1:
            folder.rename(tmp_path / "away")
        if number == 2:
            (tmp_path / "away" / "f").write_text("x")
            (tmp_path / "away").rename(folder)
        return number

    with reenact.capture(tmp_path / "a", workspace=folder) as captured:
        assert [step(number) for number in range(3)] == [0, 1, 2]
    assert len(captured.warnings) == 1
    assert "the workspace cannot be read" in captured.warnings[0]
    assert [file.path for file in reenact.files(tmp_path / "a").files] == ["f"]
    events = [json.loads(line) for line in CaptureReader(tmp_path / "a").lines()]
    ends = [event["seq"] for event in events if event["type"] == "tool_result"]
    assert [reenact.files(tmp_path / "a", at=seq).files == [] for seq in (ends[0], ends[2])] == [True, False]
    with pytest.raises(
        reenact.UsageError, match=rf"at event {ends[1]} the files could not be read: the work"
    ):
        reenact.files(tmp_path / "a", at=ends[1])


GONE = """
import shutil
import subprocess
import sys
from pathlib import Path

import reenact

Path("x").write_text("1")


@reenact.tool
def remove() -> None:
    shutil.rmtree(Path.cwd())


remove()
Path(sys.argv[1], "elsewhere").write_text("1")
print(subprocess.run([sys.executable, "-c", "print('child')"], capture_output=True, text=True).stdout)
"""


def test_a_run_that_removes_the_folder_it_works_in_is_recorded(tmp_path):
    """It ends as it would; what is not known of its files is said, also of the end."""
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "gone.py").write_text(GONE)
    words = ["--workspace", "--", PYTHON, tmp_path / "gone.py", tmp_path]
    done = run("record", "-o", "../a", *words, cwd=work)
    assert (done.returncode, done.stdout) == (0, "child\n\n"), done.stderr
    assert "Traceback" not in done.stderr
    assert "the files at the end are not recorded" in done.stderr
    assert "reenact replay ../a --workspace -- " in done.stderr
    assert CaptureReader(tmp_path / "a").manifest.status == "ok"
    done = run("files", "a", cwd=tmp_path)
    assert done.returncode == 3
    assert "a: at the end the files could not be read: the workspace cannot be read" in done.stderr
    assert [file.path for file in reenact.files(tmp_path / "a", at=3).files] == ["x"]
    (tmp_path / "elsewhere").unlink()
    done = run("replay", "a", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "child\n\n"), done.stderr


def test_threads_that_come_back_together_share_a_look(tmp_path):
    """Every call's files are in the recording, and parallel calls do not wait for a look each."""
    folder = tmp_path / "work"
    folder.mkdir()

    @reenact.tool
    def make(name: str) -> None:
        (folder / name).write_text(name)

    with reenact.capture(tmp_path / "a", workspace=folder), ThreadPoolExecutor(8) as pool:
        list(pool.map(make, map(str, range(40))))
    history = WorkspaceHistory(CaptureReader(tmp_path / "a"))
    assert {entry.name for entry in history.read_tree(history.end_tree)} == {b"%d" % n for n in range(40)}
    assert reenact.verify(tmp_path / "a").findings == []
    told = [call for state in history.states for call in state.after]
    assert len(told) == len(set(told))
    for event in history.reader.events():
        if event.__struct_config__.tag == "tool_call":
            outcome = next(
                other.seq
                for other in history.reader.events()
                if other.__struct_config__.tag == "tool_result" and other.data.callId == event.data.callId
            )
            after = history.read_tree(history.tree_at(outcome))
            assert os.fsencode(event.data.args["name"]) in {entry.name for entry in after}


# Looking, comparing, sharing


def test_each_step_shows_what_it_changed_and_ends_are_compared(work, tmp_path):
    """In ``show``, with its diff; ``diff`` says where the files of two runs differ at the end."""
    for name, text in (("a", "mine\n"), ("b", "other\n")):
        words = ["--", *agent("filing", text)]
        assert run("record", "-o", tmp_path / name, "--workspace", *words, cwd=work).returncode == 0
        for path in ("notes.txt", "d/own.txt"):
            (work / path).unlink()
        for path in ("d/empty", "d"):
            (work / path).rmdir()
    shown = run("show", tmp_path / "a", cwd=tmp_path, COLUMNS="160").stdout
    assert "workspace added notes.txt" in shown
    assert re.search(r"workspace added own.txt +\+1 -0$", shown, re.MULTILINE)
    done = run("diff", tmp_path / "a", tmp_path / "a", cwd=tmp_path)
    assert (done.returncode, "files" in done.stdout) == (0, False)
    done = run("diff", tmp_path / "a", tmp_path / "b", cwd=tmp_path)
    assert done.returncode == 1
    ends = done.stdout.partition("the files at the end differ\n")[2].splitlines()
    assert ends[:4] == ["  changed d/own.txt", "    @@ -1 +1 @@", "    -mine", "    +other"]
    report = reenact.diff(tmp_path / "a", tmp_path / "b")
    assert [(change.how, change.path) for change in report.files] == [("changed", "d/own.txt")]


def test_nothing_of_the_files_is_in_a_published_log(work, tmp_path):
    """Neither contents nor names; the seal covers the trees through the events that name them."""
    (work / "start.txt").write_text("very private content\n")
    words = ["--workspace", "--", *agent("filing")]
    assert run("record", "-o", tmp_path / "a", *words, cwd=work).returncode == 0
    reenact.keygen(tmp_path / "key")
    done = run("seal", tmp_path / "a", "--key", tmp_path / "key", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("publish", tmp_path / "a", "-o", tmp_path / "log.jsonl", "--policy", "open", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    published = (tmp_path / "log.jsonl").read_text()
    assert "private" not in published
    assert "start.txt" not in published
    events = tmp_path / "a" / "events.jsonl"
    tree = WorkspaceHistory(CaptureReader(tmp_path / "a")).states[1].tree
    events.write_text(events.read_text().replace(tree, "sha256:" + "0" * 64))
    assert run("verify", tmp_path / "a", cwd=tmp_path).returncode == 1


# Replay


def replayed(path, *words, cwd, **environment):
    return run("replay", path, "--workspace", "--", *words, cwd=cwd, **environment)


def test_a_shell_agent_is_replayed_elsewhere_among_its_files(recorded, work, tmp_path):
    """Its commands really run, in a folder of their own; the user's files stay as they are."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    listing = ["ls", "-lR", "--full-time", work]
    before = subprocess.run(listing, capture_output=True, check=True).stdout
    done = replayed(recorded, *CODING, cwd=elsewhere, HOME=str(elsewhere))
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert "reproduced, 3 calls answered from the capture" in done.stderr
    assert subprocess.run(listing, capture_output=True, check=True).stdout == before
    assert list(elsewhere.iterdir()) == []


def test_files_that_differ_at_a_step_are_a_divergence_with_their_diff(recorded, tmp_path):
    """Although every request is the same."""
    code = (AGENTS / "coding.py").read_text()
    (tmp_path / "other.py").write_text(code.replace('["sh", "-c", ', '["sh", "-c", "echo x >> y;" + '))
    done = replayed(recorded, PYTHON, "-I", tmp_path / "other.py", "Work", cwd=tmp_path)
    assert done.returncode == 1
    assert "the files are not as they were before this call: added y\n" in done.stderr
    assert "    +x\n" in done.stderr


def test_a_python_agent_finds_what_its_answered_calls_did(work, tmp_path):
    """Tools and programs do not run in replay; what they did to files is done in their place."""
    done = run("record", "-o", tmp_path / "a", "--workspace", "--", *agent("filing"), cwd=work)
    assert done.returncode == 0, done.stderr
    for name in ("notes.txt", "d/own.txt"):
        (work / name).unlink()
    done = replayed(tmp_path / "a", *agent("filing"), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "['d/own.txt', 'notes.txt', 'start.txt']\n"), done.stderr
    assert not (work / "notes.txt").exists()
    done = replayed(tmp_path / "a", *agent("filing", "other\n"), cwd=tmp_path)
    assert done.returncode == 1


def test_a_replay_without_the_files_that_differs_points_to_them(tmp_path):
    """What it lacks is in the recording."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "task.txt").write_text("one")
    agent_file = tmp_path / "reading.py"
    agent_file.write_text(
        "import os, reenact\n@reenact.tool\ndef do(text): os.system('rm task.txt')\n"
        "do(open(os.open('task.txt', 0)).read())\n"
    )
    options = ["-o", tmp_path / "a", "--workspace"]
    done = run("record", *options, "--", PYTHON, agent_file, cwd=work)
    assert done.returncode == 0, done.stderr
    (work / "task.txt").write_text("two")
    done = run("replay", tmp_path / "a", "--", PYTHON, agent_file, cwd=work)
    assert done.returncode == 1
    assert "the recording has the files that it was made among: replay it with --workspace" in done.stderr
    assert replayed(tmp_path / "a", PYTHON, agent_file, cwd=tmp_path).returncode == 0


def test_what_the_agent_writes_otherwise_at_the_end_diverges(tmp_path):
    """The end is compared too, and the diff shown."""
    (tmp_path / "work").mkdir()
    agent_file = tmp_path / "late.py"
    text = "import os, reenact\n@reenact.tool\ndef nothing(): pass\nnothing()\nfd = os.open('out', 65)\n"
    agent_file.write_text(text + "os.write(fd, b'one\\n')\n")
    options = ["-o", tmp_path / "a", "--workspace"]
    assert run("record", *options, "--", PYTHON, agent_file, cwd=tmp_path / "work").returncode == 0
    assert replayed(tmp_path / "a", PYTHON, agent_file, cwd=tmp_path).returncode == 0
    agent_file.write_text(text + "os.write(fd, b'two\\n')\n")
    done = replayed(tmp_path / "a", PYTHON, agent_file, cwd=tmp_path)
    assert done.returncode == 1
    assert "the files at the end are not as recorded: changed out" in done.stderr
    assert "    -one\n" in done.stderr
    assert "    +two\n" in done.stderr


def test_the_workspace_can_be_named_and_its_path_is_mapped(tmp_path):
    """In the command, in what the model is asked, and in files that hold it."""
    (tmp_path / "work").mkdir()
    command = f"cd {tmp_path / 'work'} && pwd > where.txt && cat where.txt"
    script = [Reply(tool_calls=[ToolCall("bash", {"command": command})]), Reply("Done.")]
    words = [PYTHON, "-I", str(AGENTS / "coding.py"), "Work in {workspace}"]
    with ScriptedProvider(script) as provider:
        options = ["-o", tmp_path / "a", "--workspace", tmp_path / "work"]
        base_url = provider.base_url("anthropic")
        done = run("record", *options, "--", *words, cwd=tmp_path, ANTHROPIC_BASE_URL=base_url)
    assert done.returncode == 0, done.stderr
    (tmp_path / "work" / "where.txt").write_text("untouched")
    done = replayed(tmp_path / "a", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "work" / "where.txt").read_text() == "untouched"


@pytest.mark.parametrize("path_bytes", [24, 40, 41, 150])
def test_what_is_counted_of_the_path_is_the_same(path_bytes, tmp_path):
    """As agents count tokens of what their tools print: the folder of a replay has as long a path."""
    above = tempfile.mkdtemp(prefix="x-")
    work = Path(above) / "w".ljust(path_bytes - len(above) - 1, "w")
    work.mkdir()
    counting = "import os, reenact; reenact.tool(lambda text: None, name='tell')(f'{len(os.getcwd())}')"
    words = ["--workspace", "--", PYTHON, "-c", counting]
    assert run("record", "-o", tmp_path / "a", *words, cwd=work).returncode == 0
    shutil.rmtree(above)
    done = run("replay", tmp_path / "a", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_path_is_mapped_in_every_spelling(tmp_path):
    """By the name of a link, as an address, escaped, in JSON, and beside names that are longer."""
    home = tmp_path / "home"
    (home / "my work").mkdir(parents=True)
    (tmp_path / "link").symlink_to(home / "my work")
    link = tmp_path / "link"
    (tmp_path / "link2").mkdir()
    spell = (
        "import json, os, urllib.parse as u; here = os.environ['PWD']; print(here + '/', here + '/a.py:3');"
        "print('file://' + u.quote(here), u.quote(here, safe=''), json.dumps(json.dumps(['x\\n' + here])));"
        "print(json.dumps(here).replace('/', '\\\\/'), os.path.realpath(here))"
    )
    first = f"cd '{link}' && {PYTHON} -c \"{spell}\" && ls -d {tmp_path}/link2"
    script = [Reply(tool_calls=[ToolCall("bash", {"command": first})]), Reply("Done.")]
    words = [PYTHON, "-I", str(AGENTS / "coding.py"), "Work"]
    with ScriptedProvider(script) as provider:
        options = ["-o", tmp_path / "a", "--workspace", link]
        given = {"ANTHROPIC_BASE_URL": provider.base_url("anthropic"), "HOME": str(home)}
        done = run("record", *options, "--", *words, cwd=link, **given)
    assert done.returncode == 0, done.stderr
    done = replayed(tmp_path / "a", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_block_is_replayed_in_a_folder(tmp_path):
    """From Python: the folder is made by checkout, and compared at the end."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "f").write_text("start")

    @reenact.tool
    def write(text: str) -> None:
        (folder / "g").write_text(text)

    with reenact.capture(tmp_path / "a", workspace=folder):
        write("x")
    reenact.checkout(tmp_path / "a", tmp_path / "again", at=1)
    with reenact.replay(tmp_path / "a", workspace=tmp_path / "again"):
        write("x")
    assert (tmp_path / "again" / "g").read_text() == "x"
    (tmp_path / "again" / "g").unlink()
    (tmp_path / "again" / "f").write_text("other")
    with (
        pytest.raises(reenact.Diverged, match="before this call: changed f"),
        reenact.replay(tmp_path / "a", workspace=tmp_path / "again"),
    ):
        write("x")
