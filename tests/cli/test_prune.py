"""``reenact prune``: what need not be kept goes, whole or not at all, and nothing else does."""

import json
import signal
import subprocess
import time

import msgspec
import pytest

import reenact
from reenact.formats.capture import read_manifest, write_manifest
from reenact.store.reader import CaptureReader
from reenact.store.rundir import RunDir, RunState
from tests.cli.commands import ENVIRONMENT, PYTHON, command, interrupted, run

DAY_MS = 86_400_000


@reenact.tool
def fetch(size_bytes):
    return "x" * size_bytes


def make_run(path, *, age_days=0.0, fails=False, size_bytes=0):
    """A capture that ended some days ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with reenact.capture(path):
            fetch(size_bytes)
            if fails:
                raise ValueError("no")
    except ValueError:
        pass
    manifest = read_manifest((path / "manifest.json").read_bytes(), file="manifest.json")
    ended = manifest.completedAt - age_days * DAY_MS
    aged = msgspec.structs.replace(manifest, createdAt=ended, completedAt=ended)
    (path / "manifest.json").write_bytes(write_manifest(aged))
    return path


@pytest.fixture
def runs(tmp_path):
    """Five runs of different ages, one of which failed, in folders as people and pytest make them."""
    make_run(tmp_path / "runs" / "new", size_bytes=30_000)
    make_run(tmp_path / "runs" / "week", age_days=7)
    make_run(tmp_path / "runs" / "failed", age_days=3, fails=True)
    make_run(tmp_path / "runs" / "captures" / "test_shop" / "test_lamp", age_days=20)
    make_run(tmp_path / "runs" / "old", age_days=40, size_bytes=50_000)
    return tmp_path / "runs"


NAMES = {"new", "week", "failed", "test_lamp", "old"}


def left(runs):
    return {path.parent.name for path in runs.rglob("manifest.json")}


POLICIES = {
    "age": (["--older-than", "10d"], {"test_lamp", "old"}),
    "age in hours": (["--older-than", "100h"], {"week", "test_lamp", "old"}),
    "count": (["--keep", "2"], {"week", "test_lamp", "old"}),
    "size": (["--max-size", "50kB"], {"old"}),
    "status": (["--status", "error"], {"failed"}),
    "status and count": (["--status", "ok", "--keep", "1"], {"week", "test_lamp", "old"}),
    "any of several": (["--older-than", "30d", "--keep", "4"], {"old"}),
    "nothing": (["--older-than", "52w"], set()),
}


@pytest.mark.parametrize(("options", "gone"), POLICIES.values(), ids=POLICIES)
def test_what_goes_is_said_first_and_then_goes(options, gone, runs):
    """Nothing is changed without --yes."""
    done = run("prune", "runs", *options, cwd=runs.parent)
    assert done.returncode == 0, done.stderr
    assert left(runs) == NAMES
    assert {line.split(":")[0].rpartition("/")[2] for line in said(done, "would delete")} == gone
    assert ("delete with --yes" in done.stdout) == bool(gone)
    done = run("prune", "runs", *options, "--yes", cwd=runs.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert left(runs) == NAMES - gone
    assert not list(runs.rglob(".*"))


def said(done, word):
    return [line for line in done.stdout.splitlines() if line.startswith(f"{word}  ")]


def test_payloads_alone_may_go(runs):
    """The events stay, and say so: shown and verified, but not replayed."""
    done = run("prune", "runs", "--older-than", "10d", "--payloads", "--yes", cwd=runs.parent)
    assert "deleted the payloads of 1 run, 50.0 kB" in done.stdout, done
    old = runs / "old"
    assert sorted(path.name for path in old.iterdir()) == ["events.jsonl", "manifest.json", "pruned.json"]
    checked = run("verify", "runs/old", cwd=runs.parent)
    assert checked.returncode == 0, checked
    assert "1 of 1 payloads in blobs were pruned; the run cannot be replayed [pruned]" in checked.stdout
    assert run("show", "runs/old", cwd=runs.parent).returncode == 0
    shown = run("show", "runs/old", "--at", "3", cwd=runs.parent)
    assert (shown.returncode, "was pruned; the payload is gone" in shown.stderr) == (2, True)
    with pytest.raises(reenact.StoreError, match="was pruned; the payload is gone"):
        reenact.replay(old)
    again = run("prune", "runs", "--older-than", "10d", "--payloads", "--yes", cwd=runs.parent)
    assert "deleted the payloads of 0 runs" in again.stdout


def test_a_blob_that_is_missing_and_was_not_pruned_is_an_error(runs):
    """The mark names what it is about."""
    run("prune", "runs", "--older-than", "10d", "--payloads", "--yes", cwd=runs.parent)
    mark = runs / "old" / "pruned.json"
    mark.write_text(json.dumps(json.loads(mark.read_text()) | {"blobs": []}))
    assert run("verify", "runs/old", cwd=runs.parent).returncode == 1
    mark.write_text("{")
    assert run("verify", "runs/old", cwd=runs.parent).returncode in (1, 2)


@pytest.mark.parametrize("where", ["beside", "elsewhere", "inside"])
def test_a_sealed_run_stays(where, runs):
    """Wherever its seal lies in the folder, unless it is asked for."""
    assert run("keygen", "-o", "key", cwd=runs.parent).returncode == 0
    place = {"beside": [], "elsewhere": ["-o", "runs/s.json"], "inside": ["-o", "runs/old/s.json"]}[where]
    sealed = run("seal", "runs/old", "--key", "key", *place, cwd=runs.parent)
    assert sealed.returncode == 0, sealed.stderr
    done = run("prune", "runs", "--keep", "0", "--yes", cwd=runs.parent)
    assert left(runs) == {"old"}
    assert "sealed; --sealed deletes it too" in done.stdout
    run("prune", "runs", "--keep", "0", "--yes", "--sealed", cwd=runs.parent)
    assert left(runs) == set()


def test_what_is_being_recorded_stays(runs):
    """However it is asked for; an interrupted run goes by its own status alone."""
    interrupted(runs / "cut", lambda: fetch(3))
    with reenact.capture(runs / "open"):
        fetch(1)
        done = run("prune", "runs", "--keep", "0", "--yes", cwd=runs.parent)
        assert "open: is being recorded" in done.stdout
        assert sorted(path.name for path in runs.iterdir()) == ["captures", "cut", "open"]
        run("prune", "runs", "--status", "interrupted", "--yes", cwd=runs.parent)
    assert RunDir(runs / "open").state is RunState.COMPLETE
    assert not (runs / "cut").exists()


def test_links_are_not_followed(runs, tmp_path):
    """Neither to runs elsewhere, nor out of a run that goes."""
    elsewhere = make_run(tmp_path / "elsewhere" / "precious", age_days=90, size_bytes=40_000)
    (runs / "link").symlink_to(elsewhere)
    (runs / "folder").symlink_to(elsewhere.parent)
    (runs / "old" / "blobs" / "out").symlink_to(elsewhere)
    (runs / "week" / "blobs").symlink_to(elsewhere / "blobs")
    run("prune", "runs", "--keep", "0", "--payloads", "--yes", cwd=tmp_path)
    run("prune", "runs", "--keep", "0", "--yes", cwd=tmp_path)
    assert left(runs) <= {"week"}
    assert list(CaptureReader(elsewhere).events())
    assert (elsewhere / "blobs").is_dir()
    assert run("verify", str(elsewhere), cwd=tmp_path).returncode == 0


def test_what_cannot_be_read_stays_and_is_named(runs):
    """The others go."""
    (runs / "week" / "manifest.json").write_text("{")
    done = run("prune", "runs", "--keep", "0", "--yes", cwd=runs.parent)
    assert done.returncode == 2
    assert "week" in done.stderr
    assert left(runs) == {"week"}


WRONG = {
    "no policy": (["runs"], 3, "say what is to go"),
    "no age": (["runs", "--older-than", "soon"], 3, "'soon' is not an age"),
    "no size": (["runs", "--max-size", "-1"], 3, "'-1' is not a size"),
    "no count": (["runs", "--keep", "-1"], 3, "--keep"),
    "no status": (["runs", "--status", "fine"], 3, "--status"),
    "no folder": (["nowhere", "--keep", "1"], 2, "nowhere: No such file or directory"),
    "a file": (["runs/new/events.jsonl", "--keep", "1"], 2, "is a file"),
    "no path": ([], 3, "PATH"),
}


@pytest.mark.parametrize(("words", "status", "why"), WRONG.values(), ids=WRONG)
def test_wrong_usage_changes_nothing(words, status, why, runs):
    done = run("prune", *words, "--yes", cwd=runs.parent)
    assert (done.returncode, why in done.stderr) == (status, True), done.stderr
    assert left(runs) == NAMES


def test_the_project_says_what_is_kept(runs):
    """Where the command line does not."""
    project = runs.parent / "reenact.toml"
    project.write_text('[prune]\nolder_than = "10d"\nstatus = ["ok"]\n')
    assert run("prune", "runs", "--yes", cwd=runs.parent).returncode == 0
    assert left(runs) == {"new", "week", "failed"}
    run("prune", "runs", "--keep", "1", "--yes", cwd=runs.parent)
    assert left(runs) == {"new"}
    for table, why in (("keep = true", "expected a count"), ("weeks = 3", "is unknown; the table has")):
        project.write_text(f"[prune]\n{table}\n")
        done = run("prune", "runs", "--yes", cwd=runs.parent)
        assert (done.returncode, why in done.stderr) == (2, True), done.stderr


def test_a_machine_can_read_it(runs):
    done = run("prune", "runs", "--keep", "3", "--json", cwd=runs.parent)
    found = json.loads(done.stdout)
    assert [row["path"] for row in found["going"]] == ["runs/old", "runs/captures/test_shop/test_lamp"]
    assert (found["done"], len(found["staying"]), found["going"][0]["bytes"] > 50_000) == (False, 3, True)


@pytest.mark.parametrize("delay_s", [0.0, 0.005, 0.02])
@pytest.mark.parametrize("payloads", [[], ["--payloads"]])
def test_a_kill_leaves_whole_runs(delay_s, payloads, tmp_path):
    """Each is there as it was, or gone; the next prune removes what was left of it."""
    for number in range(12):
        make_run(tmp_path / "runs" / f"r{number}", age_days=number, size_bytes=20_000)
    code = (
        "import sys, time, reenact.cli.prune; from reenact.cli import main; print('go', flush=True); "
        "sys.exit(main(sys.argv[1:]))"
    )
    words = [PYTHON, "-c", code, "prune", "runs", "--keep", "1", "--yes", *payloads]
    process = subprocess.Popen(words, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE)
    process.stdout.readline()
    time.sleep(delay_s)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    for path in (tmp_path / "runs").glob("r*"):
        assert run("verify", path, cwd=tmp_path).returncode == 0
    done = subprocess.run(
        command("prune", "runs", "--keep", "1", "--yes", *payloads), cwd=tmp_path, env=ENVIRONMENT
    )
    assert done.returncode == 0
    assert not list((tmp_path / "runs").glob(".*"))
    if payloads:
        assert len(list((tmp_path / "runs").glob("*/pruned.json"))) == 11
    else:
        assert [path.name for path in (tmp_path / "runs").iterdir()] == ["r0"]
