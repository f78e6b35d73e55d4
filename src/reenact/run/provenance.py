"""The origin of a run: its policy, its issue, and its repository with the commit.

Arguments come first, then the environment with the variables of CI, then git.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from reenact.volatile.places import working_folder

POLICY_VARIABLE: Final = "REENACT_POLICY_BUNDLE_ID"
ISSUE_VARIABLE: Final = "REENACT_ISSUE_NUMBER"

_GIT_TIMEOUT_S: Final = 5
_REMOTE: Final = re.compile(r"[a-z][a-z0-9+.-]*://|[^/\\\s]+@[^/\\\s]+:|[^/\\\s:]+\.[^/\\\s:]+:")
"""The URL of a repository; a local path is not one."""

_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "commit": ("GITHUB_SHA", "CI_COMMIT_SHA", "CIRCLE_SHA1", "BUILDKITE_COMMIT", "GIT_COMMIT"),
    "branch": (
        "GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "CIRCLE_BRANCH", "BUILDKITE_BRANCH",
        "GIT_BRANCH",
    ),
    "remote": ("CI_PROJECT_URL", "CIRCLE_REPOSITORY_URL", "BUILDKITE_REPO", "GIT_URL"),
    "issue": (ISSUE_VARIABLE, "CI_MERGE_REQUEST_IID", "CIRCLE_PR_NUMBER", "BUILDKITE_PULL_REQUEST"),
}  # fmt: skip
"""The variables of GitHub, GitLab, CircleCI, Buildkite and Jenkins, by fact."""

RunOrigin = dict[str, str | int | dict[str, str | bool]]
"""Members of ``run_start``."""


def origin_of_run(
    policy_bundle_id: str | None = None,
    issue_number: int | None = None,
    environ: Mapping[str, str] = os.environ,
    folder: Path | None = None,
) -> RunOrigin:
    """The known facts about the origin of a run in *folder*; none is guessed."""
    origin: RunOrigin = {}
    policy = policy_bundle_id or environ.get(POLICY_VARIABLE)
    if policy:
        origin["policyBundleId"] = policy
    issue = _issue_number(environ) if issue_number is None else issue_number
    if issue is not None:
        origin["issueNumber"] = issue
    repo = {**_repo_of_folder(folder or Path(working_folder())), **_repo_of_environment(environ)}
    if repo:
        origin["repo"] = repo
    return origin


def _issue_number(environ: Mapping[str, str]) -> int | None:
    for name in _VARIABLES["issue"]:
        if environ.get(name, "").isdecimal():
            return int(environ[name])
    return _github_issue(environ.get("GITHUB_EVENT_PATH"))


def _github_issue(path: str | None) -> int | None:
    """The issue or pull request of the event that started the workflow."""
    if path is None:
        return None
    try:
        event = json.loads(Path(path).read_bytes())
        numbers = [event[kind]["number"] for kind in ("issue", "pull_request") if kind in event]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return next((number for number in numbers if isinstance(number, int)), None)


def _repo_of_environment(environ: Mapping[str, str]) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {}
    for member in ("remote", "branch", "commit"):
        value = next((environ[name] for name in _VARIABLES[member] if environ.get(name)), None)
        if value is not None:
            found[member] = value
    if environ.get("GITHUB_REPOSITORY"):
        server = environ.get("GITHUB_SERVER_URL", "https://github.com")
        found["remote"] = f"{server}/{environ['GITHUB_REPOSITORY']}"
    return found


@cache
def _repo_of_folder(folder: Path) -> dict[str, str | bool]:
    """The facts of git about the repository of *folder*, read once per process."""
    status = _ask_git(folder, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    if status is None:
        return {}
    found: dict[str, str | bool] = {}
    for name, member in (("branch.oid", "commit"), ("branch.head", "branch")):
        value = re.search(rf"^# {re.escape(name)} ([^\s(]\S*)$", status, re.MULTILINE)
        if value is not None:
            found[member] = value[1]
    found["dirty"] = any(line[:1] != "#" for line in status.splitlines())
    remote = (_ask_git(folder, "config", "--get", "remote.origin.url") or "").strip()
    if _REMOTE.match(remote):
        found["remote"] = remote
    return found


def _ask_git(folder: Path, *words: str) -> str | None:
    """The output of git; ``None`` without git, without a repository, or after a timeout."""
    if not any((above / ".git").exists() for above in (folder, *folder.parents)):
        return None
    try:
        printed = subprocess.run(
            ["git", *words],
            cwd=folder,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            check=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=_GIT_TIMEOUT_S,
        ).stdout
    except Exception:  # also what a fake raises that a test has put there
        return None
    return printed if isinstance(printed, str) else None
