"""Ray for real: two workers on this machine, one of them killed in the middle; the same results as without.

It takes half a minute, so ``make test-ray`` sets REENACT_RAY; without it these tests are skipped.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import reenact
from reenact.corpus import sources
from reenact.errors import StoreError, UsageError
from reenact.exporters import exporting
from reenact.importers import importing
from reenact.shadowing import running
from reenact.workers import map_batches
from tests.analysis.recordings import record
from tests.cli.commands import command, run
from tests.corpus.batch_work import (
    fork_and_die_once,
    import_and_die_once,
    read_rows_and_die_once,
    refuse,
    square,
)
from tests.corpus.test_shared_verbs import AGENT, FIXTURES, tree
from tests.corpus.test_workers import files_of

pytestmark = pytest.mark.skipif(not os.environ.get("REENACT_RAY"), reason="make test-ray runs them")


TOKEN = secrets.token_hex(16)
"""Who joins the cluster of these tests shows it; Ray asks for one."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A Ray of two workers, shared by the tests of this file."""
    os.environ["REENACT_TEST_MARK"] = str(tmp_path_factory.mktemp("ray") / "killed")
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    ray = pytest.importorskip("ray")
    started = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield started.address_info["address"]
    ray.shutdown()


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(6):
        record(tmp_path / "runs" / f"{number}", f"lamp {number}")
    (tmp_path / "runs" / "2" / "manifest.json").write_text("{")
    return tmp_path / "runs"


def test_a_killed_worker_of_ray_is_replaced(cluster, tmp_path):
    """Results are complete, in order, and each once."""
    work = partial(square, tmp_path / "killed")
    assert list(map_batches(work, range(12), on="ray")) == [number**2 for number in range(12)]
    assert (tmp_path / "killed").exists()


PRINTS = """
import sys, time
from functools import partial
from pathlib import Path
from reenact.workers import map_batches
from tests.corpus.batch_work import square

print(*map_batches(partial(square, Path(sys.argv[1])), range(6), on=f"ray={sys.argv[2]}"))
time.sleep(2)
"""


def test_what_ray_says_of_a_killed_worker_is_not_among_the_results(cluster, tmp_path):
    """It prints that on the standard output, where a report as JSON may be."""
    (tmp_path / "prints.py").write_text(PRINTS)
    done = subprocess.run(
        [sys.executable, tmp_path / "prints.py", tmp_path / "killed", cluster],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    assert (tmp_path / "killed").exists()
    assert done.stdout == "0 1 4 9 16 25\n"


def test_a_batch_that_kills_every_worker_ends_the_work(cluster, tmp_path):
    """In one line, and with nothing left in the cluster."""
    with pytest.raises(StoreError, match="workers: one was ended 4 times over the same runs"):
        list(map_batches(partial(square, tmp_path / "killed"), [1, -1, 2], on="ray"))
    assert list(map_batches(partial(square, tmp_path / "killed"), [5], on="ray")) == [25]


def test_what_the_work_raises_is_raised(cluster):
    """As if it had been done here."""
    with pytest.raises(UsageError, match="not 1"):
        list(map_batches(refuse, [1, 2], on="ray"))


def test_results_are_those_of_one_process(cluster, runs, monkeypatch):
    """Byte for byte: the index and its manifest, the reports of verify; relative paths hold."""
    monkeypatch.setattr(sources, "BATCH_SOURCES", 2)
    one = reenact.index("runs", out="one")
    two = reenact.index("runs", out="two", on="ray")
    assert files_of(Path("one")) == files_of(Path("two"))
    assert len(list(Path("one/runs").iterdir())) == 3
    assert one.problems == two.problems
    assert reenact.verify_runs("runs", on="ray") == reenact.verify_runs("runs")


def test_the_command_line_uses_a_cluster_that_is_there(cluster, runs):
    """By its address; what cannot be read is one finding."""
    alone = run("stats", "runs", "--json", cwd=runs.parent)
    words = ("stats", "runs", "--json", "--on", f"ray={cluster}")
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    there = run(*words, cwd=runs.parent, timeout_s=120, **token)
    assert there.stdout, there.stderr
    assert (there.returncode, json.loads(there.stdout)) == (2, json.loads(alone.stdout))
    assert "runs/2/manifest.json" in there.stderr


def test_ctrl_c_leaves_the_cluster_clean(cluster, runs):
    """Tasks that wait are taken out, and the next work finds all workers."""
    ray = pytest.importorskip("ray")
    work = map_batches(time.sleep, [0.2] * 50, on="ray")
    next(work)
    work.close()  # as an exception in the middle of the loop does
    began = time.monotonic()
    assert list(map_batches(partial(square, runs / "killed"), [2, 4], on="ray")) == [4, 16]
    assert time.monotonic() - began < 8
    assert ray.is_initialized()


def test_an_address_where_nothing_listens_is_one_line(runs):
    """Soon enough, and with what to look at."""
    done = subprocess.run(
        command("stats", "runs", "--on", "ray=127.0.0.1:1"),
        cwd=runs.parent,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 2
    assert "ray=127.0.0.1:1: cannot be reached" in done.stderr.splitlines()[-1]


def test_import_export_and_shadow_are_those_of_one_process(cluster, runs, tmp_path, monkeypatch):
    """Captures, rows and documents byte for byte, and each fork once, though workers are killed."""
    for name in ("claude-code", "pi"):
        shutil.copytree(FIXTURES / name, tmp_path / "logs" / name)
    words = [sys.executable, str(AGENT), "lamp"]
    for name in ("0", "1", "2"):
        reenact.record_command(words, f"shops/{name}")
    reports = {}
    for on in (None, "ray"):
        reenact.import_runs("logs", f"import-{on}", on=on)
        rows = reenact.export_runs("runs", "sft", f"sft-{on}", on=on)
        documents = reenact.export_runs("runs", "atif", f"atif-{on}", on=on)
        forks = reenact.shadow("shops", words, output=f"forks-{on}", on=on)
        reports[on] = rows.failed, documents.failed, [run.path for run in forks.runs], forks.counts
        monkeypatch.setattr(importing, "import_batch", import_and_die_once)
        monkeypatch.setattr(exporting, "row_batch", read_rows_and_die_once)
        monkeypatch.setattr(running, "try_job", fork_and_die_once)
    assert reports[None] == reports["ray"]
    assert len(list(Path(os.environ["REENACT_TEST_MARK"]).parent.iterdir())) == 3  # so many were killed
    for made in ("import", "atif"):
        assert tree(Path(f"{made}-None")) == tree(Path(f"{made}-ray"))
    assert Path("sft-None").read_bytes() == Path("sft-ray").read_bytes()
    assert sorted(os.listdir("forks-None")) == sorted(os.listdir("forks-ray"))
    assert reenact.verify_runs("forks-ray").is_good
