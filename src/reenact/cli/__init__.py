"""The command line: one file per verb.

A verb is a row in ``VERBS`` and a module of its name with a click command called ``command``.
Help and version do not import click, which is slow.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reenact._version import __version__

if TYPE_CHECKING:
    from click import Command

GROUPS = {
    "Run an agent": {
        "record": "Run a command and record it",
        "replay": "Run a recorded command again, answered from its capture",
        "update": "Run a recorded command again, and record only what differs",
        "fork": "Run a recorded command again, with something changed on the way",
        "shadow": "Make recorded runs again with a changed agent, prompt or model",
        "doctor": "Find what differs from run to run, and write rules for it",
        "recover": "Complete captures that were interrupted",
        "demo": "Record, replay, break and verify a small agent, without key or network",
    },
    "Look at a run": {
        "show": "List the steps of a run, or follow and play it",
        "view": "Look at recorded runs in the browser",
        "diff": "Compare two runs, aligned by what they did",
        "stats": "Count over one run, or all runs in folders",
        "files": "List the files of a run at one of its steps, or what a step changed",
        "checkout": "Put the files of a run at one of its steps into a folder",
    },
    "Judge it": {
        "test": "Run assertions over recorded runs",
        "verify": "Check that an artifact is valid and consistent",
        "validate": "Check whether actions are well formed and allowed",
    },
    "Prove and share it": {
        "publish": "Write a run's log without its private parts",
        "seal": "Sign a run",
        "keygen": "Make a pair of keys for seals",
        "prove": "Prove that an event is at its place in a sealed run",
        "disclose": "Reveal chosen fields of a sealed event, with proof",
    },
    "Keep and query many": {
        "index": "Make tables of many runs, and keep them up to date",
        "query": "Query runs with SQL",
        "pack": "Put many runs into one file that is read in place",
        "push": "Put runs into object storage",
        "pull": "Get runs out of object storage or out of a pack",
        "ls": "List the runs in object storage or in a pack",
        "prune": "Delete captures that are no longer needed",
    },
    "Other formats": {
        "convert": "Write an artifact in another format",
        "import": "Make captures from recordings of other tools",
        "export": "Write runs in the formats of other tools and trainers",
        "schema": "Print the JSON Schema of a format",
        "hash": "Print the canonical digest of JSON files",
        "capsules": "List the capsules (rules for values), or describe one",
    },
}
"""Verbs by purpose, in the order of the help."""
VERBS = {verb: what for verbs in GROUPS.values() for verb, what in verbs.items()}

_HELP = """\
usage: reenact VERB [ARGUMENT]...

Record an AI agent's run once; replay it offline, exactly, for ever.

{verbs}

reenact help VERB      what the verb takes
reenact --version      the version

exit status: 0 good · 1 differs, fails or is rejected · 2 unreadable or invalid input · 3 wrong usage
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; never raises."""
    try:
        if None in (sys.stdin, sys.stdout, sys.stderr):  # closed by whoever started us
            from reenact.cli.terminal import open_closed_streams

            open_closed_streams()
        encodings = {getattr(sys.stdout, "encoding", "utf-8"), getattr(sys.stderr, "encoding", "utf-8")}
        if encodings != {"utf-8"}:  # a character that the encoding lacks becomes \\u2713; JSON stays valid
            from reenact.cli.terminal import escape_on_output

            escape_on_output()
        status = _dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BaseException as error:
        from reenact.cli.terminal import report

        return report(error)
    return status


def help_text() -> str:
    """Return the text of ``reenact --help``."""
    width = max(map(len, VERBS))
    listed = (
        "\n".join([f"{group}:", *(f"  {verb:<{width}}  {what}" for verb, what in verbs.items())])
        for group, verbs in GROUPS.items()
    )
    return _HELP.format(verbs="\n\n".join(listed))


def _dispatch(arguments: list[str]) -> int:
    """Run a verb; the exit status is what its function returns, 0 for ``None``."""
    first = arguments[0] if arguments else None
    if first == "help" and len(arguments) > 1:
        return _dispatch([arguments[1], "--help"])
    if first in ("-h", "--help", "help"):
        sys.stdout.write(help_text())
        return 0
    if first in ("-V", "--version"):
        sys.stdout.write(f"reenact {__version__}\n")
        return 0
    if first is None:
        sys.stderr.write(help_text())
        return 3
    if first not in VERBS:
        raise _unknown_verb(first)
    from importlib import import_module

    from click.exceptions import Exit

    command: Command = import_module(f"reenact.cli.{first}").command
    command.context_settings.setdefault("help_option_names", ["-h", "--help"])
    try:  # not click's own main, whose exit statuses differ from ours
        with command.make_context(f"reenact {first}", arguments[1:]) as context:
            status = command.invoke(context)
    except Exit as leave:
        return leave.exit_code
    return status if isinstance(status, int) else 0


def _unknown_verb(verb: str) -> Exception:
    from difflib import get_close_matches

    from reenact.errors import UsageError

    what = "option" if verb.startswith("-") else "verb"
    nearest = get_close_matches(verb, VERBS, n=1)
    remedy = f"did you mean {nearest[0]!r}?" if nearest else "reenact --help lists them"
    return UsageError(f"unknown {what} {verb!r}; {remedy}")
