"""Forks among the files of their step: ``fork --workspace`` and ``fork(workspace=…)``."""

import asyncio
import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import reenact
from reenact.run import update
from reenact.store.blobs import BlobStore
from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider, ToolCall
from reenact.workspace.files import compare_ends
from tests.cli.commands import AGENTS, PYTHON, run

AGENT = """
import subprocess
from pathlib import Path

import reenact


@reenact.tool
def plan() -> list[str]:
    return ["a.txt", "b.txt"]


@reenact.tool
def write(name: str, text: str) -> str:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text)
    return f"{Path.cwd()}/{name}"


@reenact.tool
def finish() -> int:
    names = sorted(path for path in Path().rglob("*") if path.is_file())
    Path("list").write_text("\\n".join(map(str, names)))
    return len(names)


Path("early").write_text("the agent's own")
write("src/first.txt", "first")
for name in plan():
    write(f"src/{name}", name)
    subprocess.run(["sh", "-c", f"cat src/{name} >> all; rm -f start.txt"], check=True)
print(finish())
print(Path("all").read_text())
"""


def tree(folder):
    """All below *folder*: modes, contents and targets by path."""
    found = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = (state.st_mode, content)
    return found


def files(path, at=None):
    return {file.path: file for file in reenact.files(path, at=at).files}


def events(path, kind=None):
    every = [json.loads(line) for line in CaptureReader(path).lines()]
    return [event for event in every if kind is None or event["type"] == kind]


def seq_of(path, tool):
    return next(event["seq"] for event in events(path, "tool_call") if event["data"]["tool"] == tool)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recorded run; its folder has changed since."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "agent.py").write_text(AGENT)
    work = folder / "work"
    work.mkdir()
    (work / "start.txt").write_text("start")
    done = run("record", "-o", folder / "a", "--workspace", "--", PYTHON, folder / "agent.py", cwd=work)
    assert (done.returncode, done.stdout) == (0, "5\na.txtb.txt\n"), done.stderr
    (work / "mine").write_text("not touched")
    return folder / "a"


@pytest.fixture(scope="module")
def forked(recorded):
    """A fork of it in which the second file is another one."""
    out = recorded.with_name("fork")
    done = fork(recorded, out, "--at", seq_of(recorded, "plan"), "--set", '$[1]="c.txt"', "--on-miss", "live")
    assert (done.returncode, done.stdout) == (0, "5\na.txtc.txt\n"), done.stderr
    assert "3 calls from the prefix, 3 from the recording, 3 live" in done.stderr
    return out


def fork(recorded, output, *options, agent="agent.py", cwd=None):
    return run(
        "fork",
        recorded,
        "--workspace",
        "-o",
        output,
        *options,
        "--",
        PYTHON,
        recorded.parent / agent,
        cwd=cwd or recorded.parent / "work",
    )


def test_a_fork_begins_with_the_files_of_its_step_and_has_its_own_from_there_on(recorded, forked, tmp_path):
    """Answered calls leave what they left, new ones work in the same folder, the user's own is untouched."""
    at = seq_of(recorded, "plan")
    assert tree(recorded.parent / "work").keys() == {"mine", "src", *files(recorded)} - {"src/"}
    assert files(forked, at) == files(recorded, at)
    assert files(forked).keys() == {"all", "early", "list", "src/", "src/a.txt", "src/c.txt", "src/first.txt"}
    reenact.checkout(forked, tmp_path / "end")
    assert (tmp_path / "end/all").read_text() == "a.txtc.txt"
    assert (tmp_path / "end/list").read_text() == "all\nearly\nsrc/a.txt\nsrc/c.txt\nsrc/first.txt"
    assert reenact.verify(forked).findings == []
    # Blobs of the parent are not stored again.
    assert not {*BlobStore(forked / "blobs")} & {*BlobStore(recorded / "blobs")}


def test_each_step_of_a_fork_can_be_checked_out(recorded, forked):
    """After each call there is what it made, and no more."""
    seen = [
        {path.removeprefix("src/") for path in files(forked, event["seq"]) if path.startswith("src/")} - {""}
        for event in events(forked, "tool_result")
    ]
    assert seen == [
        {"first.txt"},
        {"first.txt"},
        {"first.txt", "a.txt"},
        {"first.txt", "a.txt", "c.txt"},
        {"first.txt", "a.txt", "c.txt"},
    ]
    changed = [(change.path, change.how) for change in compare_ends(recorded, forked)]
    assert ("src/b.txt", "removed") in changed or ("src/c.txt", "renamed") in changed
    last = [event for event in events(forked) if event["data"].get("type") == "workspace"][-1]
    assert last["data"]["details"]["tree"] == CaptureReader(forked).manifest.workspaceEnd


def test_a_fork_replays_among_its_files_and_is_forked_again(recorded, forked, tmp_path):
    """Also where its parents are gone, if it stands alone."""
    words = ("replay", forked, "--workspace", "--", PYTHON, recorded.with_name("agent.py"))
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    family = tmp_path / "family"
    shutil.copytree(recorded.parent, family)
    whole = tmp_path / "whole"
    last = [event for event in events(forked, "tool_call") if event["data"]["tool"] == "write"][-1]["seq"]
    done = fork(family / "fork", whole, "--at", last, "--error", "TimeoutError", "--standalone")
    assert done.returncode == 1, done.stdout  # as the agent does
    shutil.rmtree(family)
    assert files(whole).keys() == {"all", "early", "src/", "src/a.txt", "src/c.txt", "src/first.txt"}
    assert reenact.verify(whole).findings == []
    reenact.checkout(whole, tmp_path / "of-whole")
    assert (tmp_path / "of-whole/all").read_text() == "a.txt"


def test_a_fork_without_a_difference_has_the_files_of_its_parent(recorded, tmp_path):
    out = tmp_path / "fork"
    done = fork(recorded, out, "--at", seq_of(recorded, "plan"))
    assert done.returncode == 0, done.stderr
    assert files(out) == files(recorded)
    assert {*BlobStore(out / "blobs")} == set()
    assert reenact.verify(out).findings == []


def test_an_agent_that_leaves_other_files_before_the_point_is_refused(recorded, tmp_path):
    """The files at the point are those of the step, or there is no fork."""
    text = AGENT.replace("for name in plan():", 'Path("extra").write_text("x")\nfor name in plan():')
    recorded.with_name("other.py").write_text(text)
    at = seq_of(recorded, "plan")
    done = fork(recorded, tmp_path / "fork", "--at", at, "--set", '$[1]="c.txt"', agent="other.py")
    assert done.returncode == 1
    assert "before the point of the fork" in done.stderr
    assert "extra" in done.stderr
    assert not (tmp_path / "fork").exists()


def test_samples_have_a_folder_each(recorded, tmp_path):
    at, out = seq_of(recorded, "plan"), tmp_path / "samples"
    done = fork(recorded, out, "--at", at, "--set", '$[1]="c.txt"', "--on-miss", "live", "-n", "2")
    assert done.returncode == 0, done.stderr
    one, two = out / "1", out / "2"
    assert files(one) == files(two)
    assert "src/c.txt" in files(one)


def test_a_recording_without_files_has_none_to_fork_among(tmp_path):
    """Which is said before anything runs."""
    with reenact.capture(tmp_path / "a"):
        choose()
    with pytest.raises(reenact.UsageError, match="a: has no files; record with --workspace"):
        reenact.fork_command(tmp_path / "a", ["true"], at=2, output=tmp_path / "f", workspace=True)
    with pytest.raises(reenact.UsageError, match="a: has no files; record with --workspace"):
        reenact.fork(tmp_path / "a", at=2, output=tmp_path / "f", workspace=tmp_path)
    assert not (tmp_path / "f").exists()


CODING = [PYTHON, "-I", str(AGENTS / "coding.py"), "Work"]


def bash(command):
    return Reply(tool_calls=[ToolCall("bash", {"command": command})])


def test_an_agent_in_another_language_works_on_in_the_files_of_the_step(tmp_path):
    """Its shell commands are really run: before the point as recorded, behind it as the new answer says."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes").write_text("one\n")
    script = [bash("echo two >> notes; pwd"), bash("mv notes old"), Reply("Done.")]
    other = [bash("cp notes copy; echo three >> copy; pwd"), Reply("Otherwise done.")]
    with ScriptedProvider([*script, *other]) as provider:
        done = run(
            "record", "-o", tmp_path / "a", "--workspace", "--", *CODING,
            cwd=work, ANTHROPIC_BASE_URL=provider.base_url("anthropic"),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        asked = [event["seq"] for event in events(tmp_path / "a", "llm_request")]
        done = run(
            "fork", tmp_path / "a", "--workspace", "-o", tmp_path / "f", "--at", asked[1], "--model", "other",
            "--on-miss", "live", "--", *CODING, cwd=tmp_path,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "Otherwise done.\n"), done.stderr
    assert files(tmp_path / "f").keys() == {"notes", "copy"}
    reenact.checkout(tmp_path / "f", tmp_path / "end")
    assert (tmp_path / "end/copy").read_text() == "one\ntwo\nthree\n"
    assert (work / "old").exists()
    assert reenact.verify(tmp_path / "f").findings == []
    empty = tmp_path / "elsewhere"
    empty.mkdir()
    done = run("replay", tmp_path / "f", "--workspace", "--", *CODING, cwd=empty, HOME=str(empty))
    assert done.returncode == 0, done.stdout + done.stderr


@reenact.tool
def choose() -> str:
    return "one"


@reenact.tool
def save(folder: str, name: str) -> str:
    Path(folder, name).write_text(f"{name} in {folder}")
    return f"{folder}/{name}"


def block(folder):
    save(folder, "zero")
    name = choose()
    saved = save(folder, name)
    subprocess.run(["cp", saved, f"{folder}/copy"], check=True)
    return saved


def test_a_block_of_python_is_forked_among_files(tmp_path):
    """In the folder that is given; what it does live happens there."""
    work, mine = tmp_path / "work", tmp_path / "mine"
    work.mkdir()
    with reenact.capture(tmp_path / "a", workspace=work):
        block(str(work))
    reenact.checkout(tmp_path / "a", mine, at=1)
    at = seq_of(tmp_path / "a", "choose")
    with reenact.fork(
        tmp_path / "a",
        at=at,
        change={"replace": "two"},
        output=tmp_path / "f",
        on_miss="live",
        workspace=mine,
    ) as run_again:
        assert block(str(mine)) == f"{mine}/two"
    assert run_again.manifest.status == "ok"
    assert {path.name for path in mine.iterdir()} == {"zero", "two", "copy"}
    assert files(tmp_path / "f").keys() == {"zero", "two", "copy"}
    assert {path.name for path in work.iterdir()} == {"zero", "one", "copy"}
    assert reenact.verify(tmp_path / "f").findings == []
    third = tmp_path / "third"
    reenact.checkout(tmp_path / "f", third, at=1)
    with reenact.replay(tmp_path / "f", workspace=third) as replayed:
        assert block(str(third)) == f"{third}/two"
    assert replayed.receipt.verdict == "reproduced"


def test_runs_with_files_are_shadowed_among_them(recorded, tmp_path):
    """The agent of each run begins with the files of its start, and has its own."""
    text = AGENT.replace('write("src/first.txt", "first")', 'write("src/first.txt", "other")')
    (tmp_path / "other.py").write_text(text)
    report = reenact.shadow(
        recorded, [PYTHON, str(tmp_path / "other.py")], on_miss="live", output=tmp_path / "out"
    )
    (made,) = report.runs
    assert made.difference != "failed", made
    (fork_made,) = (tmp_path / "out").iterdir()
    reenact.checkout(fork_made, tmp_path / "end")
    assert (tmp_path / "end/src/first.txt").read_text() == "other"
    assert (tmp_path / "end/all").read_text() == "a.txtb.txt"
    assert reenact.verify(fork_made).findings == []


def recorded_block(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    with reenact.capture(tmp_path / "a", workspace=work):
        block(str(work))
    mine = tmp_path / "mine"
    reenact.checkout(tmp_path / "a", mine, at=1)
    return tmp_path / "a", mine


def test_what_the_nearest_call_did_to_files_is_done(tmp_path):
    """Nothing is made for real, and the fork says as which call it was answered."""
    path, mine = recorded_block(tmp_path)
    at = seq_of(path, "choose")
    with reenact.fork(
        path, at=at, change={"replace": "two"}, output=tmp_path / "f", on_miss="nearest", workspace=mine
    ):
        block(str(mine))
    assert {found.name for found in mine.iterdir()} == {"zero", "one", "copy"}
    assert files(tmp_path / "f").keys() == {"zero", "one", "copy"}
    assert any("answeredAs" in event["data"] for event in events(tmp_path / "f"))


def test_a_tool_among_other_files_is_missing_where_misses_fail(tmp_path):
    """With the difference of the files, and without a fork."""
    path, mine = recorded_block(tmp_path)

    def careless(folder):
        save(folder, "zero")
        name = choose()
        Path(folder, "zero").write_text("changed")
        save(folder, name)

    with (
        pytest.raises(reenact.Diverged, match=r"not as they were before this call: changed zero.*on-miss"),
        reenact.fork(path, at=seq_of(path, "choose"), output=tmp_path / "f", workspace=mine),
    ):
        careless(str(mine))
    assert not (tmp_path / "f").exists()


async def save_all(folder, names):
    async def later(name):
        await asyncio.sleep(0)
        return save(folder, name)

    return await asyncio.gather(*(later(name) for name in names))


def in_tasks(folder):
    return asyncio.run(save_all(folder, [choose(), *"abcdefgh"]))


def in_threads(folder):
    names = [choose(), *"abcdefgh"]
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda name: save(folder, name), names))


@pytest.mark.parametrize("agent", [in_tasks, in_threads])
def test_calls_side_by_side_are_forked_among_files(agent, tmp_path):
    """What the recording has is put in place, what it has not is made; the end has both, and replays.

    What overlapped in the recording cannot be told apart: a call may bring what another of them had done.
    """
    work, mine, third = (tmp_path / name for name in ("work", "mine", "third"))
    work.mkdir()
    with reenact.capture(tmp_path / "a", workspace=work):
        agent(str(work))
    reenact.checkout(tmp_path / "a", mine, at=1)
    change = {"replace": "two"}
    with reenact.fork(
        tmp_path / "a", at=2, change=change, output=tmp_path / "f", on_miss="live", workspace=mine
    ):
        agent(str(mine))
    expected = {"two", *"abcdefgh"}
    made = {found.name for found in mine.iterdir()}
    assert expected <= made <= expected | {"one"}
    assert files(tmp_path / "f").keys() == made
    assert reenact.verify(tmp_path / "f").findings == []
    reenact.checkout(tmp_path / "f", third, at=1)
    with reenact.replay(tmp_path / "f", workspace=third) as replayed:
        agent(str(third))
    assert replayed.receipt.verdict == "reproduced"
    assert {found.name for found in third.iterdir()} == made


def test_over_a_commit_forks_and_updates_store_no_file_that_git_has(tmp_path):
    """Also where their files are brought to a recorded state, or a committed file differs."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "big.txt").write_text("in the commit\n" * 1000)
    (work / "zero").write_text("old\n")
    identity = ["-c", "user.email=a@b", "-c", "user.name=n"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run(["git", *identity, *words], cwd=work, check=True)
    with reenact.capture(tmp_path / "a", workspace=work, workspace_base="git"):
        block(str(work))
    mine, again, other = (tmp_path / name for name in ("mine", "again", "other"))
    for folder in (mine, again, other):
        reenact.checkout(tmp_path / "a", folder, at=1, repository=work)
    with reenact.fork(
        tmp_path / "a", at=seq_of(tmp_path / "a", "choose"), change={"replace": "two"}, output=tmp_path / "f",
        on_miss="live", workspace=mine,
    ):  # fmt: skip
        block(str(mine))
    stored = [BlobStore(tmp_path / "f/blobs").get(digest) for digest in BlobStore(tmp_path / "f/blobs")]
    assert not any(blob.startswith(b"in the commit") for blob in stored)
    assert sum(map(len, stored)) < 3000
    reenact.checkout(tmp_path / "f", tmp_path / "end", repository=work)
    assert (tmp_path / "end/big.txt").read_text() == (work / "big.txt").read_text()
    with update(tmp_path / "a", workspace=again) as updating:
        block(str(again))
    assert not updating.is_changed
    updating.discard()
    (other / "big.txt").write_text("other\n")
    with (
        pytest.raises(reenact.Diverged, match=r"changed big\.txt"),
        reenact.replay(tmp_path / "a", workspace=other),
    ):
        block(str(other))


def test_what_was_left_out_may_come_into_being_in_a_fork(tmp_path):
    """A folder without what was left out is the recorded one; one with a file in its place is not."""
    work, mine = tmp_path / "work", tmp_path / "mine"
    work.mkdir()
    (work / "log").write_text("x" * 5000)
    (work / ".env").write_text("KEY=1")
    with reenact.capture(tmp_path / "a", workspace=work, workspace_limit_bytes=4000):
        save(str(work), choose())
    reenact.checkout(tmp_path / "a", mine, at=1)
    assert list(mine.iterdir()) == []
    with reenact.fork(tmp_path / "a", at=2, output=tmp_path / "same", workspace=mine):
        save(str(mine), choose())
    assert files(tmp_path / "same") == files(tmp_path / "a")
    (mine / "one").unlink()
    change = {"replace": "log"}
    with reenact.fork(
        tmp_path / "a", at=2, change=change, output=tmp_path / "f", on_miss="live", workspace=mine
    ):
        save(str(mine), choose())
    reenact.checkout(tmp_path / "f", tmp_path / "end")
    assert (tmp_path / "end/log").read_text() == f"log in {mine}"
