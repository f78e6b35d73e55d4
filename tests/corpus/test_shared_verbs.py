"""Import, export and shadow by several workers: the same files as by one, whoever is killed on the way."""

import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import reenact
from reenact.exporters import exporting
from reenact.importers import importing
from tests.analysis.recordings import ask, order, record
from tests.corpus import batch_work

FIXTURES = Path(__file__).parents[1] / "importers" / "fixtures"
AGENT = Path(__file__).parents[2] / "examples" / "shop.py"


def tree(folder):
    """Every file below *folder* with what it holds, hidden ones included."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """Recordings of several tools, two of which cannot be read."""
    monkeypatch.chdir(tmp_path)
    for name in ("claude-code", "pi", "pytest-recording"):
        shutil.copytree(FIXTURES / name, tmp_path / "logs" / name)
    shutil.copy(FIXTURES / "otlp-genai.json", tmp_path / "logs")
    (tmp_path / "logs" / "broken.har").write_text('{"log": {"version": "1.2", "creator": {}, "entries": [')
    (tmp_path / "logs" / "of nobody.txt").write_text("hello")
    return tmp_path / "logs"


@pytest.fixture
def killing(tmp_path, monkeypatch):
    """Says whether a worker was killed at something."""
    monkeypatch.setenv("REENACT_TEST_MARK", str(tmp_path / "killed"))
    return lambda what: (tmp_path / f"killed-{what}").exists()


def without_place(report):
    """What *report* says, without where the captures went."""
    runs = [(Path(*Path(run.path).parts[1:]), run.source, run.counts, run.losses) for run in report.runs]
    return runs, report.failed, report.skipped, report.verdict


def test_imports_by_several_processes_are_the_same(logs, killing, monkeypatch):
    """Byte for byte, though one worker was killed when it had made its captures; the report says the same."""
    monkeypatch.setenv("SHOP_API_KEY", "sk-once-more-0123456789")  # which is hidden by value
    one = reenact.import_runs("logs", "one")
    monkeypatch.setattr(importing, "import_batch", batch_work.import_and_die_once)
    two = reenact.import_runs("logs", "two", jobs=2)
    assert killing("import")
    assert tree(Path("one")) == tree(Path("two"))
    assert without_place(one) == without_place(two)
    assert [each.source for each in one.failed] == ["broken.har"]
    assert not list(Path().glob(".reenact*"))


def test_importing_into_what_is_there_says_the_same(logs):
    """And leaves it as it was."""
    reenact.import_runs("logs/pi", "out")
    before = tree(Path("out"))
    one = reenact.import_runs("logs/pi", "out")
    assert without_place(one) == without_place(reenact.import_runs("logs/pi", "out", jobs=2))
    assert one.verdict == "nothing"
    assert tree(Path("out")) == before


def test_an_import_that_is_interrupted_leaves_whole_captures(logs):
    """Ctrl-C in the middle: what is there is whole, and nothing is beside it."""

    @contextmanager
    def interrupt(_total, _what):
        done = []

        def progress(size_bytes):
            done.append(size_bytes)
            if len(done) == 3:
                raise KeyboardInterrupt

        yield progress

    with pytest.raises(KeyboardInterrupt):
        reenact.import_runs("logs", "out", jobs=2, progress_bar=interrupt)
    assert not list(Path().glob(".reenact*"))
    assert reenact.verify_runs("out").is_good


def test_what_a_killed_import_left_is_removed_by_the_next(logs):
    """The folder in which workers make captures names the process that began it."""
    left = Path(".reenact-import-4194303-ab-out")
    left.mkdir()
    reenact.import_runs("logs/pi", "out", jobs=2)
    assert not left.exists()


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(5):
        record(tmp_path / "runs" / f"{number}", f"lamp {number}")
    for name in ("chat", "again"):
        with reenact.capture(tmp_path / "runs" / name, redact="none"):
            ask("hi", model="gpt-5")
            with pytest.raises(KeyError):
                order("lamp")
    (tmp_path / "runs" / "2" / "manifest.json").write_text("{")
    return tmp_path / "runs"


def test_rows_by_several_processes_are_the_same(runs, killing, monkeypatch):
    """In the same order, with the same duplicates left out; a run that cannot be read is one finding."""
    Path("one").mkdir()
    Path("two").mkdir()
    one = reenact.export_runs("runs", "sft", "one/rows")
    monkeypatch.setattr(exporting, "row_batch", batch_work.read_rows_and_die_once)
    two = reenact.export_runs("runs", "sft", "two/rows", jobs=2)
    assert killing("export")
    assert Path("one/rows").read_bytes() == Path("two/rows").read_bytes()
    assert one.failed == two.failed
    assert [Path(failed.path).name for failed in one.failed] == ["2"]
    assert [run.rows for run in one.runs] == [run.rows for run in two.runs]


def test_documents_by_several_processes_are_the_same(runs):
    """Each file, and what is reported of it."""
    one = reenact.export_runs("runs", "atif", "one")
    two = reenact.export_runs("runs", "atif", "two", jobs=2)
    assert tree(Path("one")) == tree(Path("two"))
    assert len(tree(Path("one"))) == len(one.runs) == len(two.runs) == 6
    assert one.failed == two.failed


def test_a_shadow_run_sets_apart_what_cannot_be_read(tmp_path, monkeypatch):
    """One finding among others; alone it is an error."""
    monkeypatch.chdir(tmp_path)
    words = [sys.executable, str(AGENT), "lamp"]
    for name in ("0", "1"):
        reenact.record_command(words, f"runs/{name}")
    (tmp_path / "runs" / "1" / "manifest.json").write_text("{")
    report = reenact.shadow("runs", words)
    assert report.runs[0].set_apart == ""
    assert "runs/1/manifest.json" in report.runs[1].set_apart
    assert report.counts["same"] == 1
    with pytest.raises(reenact.errors.FormatError):
        reenact.shadow("runs/1", words)
