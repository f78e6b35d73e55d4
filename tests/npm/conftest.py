"""Real agents from npm, run by ``make test-agents`` alone: installing them takes a registry and a while."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = os.environ.get("REENACT_NPM_AGENTS", "")
"""Where they are installed, once."""

LARGE = (
    ["test_codex_fork.py", "test_codex_workspace.py", "test_imports.py", "test_openclaw.py", "test_others.py"]
    if not os.environ.get("REENACT_ALL_AGENTS")
    else []
)

collect_ignore_glob = LARGE if FOLDER else ["test_*.py"]


def installed(package, version):
    """The folder of *package*; the test is skipped where it cannot be had."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("npm is not installed, so that no agent from there can be tried")
    place = Path(FOLDER).absolute() / "node_modules" / package
    if not place.exists():
        words = ["npm", "install", "--prefix", FOLDER, "--no-package-lock", "--no-audit", "--no-fund"]
        Path(FOLDER).mkdir(parents=True, exist_ok=True)
        done = subprocess.run([*words, f"{package}@{version}"], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"npm could not install {package}: {done.stderr.strip().splitlines()[-1]}")
    return place
