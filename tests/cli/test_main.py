"""The top level: help, version, dispatch, and the exit status of every kind of end."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module

import click
import pytest

import reenact
from reenact import cli, errors
from reenact.cli import terminal
from tests.cli import commands


def test_help_lists_every_verb(capsys):
    """Help goes to stdout and is good."""
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    for verb, summary in cli.VERBS.items():
        assert f"  {verb}" in out
        assert summary in out


@pytest.mark.parametrize("argument", ["-h", "help"])
def test_help_has_other_names(argument, capsys):
    """What people try first works."""
    assert cli.main([argument]) == 0
    assert capsys.readouterr().out == cli.help_text()


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_help_in_three_ways(verb, capsys):
    """``help VERB``, ``VERB -h`` and ``VERB --help`` say the same."""
    texts = set()
    for words in (["help", verb], [verb, "-h"], [verb, "--help"]):
        assert cli.main(words) == 0
        texts.add(capsys.readouterr().out)
    assert len(texts) == 1
    assert f"Usage: reenact {verb}" in texts.pop()


def test_help_for_what_is_no_verb_is_wrong_usage(capsys):
    """As the verb itself."""
    assert cli.main(["help", "hsah"]) == 3
    assert "unknown verb 'hsah'; did you mean 'hash'?" in capsys.readouterr().err


def test_nothing_to_do_is_wrong_usage(capsys):
    """Without a verb the help goes to stderr."""
    assert cli.main([]) == 3
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", cli.help_text())


def test_version(capsys):
    """One line: the name and the number."""
    import reenact

    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"reenact {reenact.__version__}\n"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("hsah", "reenact: unknown verb 'hsah'; did you mean 'hash'?\n"),
        ("zzz", "reenact: unknown verb 'zzz'; reenact --help lists them\n"),
        ("--jso", "reenact: unknown option '--jso'; reenact --help lists them\n"),
        ("a\n\x1b[31m", "reenact: unknown verb 'a\\n\\x1b[31m'; reenact --help lists them\n"),
    ],
)
def test_an_unknown_verb_is_one_line_with_the_nearest(argument, message, capsys):
    """Exit 3; nothing from outside steers the terminal."""
    assert cli.main([argument]) == 3
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_a_command_that_matches_its_row(verb):
    """The table's summary is the first sentence of the verb's own help."""
    loaded = import_module(f"reenact.cli.{verb}").command
    assert loaded.name == verb
    assert loaded.get_short_help_str(limit=200).rstrip(".") == cli.VERBS[verb]


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_explains_itself(verb, capsys):
    """--help is good and names the whole command."""
    assert cli.main([verb, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: reenact {verb} ")


@pytest.mark.parametrize("verb", cli.VERBS)
def test_click_usage_errors_are_ours(verb, capsys):
    """One line, exit 3, and where to read more."""
    assert cli.main([verb, "--no-such-option"]) == 3
    err = capsys.readouterr().err
    assert err.startswith("reenact: ")
    assert err.endswith(f"; see: reenact {verb} --help\n")
    assert err.count("\n") == 1


def test_the_choices_of_a_missing_option_stand_in_the_line(capsys):
    """Click lists them on lines of their own."""
    assert cli.main(["convert", "x"]) == 3
    err = capsys.readouterr().err
    assert "Choose from: replay-log, replay-log-legacy, receipt" in err
    assert "\\n" not in err


ENDS = {
    "a check failed": (errors.CheckFailed("2 problems"), 1, "2 problems"),
    "a replay diverged": (errors.Diverged("call 3 differs"), 1, "call 3 differs"),
    "a live call was blocked": (errors.LiveCallBlocked("connect"), 1, "connect"),
    "bad input": (errors.FormatError("not JSON", file="a", line=3), 2, "a:3: not JSON"),
    "a newer version": (errors.UnknownVersion("newer"), 2, "newer"),
    "a busy directory": (errors.StoreError("runs/a: in use"), 2, "runs/a: in use"),
    "a missing file": (
        FileNotFoundError(2, "No such file or directory", "x"),
        2,
        "x: No such file or directory",
    ),
    "a full disk": (OSError(28, "No space left on device"), 2, "[Errno 28] No space left on device"),
    "our usage error": (errors.UsageError("no such format"), 3, "no such format"),
    "a usage error of click": (click.UsageError("both given"), 3, "both given"),
    "a file error of click": (click.FileError("x", "gone"), 2, "Could not open file 'x': gone"),
    "a defect": (
        KeyError("x"),
        70,
        "internal error: KeyError: 'x' (set REENACT_DEBUG=1 for the traceback, and please report it)",
    ),
}


@pytest.mark.parametrize(("error", "status", "line"), ENDS.values(), ids=ENDS)
def test_every_error_has_its_status_and_its_line(error, status, line, monkeypatch, capsys):
    """The mapping is central, so that no verb needs one of its own."""
    monkeypatch.delenv("REENACT_DEBUG", raising=False)
    assert terminal.report(error) == status
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"reenact: {line}\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_ctrl_c_is_quiet(error, capsys):
    """130, as the shell says it."""
    assert terminal.report(error) == 130
    assert capsys.readouterr().err == ""


def test_debug_adds_the_traceback(monkeypatch, capsys):
    """The line stays last."""
    monkeypatch.setenv("REENACT_DEBUG", "1")
    assert terminal.report(KeyError("x")) == 70
    err = capsys.readouterr().err
    assert err.splitlines()[0] == "KeyError: 'x'"
    assert err.splitlines()[-1].startswith("reenact: internal error")


def test_a_reader_that_goes_away_is_no_error():
    """A closed pipe ends the command without a word."""
    program = "import sys; from reenact.cli import main; sys.stdin.read(); sys.exit(main(['schema']))"
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    child.stdout.close()
    child.stdin.close()
    assert child.wait(60) == 141
    assert child.stderr.read() == b""
    child.stderr.close()


def test_the_module_is_the_command():
    """python -m reenact passes the exit status on."""
    done = subprocess.run([sys.executable, "-m", "reenact", "hsah"], capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stderr == "reenact: unknown verb 'hsah'; did you mean 'hash'?\n"


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_nothing_slow(argument):
    """They are answered from the table."""
    program = (
        f"import sys; from reenact.cli import main; main([{argument!r}]); "
        "print(sorted({'click', 'msgspec', 'orjson', 'rich', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


ON_A_PATH = {
    "checkout": ["PATH", "-o", "out"],
    "convert": ["PATH", "--to", "trace"],
    "diff": ["PATH", "PATH"],
    "disclose": ["PATH", "2", "--field", "data.tool", "--seal", "PATH"],
    "export": ["PATH", "--to", "atif", "-o", "out"],
    "files": ["PATH"],
    "fork": ["PATH", "-o", "out", "--at", "2", "--", "true"],
    "hash": ["PATH"],
    "import": ["PATH", "-o", "out"],
    "index": ["PATH", "-o", "out"],
    "ls": ["PATH"],
    "pack": ["PATH", "-o", "runs.pack"],
    "prove": ["PATH", "2", "--seal", "PATH"],
    "prune": ["PATH", "--keep", "1"],
    "publish": ["PATH", "-o", "out"],
    "pull": ["PATH", "out"],
    "push": ["PATH", "file://CWD/stored"],
    "query": ["select 1", "PATH"],
    "recover": ["PATH"],
    "replay": ["PATH", "--", "true"],
    "seal": ["PATH", "--key", "PATH"],
    "shadow": ["PATH", "-o", "out", "--", "true"],
    "show": ["PATH"],
    "stats": ["PATH"],
    "test": ["PATH"],
    "update": ["PATH", "--", "true"],
    "validate": ["PATH"],
    "verify": ["PATH"],
    "view": ["PATH", "--no-open"],
}
RUNS_ALL = """
import contextlib, io, json, sys
from reenact.cli import main
for line in sys.stdin:
    words, out, err = json.loads(line), io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    out.flush(), err.flush()
    print(json.dumps([status, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()]))
"""

# Root may read everything, unless it gives that up.
WITH_LESS_RIGHTS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


def run_all_on(path, cwd, before=(), verbs=tuple(ON_A_PATH)):
    """Every verb on *path*, all in one process: by verb what came, as status, stdout and stderr."""
    words = {
        verb: [word.replace("PATH", path).replace("CWD", str(cwd)) for word in ON_A_PATH[verb]]
        for verb in verbs
    }
    done = subprocess.run(
        [*before, sys.executable, "-c", RUNS_ALL],
        input="\n".join(json.dumps([verb, *words[verb]]) for verb in verbs),
        cwd=cwd,
        env=commands.ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return dict(zip(verbs, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.slow
def test_a_missing_path_is_named_alike(tmp_path):
    """As it was typed, in the system's words, and the exit status is 2."""
    for verb, (status, out, err) in run_all_on("runs/nowhere", tmp_path).items():
        assert err.startswith("reenact: runs/nowhere: No such file or directory"), (verb, err)
        assert (status, out, err.count("\n")) == (2, "", 1), (verb, err)
    assert {each.name for each in tmp_path.iterdir()} <= {"out"}  # with the lock of an index


needs_rights = pytest.mark.skipif(
    bool(WITH_LESS_RIGHTS) and not shutil.which("setpriv"), reason="root may read everything"
)


@pytest.mark.slow
@needs_rights
def test_a_path_that_may_not_be_read_is_named_alike(tmp_path):
    """The path, then the system's words, and the exit status is 2: of a folder, and of a file."""
    (tmp_path / "closed").mkdir(mode=0)
    (tmp_path / "file").touch(mode=0)
    folder = run_all_on("closed", tmp_path, WITH_LESS_RIGHTS)
    for verb, (status, _, err) in folder.items():
        assert re.match(r"reenact: closed(/\S+)?: Permission denied", err), (verb, err)
        assert (status, err.count("\n")) == (2, 1), (verb, err)
    verbs = ("convert", "diff", "hash", "import", "index", "publish", "query", "show", "validate", "verify")
    for verb, (status, _, err) in run_all_on("file", tmp_path, WITH_LESS_RIGHTS, verbs).items():
        assert (status, err) == (2, "reenact: file: Permission denied\n"), (verb, err)


@pytest.mark.slow
@needs_rights
def test_a_run_with_a_file_that_may_not_be_read_is_named_alike(tmp_path):
    """It is the file that is named, by the path that was typed, and never the output."""
    with reenact.capture(tmp_path / "runs" / "one"):
        pass
    (tmp_path / "runs" / "one" / "events.jsonl").chmod(0)
    others = ("hash", "ls", "prune", "pull", "seal", "test")
    verbs = tuple(verb for verb in ON_A_PATH if verb not in (*others, "disclose", "import", "prove", "view"))
    for verb, (status, _, err) in run_all_on("runs/one", tmp_path, WITH_LESS_RIGHTS, verbs).items():
        assert err.startswith("reenact: runs/one/events.jsonl: Permission denied"), (verb, err)
        assert (status, err.count("\n")) == (2, 1), (verb, err)


@pytest.mark.slow
def test_a_file_where_a_capture_is_wanted_is_named_alike(tmp_path):
    """It is called what it is, and the exit status is 2; nothing is said of files that nobody named."""
    (tmp_path / "notes").write_text("hello\n")
    verbs = tuple(verb for verb in ON_A_PATH if verb != "test")
    for verb, (status, _, err) in run_all_on("notes", tmp_path, verbs=verbs).items():
        assert re.match(r"reenact: notes(:1)?: \S", err), (verb, err)
        assert (status, err.count("\n")) == (2, 1), (verb, err)
    verbs = ("checkout", "files", "fork", "recover", "replay", "update")
    for verb, (_, _, err) in run_all_on("notes", tmp_path, verbs=verbs).items():
        assert err == "reenact: notes: Not a directory; name a capture directory\n", verb


@pytest.mark.parametrize("words", ["show {}", "diff {} {}", "verify {}", "convert {} --to trace"])
def test_a_pipe_is_named(words):
    """As a shell passes the output of a command: a run is read in several places, a pipe only once."""
    reading, writing = os.pipe()
    os.close(writing)
    done = subprocess.run(
        commands.command(*words.format(*[f"/dev/fd/{reading}"] * 2).split()),
        env=commands.ENVIRONMENT,
        pass_fds=[reading],
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(reading)
    assert done.returncode == 2
    assert done.stderr.startswith(f"reenact: /dev/fd/{reading}: a pipe can be read only once; ")


def test_what_is_printed_can_be_pasted():
    """A shell reads the words back, whatever is in them."""
    words = ["a b", "two\nlines", "it's", "\t\\n", "\x1b[31m", "ünï", "a'\n'b", "\u2028"]
    line = terminal.shell_line([sys.executable, "-c", "import sys; print(sys.argv[1:])", *words])
    assert line.isprintable()
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == f"{words}\n"


def run_with_encoding(encoding, *words, cwd):
    environment = commands.ENVIRONMENT | {"PYTHONIOENCODING": encoding}
    return subprocess.run(
        commands.command(*words),
        cwd=cwd,
        env=environment,
        capture_output=True,
        encoding=encoding,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_output_that_is_not_utf_8_never_fails(encoding, tmp_path):
    """A sign without a code is written as an escape; JSON stays JSON."""
    with reenact.capture(tmp_path / "run") as run:
        run.final_output = "✓ fünf 🙂"
    for words in (["--help"], ["show", "run"], ["stats", "run"], ["verify", "run"], ["diff", "run", "run"]):
        done = run_with_encoding(encoding, *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    done = run_with_encoding(encoding, "show", "run", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["finalOutput"] == "✓ fünf 🙂"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_error(closed, tmp_path):
    """As a service or a cron job may have them; the recorded command has them at the null device."""
    code = "import os, uuid; uuid.uuid4(); print(os.read(0, 9)); os.write(2, b'x')"
    record = " ".join(
        map(shlex.quote, commands.command("record", "-o", "a", "--", sys.executable, "-c", code))
    )
    show = " ".join(map(shlex.quote, commands.command("show", "a")))
    line = f"{record} {closed} && {show} {closed}"
    subprocess.run(["sh", "-c", line], cwd=tmp_path, env=commands.ENVIRONMENT, check=True)
    assert cli.main(["verify", str(tmp_path / "a")]) == 0


def test_a_working_folder_that_was_removed_is_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert cli.main(["record", "-o", "run", "--", "true"]) == 2
    assert capsys.readouterr().err == "reenact: the working folder was removed; go to another one\n"
