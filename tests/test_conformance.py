"""The conformance kit is what its script makes, and we find in each case what it says must be found."""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conformance.make import FORMATS, VECTORS, make

from reenact import canonical
from reenact.canonical import read_json
from reenact.check.actions.policy import Policy
from reenact.check.artifact import check_artifact, with_other_log, with_receipt
from reenact.check.datasets import check_dataset
from reenact.check.findings import Finding
from reenact.check.kinds import kind_of
from reenact.check.seals.verify import with_seal
from reenact.errors import FormatError, StoreError
from reenact.formats.bundle import read_bundle
from reenact.formats.record import ABSENT
from reenact.formats.testcase import Assertion
from reenact.formats.trace import CODEC as TRACE_CODEC
from reenact.formats.trace import Trace
from reenact.store.reader import CaptureReader
from reenact.suite.judge import BUILT_IN, OF_FILES, judge
from reenact.trace.normalize import normalize

KIT = Path(__file__).parents[1] / "conformance"
CASES = sorted(path.parent.relative_to(KIT) for path in KIT.glob("*/*/expected.json"))


def files_below(root: Path) -> dict[str, bytes]:
    folders = {name.partition("/")[0] for name in (*FORMATS, *VECTORS)}
    names = (path for folder in folders for path in (root / folder).rglob("*"))
    return {str(path.relative_to(root)): path.read_bytes() for path in names if path.is_file()}


def test_the_files_are_those_that_the_script_makes(tmp_path: Path) -> None:
    """Nobody has changed one by hand."""
    make(tmp_path)
    assert files_below(tmp_path) == files_below(KIT)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_is_judged_as_the_kit_says(case: Path) -> None:
    """Every finding, none else, and the exit status that follows."""
    expected = json.loads((KIT / case / "expected.json").read_bytes())
    if expected["exit"] == 2:
        with pytest.raises((FormatError, StoreError)):
            check_artifact(KIT / case / expected["artifact"])
        return
    report = checked(KIT / case, expected)
    found = [(f.code, f.line, f.json_path, f.severity) for f in report.findings]
    wanted = [(f["code"], f["line"], f["path"], f["severity"]) for f in expected["findings"]]
    assert sorted(found, key=str) == sorted(wanted, key=str)
    assert report.is_good is (expected["exit"] == 0)
    assert report.facts.get("pack") == expected.get("pack")


def test_the_loop_for_other_languages_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the page has it, with our verifier in the place of theirs."""
    monkeypatch.chdir(KIT.parent)
    (loop,) = re.findall(r"```python\n(.*?)```", (KIT / "README.md").read_text(), re.DOTALL)
    ran: list[Path] = []

    def verify(folder: Path, case: dict[str, Any]) -> list[dict[str, Any]] | None:
        ran.append(folder)
        try:
            found = checked(folder, case).findings
        except (FormatError, StoreError):
            return None
        return [msgspec.to_builtins(finding) | {"path": finding.json_path} for finding in found]

    exec(compile(loop, "README.md", "exec"), {"verify": verify})
    assert len(ran) == len(CASES)


def checked(folder: Path, expected: dict[str, Any]) -> Any:
    if kind_of(folder / expected["artifact"]) == "dataset":
        return check_dataset(folder / expected["artifact"])
    report = check_artifact(folder / expected["artifact"], lenient=expected.get("lenient", False))
    if "receipt" in expected:
        report = with_receipt(report, folder / expected["receipt"])
    if "key" in expected:
        seal = folder / expected["seal"] if "seal" in expected else None
        report = with_seal(report, seal, folder / expected["key"])
    if "resolved" in expected:
        wanted = json.loads((folder / expected["resolved"]).read_bytes())
        report.findings.extend(payload_findings(folder / expected["artifact"], wanted))
    if "against" in expected:
        report = with_other_log(report, folder / expected["against"])
    return report


def payload_findings(capture: Path, wanted: dict[str, Any]) -> list[Finding]:
    """Where the payloads of calls are not what they should stand for."""
    reader = CaptureReader(capture)
    findings = []
    for event in reader.events():
        data: Any = event.data
        for name in ("request", "response"):
            if getattr(data, "callId", None) not in wanted or not hasattr(data, name):
                continue
            try:
                found = reader.resolve(getattr(data, name))
                is_good = found == wanted[data.callId].get(name, found)
                is_good &= getattr(data, "requestHash", ABSENT) in (ABSENT, canonical.digest(found))
            except FormatError:
                is_good = False
            if not is_good:
                findings.append(Finding("payload", "", "", json_path=f"$.{data.callId}.{name}"))
    return findings


@pytest.mark.parametrize("profile", ["replay", "jcs"])
def test_canonical_texts_are_those_of_the_kit(profile: Any) -> None:
    """What has none is refused, by the reader or by the writer."""
    for vector in json.loads((KIT / "canonical-json" / f"{profile}.json").read_bytes()):
        if vector["canonical"] is None:
            with pytest.raises(FormatError):
                canonical.encode(read_json(vector["json"].encode(), profile), profile)
            continue
        value = read_json(vector["json"].encode(), profile)
        assert canonical.encode(value, profile).decode() == vector["canonical"], vector["about"]
        assert canonical.digest(value, profile) == vector["digest"]


def test_policies_decide_as_the_kit_says() -> None:
    """The same verdict, for the same reason."""
    for vector in json.loads((KIT / "policy-decision" / "decisions.json").read_bytes()):
        decision = Policy.from_json(vector["policy"]).decide(vector["value"])
        assert (decision.verdict, decision.rule) == (vector["verdict"], vector["rule"]), vector["about"]


def trace_of(bundle: dict[str, Any], start: str) -> Trace:
    started_at = datetime.fromisoformat(start)
    read = read_bundle(canonical.encode(bundle), "replay.json")
    return normalize(read, trace_id="t", test_run_id="r", started_at=started_at)


def test_bundles_become_the_traces_of_the_kit() -> None:
    """Every member that the kit names, whole."""
    for vector in json.loads((KIT / "bundle-trace" / "traces.json").read_bytes()):
        trace = TRACE_CODEC.to_json(trace_of(vector["bundle"], vector["started_at"]))
        assert {name: trace[name] for name in vector["trace"]} == vector["trace"], vector["about"]


def test_assertions_judge_as_the_kit_says() -> None:
    """Every type at least once each way, with the events it looked at."""
    kit = json.loads((KIT / "judgement" / "judgements.json").read_bytes())
    runs = {name: trace_of(bundle, kit["started_at"]) for name, bundle in kit["bundles"].items()}
    judged: dict[str, set[str]] = {}
    for one in kit["judgements"]:
        assertion = Assertion(id="a", type=one["type"], params=one["params"])
        found = judge(assertion, runs[one["run"]], BUILT_IN)
        assert (found.status, found.evidence.event_refs) == (one["status"], one["event_refs"]), (one, found)
        judged.setdefault(one["type"], set()).add(found.status)
    always_fail = {"no_such_type", "divergence_free"}  # the latter needs a command that is run again
    of_files = {kind.__name__ for kind in OF_FILES}  # these need a capture with its files
    assert judged.keys() - {"no_such_type"} == BUILT_IN.keys() - of_files
    assert all(judged[name] == {"pass", "fail"} for name in judged.keys() - always_fail)


NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")


PROGRAMS = ("verify.mjs", "judge.mjs")


def run_by_node(program: str, kit: Path = KIT) -> subprocess.CompletedProcess[str]:
    words = [str(NODE), str(KIT / "js" / program), str(kit)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def told_by(program: str, kit: Path = KIT) -> tuple[set[str], set[str], int, int]:
    """What the program covers, what it does not, how many cases it ran and how many of them failed."""
    done = run_by_node(program, kit)
    assert done.stderr == ""
    *_, covered, left, counts = done.stdout.splitlines()
    names = [set(line.partition(": ")[2].split(", ")) for line in (covered, left)]
    ran, failed = map(int, re.findall(r"\d+", counts))
    assert done.returncode == (1 if failed else 0), done.stdout
    return names[0], names[1], ran, failed


@needs_node
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_in_javascript_passes_its_part_of_the_kit(program: str) -> None:
    """With the files of the kit and nothing of ours."""
    *_, ran, failed = told_by(program)
    assert failed == 0
    assert ran > 100


@needs_node
def test_both_programs_cover_the_whole_kit_and_the_page_says_which() -> None:
    """No format is left to neither, and of the vectors only the judgements that the table names."""
    formats = {name.partition("/")[0] for name in (*FORMATS, *VECTORS)} - {"schemas"}
    verified, not_verified, verify_ran, _ = told_by("verify.mjs")
    judged, not_judged, judge_ran, _ = told_by("judge.mjs")
    assert verified | judged == formats
    assert not verified & judged
    assert (not_verified, not_judged & formats) == (judged, verified)
    page = (KIT / "README.md").read_text()
    rows = dict(re.findall(r"^\| (`verify.mjs`|`judge.mjs`|neither) \| (.+) \|$", page, re.MULTILINE))
    assert set(re.findall("`(.+?)`", rows["`verify.mjs`"])) == verified
    assert set(re.findall("`(.+?)`", rows["`judge.mjs`"])) == judged
    assert set(re.findall("`(.+?)`", rows["neither"])) - {"judgement"} == not_judged - formats
    kit = json.loads((KIT / "judgement" / "judgements.json").read_bytes())
    judgements = [one for one in kit["judgements"] if one["type"] not in not_judged]
    lists = [
        json.loads((KIT / name).read_bytes())
        for name in VECTORS
        if not name.startswith(("schemas", "judgement"))
    ]
    assert verify_ran + judge_ran == len(CASES) + len(judgements) + sum(map(len, lists))


def test_the_verifier_to_read_first_stays_small() -> None:
    """Some 250 lines that fit the screen, and nothing but Node."""
    text = (KIT / "js" / "verify.mjs").read_text()
    assert len(text.splitlines()) <= 250
    assert max(map(len, text.splitlines())) <= 120
    for path in (KIT / "js").glob("*.mjs"):
        assert all(name.startswith(("node:", "./")) for name in re.findall(r'from "(.+?)"', path.read_text()))


@needs_node
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_in_javascript_can_fail(program: str, tmp_path: Path) -> None:
    """A finding that is not there, in each format; and a canonical text that is another."""
    kit = tmp_path / "kit"
    shutil.copytree(KIT, kit, ignore=shutil.ignore_patterns("make", "js", "__pycache__"))
    covered, *_ = told_by(program)
    spoiled = [path for path in sorted(kit.glob("*/good/expected.json")) if path.parts[-3] in covered]
    for path in spoiled:
        expected = json.loads(path.read_bytes())
        path.write_text(json.dumps(expected | {"exit": 1, "findings": [EXTRA]}))
    vectors = kit / "canonical-json" / "replay.json"
    vectors.write_text(vectors.read_text().replace('"canonical": "', '"canonical": " ', 1))
    *_, failed = told_by(program, kit)
    assert failed == len(spoiled) + (program == "verify.mjs")


EXTRA = {"code": "never", "line": 1, "path": None, "severity": "error"}


PAGES = Path(__file__).parents[1] / "docs" / "formats"
CLAUSE = re.compile(r"^(\d+[a-z]?\.\d+[a-z]?)\.? ", re.MULTILINE)
PLAIN_CLAUSE = re.compile(r"^(\d+)\. ", re.MULTILINE)
TABLE_ROW = re.compile(r"^\| (\d[\da-z.]*) \| (.+) \|$", re.MULTILINE)


def clause_table() -> dict[str, dict[str, str]]:
    """By page and clause, what the table of the kit says."""
    sections = re.split(r"^## (\S+)\n", (KIT / "CLAUSES.md").read_text(), flags=re.MULTILINE)[1:]
    return {
        page: dict(TABLE_ROW.findall(text)) for page, text in zip(sections[::2], sections[1::2], strict=True)
    }


def test_every_clause_has_a_case_or_a_reason() -> None:
    """No clause is forgotten, and no row is about a clause that is gone."""
    table = clause_table()
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text()
        clauses = CLAUSE.findall(text) or PLAIN_CLAUSE.findall(text)
        assert list(table.pop(page.name)) == clauses, page.name
    assert table == {}


def test_every_case_of_the_table_exists_and_every_case_shows_a_clause() -> None:
    """Both ways, so that a case that is added says what for."""
    named = [
        name
        for rows in clause_table().values()
        for cell in rows.values()
        for name in re.findall("`(.+?)`", cell)
    ]
    known = {str(case) for case in CASES} | set(VECTORS)
    for name in named:
        assert fnmatch.filter(known, name), f"{name} is no case"
    against = {case for case in map(str, CASES) if case.startswith("replay-log-against/")}
    shown = {case for name in named for case in fnmatch.filter(known, name)}
    assert sorted(set(map(str, CASES)) - shown - against) == []


def test_every_format_has_a_good_and_a_bad_case() -> None:
    """And the page names every code that occurs."""
    page = (KIT / "README.md").read_text()
    by_format: dict[str, set[int]] = {}
    for case in CASES:
        expected = json.loads((KIT / case / "expected.json").read_bytes())
        by_format.setdefault(case.parts[0], set()).add(expected["exit"])
        if case.parts[0] not in ("bundle", "test-case", "action", "record", "pack"):
            assert all(f"`{finding['code']}`" in page for finding in expected["findings"])
    assert by_format.keys() == FORMATS.keys()
    assert all({0, 1} <= exits for exits in by_format.values())
