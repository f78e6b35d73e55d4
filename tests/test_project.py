"""What the project promises as a whole: its public surface, its documents, its tools."""

import ast
import importlib
import inspect
import os
import pydoc
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import click
import pytest
from bench import __main__ as bench
from bench.figure import Figure, ShareOfSpeed, TimesAsLong, best_in_turns

import reenact
from reenact.cli import VERBS

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
SCRIPTS = Path(sys.executable).parent


# The public surface


def test_public_names_are_pinned():
    """A name is added or removed on purpose only."""
    assert reenact.__all__ == [
        "Artifact",
        "Capsule",
        "CapsuleSummary",
        "CaptureSink",
        "CheckFailed",
        "CheckoutReport",
        "ConvertReport",
        "DemoReport",
        "DiffReport",
        "DigestMismatch",
        "Disclosure",
        "Diverged",
        "DoctorReport",
        "ExportReport",
        "FileCaptureSink",
        "FileHash",
        "FilesReport",
        "ForkReport",
        "FormatError",
        "ImportReport",
        "IndexReport",
        "KeygenReport",
        "LiveCallBlocked",
        "PackingReport",
        "PageReport",
        "Price",
        "PruneReport",
        "PublishReport",
        "PullReport",
        "PushReport",
        "QueryReport",
        "QueryResult",
        "RecordingReport",
        "RecoverReport",
        "ReenactError",
        "ReplayReader",
        "ReplayReport",
        "ReplayWriter",
        "Run",
        "RunsReport",
        "SamplesReport",
        "SealReport",
        "ShadowReport",
        "StatsReport",
        "StepMoment",
        "StepsReport",
        "StoreError",
        "StoredRun",
        "SuiteReport",
        "UnknownVersion",
        "UpdateReport",
        "UsageError",
        "ValidateReport",
        "VerifyReport",
        "VerifyRunsReport",
        "WatchRound",
        "__version__",
        "capture",
        "checkout",
        "convert",
        "demo",
        "diff",
        "disclose",
        "doctor_command",
        "export_runs",
        "files",
        "find_capsule",
        "find_steps",
        "fork",
        "fork_command",
        "fork_samples",
        "fork_tree",
        "hash_files",
        "import_runs",
        "index",
        "keygen",
        "list_capsules",
        "list_runs",
        "list_schemas",
        "open_artifact",
        "open_query",
        "pack",
        "play",
        "project_prices",
        "prove",
        "prune",
        "publish",
        "pull",
        "push",
        "query",
        "record_command",
        "recover",
        "replay",
        "replay_command",
        "run",
        "schema",
        "seal",
        "shadow",
        "shadow_steps",
        "show_runs",
        "stats",
        "test",
        "tool",
        "transcript",
        "update_command",
        "validate",
        "verify",
        "verify_runs",
        "view",
        "watch_tests",
        "write_first_test",
        "write_page",
    ]
    assert dir(reenact) == reenact.__all__


def test_public_names_are_sorted():
    """One order, so that a diff shows what changed."""
    assert reenact.__all__ == sorted(reenact.__all__)


@pytest.mark.parametrize("name", reenact.__all__)
def test_every_public_name_resolves(name):
    """Names are resolved on first use; none is stale."""
    assert getattr(reenact, name) is not None


def test_other_names_are_attribute_errors():
    """The lazy lookup says what Python says."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = reenact.nothing


def test_types_are_shipped():
    """Type checkers find the marker."""
    assert files("reenact").joinpath("py.typed").is_file()


def test_importing_reenact_is_cheap():
    """Heavy libraries are imported where they are used."""
    heavy = {
        "click",
        "rich",
        "msgspec",
        "orjson",
        "starlette",
        "uvicorn",
        "httpx2",
        "cryptography",
        "yaml",
        "asyncio",
    }
    program = f"import sys, reenact; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Names

SHARED_NAMES = {
    "Message",
    "ToolCall",
    "ToolResult",
}
"""Names that `reenact.testing` gives its users and wire formats have too."""


def public_classes():
    """By name, the rooms in which a public class of this name stands."""
    package = ROOT / "src" / "reenact"
    found = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(package).parts[0])
    return found


def test_no_two_public_classes_share_a_name():
    """One name, one thing; wire formats keep the names that their own documents give them."""
    shared = {
        name for name, rooms in public_classes().items() if len(rooms) > 1 and set(rooms) != {"formats"}
    }
    assert shared - SHARED_NAMES == set()
    assert SHARED_NAMES - shared == set(), "shared no more; take it out of the list"


MOST_ANY_PER_1000_LINES = 11


def test_types_say_more_than_any():
    """`Any` is for what other libraries hand over; JSON has a type, and what is passed on is an object."""
    texts = [path.read_text() for path in (ROOT / "src" / "reenact").rglob("*.py")]
    lines = sum(text.count("\n") for text in texts)
    found = sum(len(re.findall(r"\bAny\b", text)) for text in texts)
    assert found / lines * 1000 <= MOST_ANY_PER_1000_LINES


def test_the_rooms_of_the_reading_side_share_no_class_name():
    """Whoever reads an artifact meets each name once; a format's own name excepted."""
    reading = {
        "analysis",
        "check",
        "cli",
        "commands",
        "comparing",
        "corpus",
        "store",
        "suite",
        "trace",
        "values",
        "viewer",
    }
    shared = {name: rooms for name, rooms in public_classes().items() if len(rooms) > 1}
    assert {name: rooms for name, rooms in shared.items() if reading & set(rooms)} == {}


# Programs

STARTS_A_PROGRAM = re.compile(
    r"subprocess\.(run|Popen|call|check_call|check_output)\([^)]|os\.(system|popen|exec\w+|posix_spawn\w*|spawn\w+)\("
    r"|webbrowser\.open|create_subprocess_\w+\(|ProcessPoolExecutor\([^)]"
)


def test_the_page_on_security_lists_every_file_that_starts_a_program():
    """Whoever reads artifacts of others knows what can run; what the agent starts goes through the seams."""
    package = ROOT / "src" / "reenact"
    table = (
        (ROOT / "SECURITY.md").read_text().partition("## What can start a program")[2].partition("\n## ")[0]
    )
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if STARTS_A_PROGRAM.search(path.read_text())
    }
    assert {file for file in found if not file.startswith("seams/")} == set(
        re.findall(r"`([\w/]+\.py)`", table)
    )


# How the code is put together

PACKAGE = ROOT / "src" / "reenact"
FEW_LINES = 60
WITHOUT_IMPORTS = {"cli"}
"""Packages whose modules are found by name: every verb has a file of its own."""
TAKE_LANE_NAMES_APART = {"boundary.py", "gateway/lane.py", "lane_name.py"}


def imported_modules(path, modules):
    """The names of the modules of reenact that the file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else node.module for name in names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


FOR_VERBS = (
    "errors",
    "canonical",
    "formats",
    "analysis.brief",
    "store.outfile",
    "suite.reports",
    "shadowing.report",
)
"""Rooms and modules for parsing, printing and writing reports."""
FOR_ONE_VERB = {
    "check.actions.schema.member_path",
    "check.findings.severity_of",
    "check.kinds.holds_many_runs",
    "check.kinds.is_folder_of_runs",
    "analysis.stats.histogram",
    "comparing.differences.show_value",
    "forks.change.error_type",
    "gateway.upstreams.read_upstreams",
    "gateway.upstreams.variables",
    "replayer.volatile.beyond_defaults",
    "shadowing.steps.step_lines",
    "store.remote.remote_name",
}
"""What else they parse and print with."""


def test_verbs_call_public_functions():
    """What the command line can do, Python can do; a verb parses, calls one of them, and prints."""
    called = set()
    for path in (PACKAGE / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reenact."):
                module = node.module.removeprefix("reenact.")
                if not module.startswith(("cli", *FOR_VERBS)):
                    called |= {(module, alias.name) for alias in node.names if alias.name[0].islower()}
    others = {f"{module}.{name}" for module, name in called if name not in reenact.__all__}
    assert others == FOR_ONE_VERB


def test_no_small_module_belongs_to_another_one():
    """A module of a few lines that only one module of its package imports is a part of that one."""
    modules = {
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts): path for path in PACKAGE.rglob("*.py")
    }
    importers = defaultdict(set)
    for name, path in modules.items():
        for imported in imported_modules(path, modules):
            importers[imported].add(name)
    small = [
        name
        for name, path in modules.items()
        if path.read_text().count("\n") < FEW_LINES and path.parent.name not in WITHOUT_IMPORTS
    ]
    parts = [
        name
        for name in small
        if len(importers[name]) == 1 and importers[name].pop().rpartition(".")[0] == name.rpartition(".")[0]
    ]
    assert parts == []


def test_lane_names_are_taken_apart_in_one_place():
    """What a dot or a slash in a name means is known to the type, and to those who make names."""
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if re.search(
            r"lane_name import (\(\s*)?([\w, \n]*\b)?(TASK|INSIDE|LOOSE|PROCESS)\b|^TASK: ",
            path.read_text(),
            re.MULTILINE,
        )
    }
    assert found == TAKE_LANE_NAMES_APART


# Tools


def test_the_import_contracts_hold():
    """Imports point down, and the two sides never meet."""
    done = subprocess.run(
        [SCRIPTS / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("lock", sorted(path.name for path in (ROOT / "requirements").glob("*.txt")))
def test_pins_have_hashes_and_name_no_address(lock):
    """What is installed is what was pinned, from wherever it comes."""
    text = (ROOT / "requirements" / lock).read_text()
    requirements = re.split(r"\n(?=\S)", re.sub(r"\s*#.*", "", text).strip())
    assert len(requirements) > 3
    for requirement in requirements:
        assert re.match(r"[\w.\[\]-]+==\S+", requirement), requirement
        assert "--hash=sha256:" in requirement, requirement
    assert "://" not in text
    assert "index-url" not in text


def test_the_table_of_versions_is_what_is_tested():
    """The oldest and the newest of each package, as the lock files have them."""
    rows = re.findall(
        r"^\| `([\w-]+)` \| ([\d.]+) \| ([\d.]+) \|$", (ROOT / "docs/platforms.md").read_text(), re.M
    )
    assert len(rows) > 10
    for name, *versions in rows:
        for lock, version in zip(("oldest", "dev"), versions, strict=True):
            pins = (ROOT / "requirements" / f"{lock}.txt").read_text()
            assert re.search(rf"^{name}(\[[\w,]+\])?=={re.escape(version)} ", pins, re.M), (name, lock)


def test_the_site_shows_every_example():
    """Its tool takes a language and a title; other words would cost the block and what follows."""
    understood = re.compile(r'\s*```+(?:[\w-]+(?: title="[^"]+")?)?')
    for path in (ROOT / "docs").rglob("*.md"):
        lines = path.read_text(encoding="utf-8").splitlines()
        fences = [line for line in lines if line.lstrip().startswith("```")]
        assert [line for line in fences if not understood.fullmatch(line)] == [], path


def test_the_site_has_every_page():
    """The tool that makes it knows them all."""
    text = (ROOT / "mkdocs.yml").read_text()
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if page not in text} == set()


@pytest.mark.parametrize("name", reenact.__all__)
def test_the_api_page_has_every_public_name(name):
    """In a heading or a table."""
    page = (ROOT / "docs" / "api.md").read_text()
    assert f"## {name}\n" in page or f"| `{name}` |" in page or f"`reenact.{name}`" in page


@pytest.mark.parametrize(
    "name", [name for name in reenact.__all__ if inspect.isroutine(getattr(reenact, name))]
)
def test_the_api_page_has_an_executed_example_of_every_function(name):
    """``test_tutorial.py`` executes them."""
    page = (ROOT / "docs" / "api.md").read_text()
    examples = "".join(re.findall(r"^```pycon\n(.*?)```", page, re.DOTALL | re.MULTILINE))
    assert re.search(rf"\breenact\.{name}\b", examples)


def test_what_the_pages_import_is_listed_for_extensions():
    """Whoever follows a page uses nothing that may change; what is listed is there."""
    section = (ROOT / "docs" / "api.md").read_text().partition("## Extensions\n")[2]
    rows = re.findall(r"\| `(reenact\.[\w.]+)` \| (.+) \|$", section, re.MULTILINE)
    listed = {(module, name) for module, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert [each for each in listed if not hasattr(importlib.import_module(each[0]), each[1])] == []
    pages = [
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "howto").glob("*.md"),
        *(ROOT / "examples").glob("*.py"),
    ]
    named = {
        (module, name)
        for page in pages
        if page.name not in ("api.md", "architecture.md")
        for module, name in re.findall(r"`(reenact(?:\.\w+)+)\.(\w+)", page.read_text())
    }
    imported = {
        (module, name)
        for page in pages
        for module, names in re.findall(
            r"^from (reenact\.[\w.]+) import ([\w, ]+)$", page.read_text(), re.MULTILINE
        )
        for name in names.split(", ")
    }
    public = re.compile(r"reenact\.(testing|events)\b")
    assert {each for each in named | imported if not public.match(each[0])} == listed


def test_help_shows_every_public_name():
    """``help(reenact)`` is where people look first."""
    shown = pydoc.plain(pydoc.render_doc(reenact))
    assert [name for name in reenact.__all__ if name[0] != "_" and not re.search(rf"\b{name}\b", shown)] == []


def test_base_requirements_are_the_packages_own():
    """Two lists of one thing stay equal."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[<>=!~\[; ]", dependency)[0] for dependency in project["dependencies"]}
    listed = (ROOT / "requirements" / "base.in").read_text().splitlines()
    names = {re.split(r"[<>=!~\[; ]", line)[0] for line in listed if line and not line.startswith("#")}
    assert names == declared


def test_the_quick_tests_look_at_every_room():
    """Those of the package's rooms that have tests of their own."""
    quick = re.search(r"^QUICK := (.*?)\n\n", (ROOT / "Makefile").read_text(), re.MULTILINE | re.DOTALL)
    assert quick is not None
    rooms = {path.parent.name for path in (ROOT / "src" / "reenact").glob("*/__init__.py")}
    tested = {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")}
    assert {room for room in rooms & tested if f"tests/{room}" not in quick[1]} == set()


TARGETS = (
    *("setup", "setup-browser", "demo", "docs", "quick", "test", "test-agents", "lint"),
    *("test-pythons", "test-oldest", "test-ray", "test-producers"),
    *("bench", "format", "pins", "screenshots"),
)


@pytest.mark.parametrize("target", TARGETS)
def test_make_has_the_target(target, tmp_path):
    """Documented targets exist and are not files."""
    done = make(tmp_path, "--dry-run", target)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"^\.PHONY:.* {target}\b", (ROOT / "Makefile").read_text(), re.MULTILINE)


def ci_commands():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    return [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]


def test_ci_calls_make_and_nothing_else():
    """What a developer runs is what decides, within a bound of time."""
    assert [command for command in ci_commands() if "make" in command] == [
        'make setup-browser || echo "no browser: the tests that need one are skipped"',
        "make lint",
        "timeout --kill-after=30 31m make test",
        "timeout --kill-after=30 5m make test-agents",
    ]


def test_ci_tests_a_clone_with_the_projects_name(tmp_path):
    """A test that looks for our name in a path fails in the clone of every user."""
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "make").write_text('#!/bin/sh\nbasename "$PWD"\n')
    (tools / "make").chmod(0o755)
    run_in = {"cwd": folder, "check": True, "capture_output": True, "text": True}
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "init", "--quiet"], **run_in)
    subprocess.run(["git", "add", "."], **run_in)
    subprocess.run(["git", *identity, "commit", "--quiet", "-m", "Begin"], **run_in)
    path = os.pathsep.join([str(tools), os.environ["PATH"]])
    done = subprocess.run([".ci/run"], env=os.environ | {"PATH": path}, **run_in)
    assert done.stdout.split() == ["reenact"] * 4


def test_tests_install_nothing_on_the_system():
    """Neither as root nor by asking: a browser is a target of its own."""
    rules = re.findall(r"^(?:quick|test):.*\n(?:\t.*\n)+", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert len(rules) == 2
    assert not [rule for rule in rules if "browser" in rule or "apt" in rule]


# Documents


def first_screen():
    return (ROOT / "README.md").read_text().partition("\n## ")[0]


def commands_of(text):
    """The commands of console blocks, each with the lines it is said to print."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def make(tmp_path, *arguments):
    """make with the running interpreter's own tools, taken as set up already."""
    ready = tmp_path / "ready"
    ready.touch()
    return subprocess.run(
        ["make", f"BIN={SCRIPTS}", f"READY={ready}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_first_screen_has_two_commands():
    """A newcomer has no choice to make."""
    assert [command for command, _ in commands_of(first_screen())] == ["make demo", "make test"]


def test_the_demo_runs(tmp_path):
    """README's first command, as written."""
    done = make(tmp_path, "demo")
    assert done.returncode == 0, done.stderr
    assert "the same answer" in done.stdout
    assert "event_payload_mismatch" in done.stdout


def test_nobody_is_sent_to_the_package_of_another_project():
    """On PyPI `reenact` is another project's: no page or message fetches it."""
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    fetching = re.compile(r"(?:pip|pipx|uvx)(?: install)?(?: --upgrade)? reenact\b(?!\[)")
    found = {str(path): fetching.findall(path.read_text()) for path in texts if path.name != "install.md"}
    assert {path for path, lines in found.items() if lines} == {str(ROOT / "README.md")}
    assert len(found[str(ROOT / "README.md")]) == 1, "the sentence that warns of it"


EXECUTED = (
    "README.md",
    "docs/cli.md",
    "docs/corpus.md",
    "docs/howto/audit.md",
    "docs/howto/look-at-a-run.md",
    "docs/howto/publish.md",
    "docs/howto/record-and-replay.md",
    "docs/howto/update-and-review.md",
    "docs/howto/volatile-values.md",
    "docs/exporting.md",
    "docs/importing.md",
    "docs/howto/workspaces.md",
)


@pytest.mark.parametrize("page", EXECUTED)
def test_examples_print_what_they_say(page, tmp_path):
    """Every command of the page, run in order in what looks like a fresh clone, with output and status."""
    for name in ("examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    status, ran = 0, 0
    for command, output in commands_of((ROOT / page).read_text()):
        if command.startswith("make "):
            continue  # test_the_demo_runs runs one; the other runs this test
        if command == "echo $?":
            assert output == f"{status}\n"
            continue
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            env=shell_environment(tmp_path),
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        printed = done.stdout.replace(str(tmp_path), "/home/ada")
        # Sorted, because a pipe does not keep the order of stdout and stderr.
        assert sorted(steady(printed)) == sorted(steady(output)), command
        status, ran = done.returncode, ran + 1
    assert ran >= 3


def shell_environment(tmp_path):
    """An environment with ``reenact`` and ``python`` in it, both ours."""
    script = tmp_path / "bin" / "reenact"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m reenact "$@"\n')
    script.chmod(0o755)
    path = os.pathsep.join([str(script.parent), str(SCRIPTS), os.environ["PATH"]])
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1"}


def steady(text):
    """The lines of *text* without what differs from run to run: durations, dates, identifiers, keys."""
    text = re.sub(r" *\b\d+(\.\d+)? (ms|s)\b", " TIME", text)
    text = re.sub(r'"ts": \d{13}\b', '"ts": TIME', text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "DATE", text)
    text = re.sub(r"\b(key|signed by) +sha256:[0-9a-f]{64}", r"\1 ID", text)
    text = re.sub(r"\b(cap|run)_[0-9a-f]{16}\b", r"\1_ID", text)
    text = re.sub(r"\S*/report-\d+\b", "FOLDER", text)
    text = re.sub(r"\(\d+ became \d+\)", "(NUMBERS)", text)
    return re.sub(r"""(order-|")[0-9a-f]{6}\b""", r"\1ID", text).splitlines()


@pytest.mark.parametrize("document", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS])
def test_links_between_documents_lead_somewhere(document):
    """No link to a file that is not there, nor to a heading that is not in it."""
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", document.read_text()):
        path, _, heading = target.partition("#")
        file = document.parent / path if path else document
        assert file.exists(), target
        assert not heading or heading in anchors_of(file.read_text()), target


def anchors_of(text):
    """What a link to each heading of a page says behind the ``#``."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_decision_has_a_number_of_its_own():
    """Under which it can be referred to, and which its title has, too."""
    pages = sorted((ROOT / "docs" / "adr").glob("*.md"))
    numbers = [int(page.name.partition("-")[0]) for page in pages]
    assert len({*numbers}) == len(numbers)
    titles = [re.match(r"# (?:ADR )?(\d+)", page.read_text()) for page in pages]
    assert [int(title[1]) for title in titles if title] == numbers


def test_every_page_can_be_found():
    """From the README or from another page."""
    linked = {
        (document.parent / target).resolve()
        for document in DOCUMENTS
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())
    }
    found = {document for document in DOCUMENTS if {document, document.parent} & linked}
    assert {path.name for path in set(DOCUMENTS) - found} <= {"README.md"}


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_documented(verb):
    """In the section of its verb."""
    section = (
        (ROOT / "docs" / "cli.md").read_text().partition(f"\n## reenact {verb}\n")[2].partition("\n## ")[0]
    )
    options = [
        each for each in import_module(f"reenact.cli.{verb}").command.params if isinstance(each, click.Option)
    ]
    assert section
    assert [each.opts for each in options if not any(name in section for name in each.opts)] == []


WORDS = (
    *("run", "call", "outcome", "event", "seam", "context", "source", "sink"),
    *("divergence", "blob", "seal", "receipt", "lane"),
)


@pytest.mark.parametrize("word", WORDS)
def test_the_glossary_has_the_word(word):
    """Every word of ours is explained once."""
    assert (ROOT / "docs" / "concepts.md").read_text().count(f"\n**{word}**: ") == 1


def sentences_in(text):
    """The texts of a module that have several words, without docstrings and without what is put into them."""
    tree = ast.parse(text)
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in silent)
    return [node.value for node in texts if isinstance(node.value, str) and node.value.count(" ") >= 2]


def test_messages_need_no_word_of_ours():
    """*Seam* and *lane* are for those who read the documents; a member of a format may be called so."""
    found = [
        (path.name, sentence)
        for path in (ROOT / "src" / "reenact").rglob("*.py")
        for sentence in sentences_in(path.read_text())
        if re.search(r"\b(seam|lane)s?\b", sentence)
    ]
    assert [name for name, _ in found] == ["publishing.py"], found


def test_the_glossary_is_short():
    """Nobody has to learn more than thirty words of ours."""
    words = re.findall(r"\*\*([a-z ]+)\*\*", (ROOT / "docs" / "concepts.md").read_text())
    assert len(words) == len(set(words)) <= 30


def test_the_architecture_names_every_room():
    """The page's table is the package's list of rooms."""
    named = set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", text_of_architecture(), re.MULTILINE)))
    )
    rooms = {
        path.stem
        for path in (ROOT / "src" / "reenact").iterdir()
        if not path.name.startswith(("_", "py.typed"))
    }
    assert rooms - named == set()


def modules_in_maps():
    """The modules that the maps of the larger rooms name: in turns a name, or several, and what they do."""
    for block in re.findall(r"^```\n(\w+/ (?:.*\n)+?)```$", text_of_architecture(), re.MULTILINE):
        room = ""
        for line in block.splitlines():
            items = re.split(r"\s{2,}", line.strip())
            if not line.startswith(" "):
                room, *items = items
            for names in items[::2]:
                yield from (f"{room}{name}" for name in names.split(" · "))


def test_the_maps_of_the_larger_rooms_name_modules_that_exist():
    """Whoever looks for a module finds it where the map says."""
    named = set(modules_in_maps())
    assert len(named) > 60
    assert {
        name for name in named if not (PACKAGE / name).is_dir() and not (PACKAGE / f"{name}.py").exists()
    } == set()


def text_of_architecture():
    return (ROOT / "docs" / "architecture.md").read_text()


def test_the_changelog_keeps_format_changes_apart():
    """Readers of formats need not read the rest."""
    unreleased = (ROOT / "CHANGELOG.md").read_text().partition("## Unreleased")[2]
    assert "### Formats" in unreleased


# Bench


def test_every_figure_has_a_file_and_a_function():
    """python -m bench finds them by name."""
    from importlib import import_module

    assert {"canonical", "help", "lines"} <= set(bench.names())
    for name in bench.names():
        assert callable(import_module(f"bench.bench_{name}").figures)


@pytest.mark.parametrize(
    ("bar", "ours_s", "beside_s", "is_ok", "shown"),
    [
        (ShareOfSpeed(0.5), 2.0, 1.0, True, "50%"),
        (ShareOfSpeed(0.5), 2.1, 1.0, False, "48%"),
        (TimesAsLong(3), 3.0, 1.0, True, "3.00 ×"),
        (TimesAsLong(3), 3.1, 1.0, False, "3.10 ×"),
    ],
)
def test_a_bar_decides(bar, ours_s, beside_s, is_ok, shown):
    """At the bar is good, beyond it is not."""
    figure = Figure("what", ours_s, "floor", beside_s, bar)
    assert figure.is_ok is is_ok
    assert shown in bench.table([figure])
    assert bench.table([figure]).endswith("ok" if is_ok else "below")


def test_durations_are_per_call():
    """The slower of two functions is measured as slower."""
    ours_s, beside_s = best_in_turns(lambda: sum(range(20_000)), lambda: sum(range(200)), rounds=3)
    assert 0.01 > ours_s > 10 * beside_s > 0


def test_an_unknown_figure_is_refused(capsys):
    """The message lists the known ones."""
    with pytest.raises(SystemExit):
        bench.main(["nothing"])
    assert "there are canonical, core" in capsys.readouterr().err


_STATE = "process_state.py"
_MAKERS = {
    "Condition",
    "ContextVar",
    "Counter",
    "Event",
    "ExitStack",
    "Lock",
    "RLock",
    "Registry",
    "WeakKeyDictionary",
    "WeakSet",
    "WeakValueDictionary",
    "count",
    "defaultdict",
    "deque",
    "local",
}


def _is_shared_state(name: str, value: ast.expr | None, makers: set[str]) -> bool:
    """An empty table whose name is in capitals is a constant."""
    if isinstance(value, ast.Dict):
        return name.islower() and not value.keys
    if isinstance(value, ast.List):
        return name.islower() and not value.elts
    if not isinstance(value, ast.Call):
        return False
    made = value.func.value if isinstance(value.func, ast.Subscript) else value.func
    maker = made.attr if isinstance(made, ast.Attribute) else getattr(made, "id", "")
    return maker in makers or (name.islower() and maker in ("dict", "list", "set") and not value.args)


def _has_shared_state(text: str) -> bool:
    tree = ast.parse(text)
    values = [
        (target.id, node.value)
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    ]
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    by_thread = {node.name for node in classes if any("local" in ast.unparse(base) for base in node.bases)}
    is_replaced = any(isinstance(node, ast.Global) for node in ast.walk(tree))
    return is_replaced or any(_is_shared_state(name, value, _MAKERS | by_thread) for name, value in values)


def test_one_module_keeps_the_state_of_the_process():
    """Context variables, locks, registries, and names that functions replace; constants are none."""
    modules = (path for path in PACKAGE.rglob("*.py") if _has_shared_state(path.read_text()))
    assert [path.relative_to(PACKAGE).as_posix() for path in modules] == [_STATE]


def test_what_the_contracts_allow_upwards_are_types():
    """The type checker alone imports them; at run time every import points down."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    allowed = {pair for contract in settings["contracts"] for pair in contract["ignore_imports"]}
    for pair in allowed:
        importer, imported = pair.split(" -> ")
        tree = ast.parse((PACKAGE / f"{importer.removeprefix('reenact.')}.py").read_text())
        real = [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
        assert not [name for name in real if name.startswith(imported.removesuffix("**"))], pair


# How far one call goes

WALK = """
import sys, tempfile
from pathlib import Path
import openai, reenact
from reenact.testing import ScriptedProvider, echo

def ask(client, seen):
    ask_once = lambda: client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
    ask_once(), ask_once()
    sys.setprofile(lambda frame, event, _: seen.add(frame.f_code) if event == "call" else None)
    ask_once()
    sys.setprofile(None)

def count(seen):
    package = str(Path(reenact.__file__).parent)
    ours = {(code.co_filename, code.co_qualname) for code in seen if code.co_filename.startswith(package)}
    return len({module for module, _ in ours}), len(ours)

with ScriptedProvider(echo()) as provider, tempfile.TemporaryDirectory() as folder:
    client = openai.OpenAI(base_url=provider.base_url("openai"), api_key="unused", max_retries=0)
    for open_run in (reenact.capture, reenact.replay):
        seen = set()
        run = open_run(Path(folder) / "run")
        run.is_test = True  # which is listened to all the time, and not now and then, before Python 3.12
        with run:
            ask(client, seen)
        print(*count(seen))
"""


def test_a_model_call_takes_a_short_way():
    """A reader meets few modules and functions of ours on it; a little more than now, and no more."""
    done = subprocess.run([sys.executable, "-c", WALK], capture_output=True, text=True, check=True)
    recorded, replayed = ([int(number) for number in line.split()] for line in done.stdout.splitlines())
    assert recorded[0] <= 19, "modules that record a call"
    assert recorded[1] <= 105, "functions that record a call"
    assert replayed[0] <= 17, "modules that replay a call"
    assert replayed[1] <= 65, "functions that replay a call"


def test_the_long_form_has_the_time_it_takes() -> None:
    """One of its tests alone takes longer than a test of the suite may."""
    (line,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if "REENACT_HARD=1" in line]
    suite = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["timeout"]
    (given,) = re.findall(r"-o timeout=(\d+)", line)
    assert int(given) > 10 * suite


def test_every_generator_has_its_long_form_run() -> None:
    """What tries more in the long form is one of its parts."""
    text = (ROOT / "Makefile").read_text()
    parts = re.search(r"^HARD := ((?:.*\\\n)*.*)", text, re.MULTILINE)
    assert parts is not None
    named = [ROOT / part for part in parts[1].replace("\\\n", " ").split()]
    assert [part for part in named if not part.exists()] == []
    asks = re.compile(r"from tests\.hard import|REENACT_HARD")
    longer = [file for file in (ROOT / "tests").rglob("test_*.py") if asks.search(file.read_text())]
    left_out = [file for file in longer if not {file, *file.parents} & {*named}]
    assert left_out == [ROOT / "tests/test_project.py"]
