"""Which frameworks are tried, and the environment of each."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FRAMEWORKS = Path(__file__).parent
ROOT = FRAMEWORKS.parents[1]
_BIN = Path(sys.executable).parent
_PINNED = re.compile(r"^([\w.-]+)(?:\[.*\])?==(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Framework:
    """A folder with agents, and the packages pinned for them."""

    name: str

    @property
    def folder(self) -> Path:
        return FRAMEWORKS / self.name

    @property
    def place(self) -> Path:
        """Its own environment, kept between runs."""
        return ROOT / ".venv" / "frameworks" / self.name

    @property
    def agents(self) -> list[Path]:
        """The programs to try."""
        kinds = (".py", ".mjs", ".sh", ".go")
        found = (path for path in self.folder.iterdir() if path.suffix in kinds and path.stem != "model")
        return sorted(path for path in found if not path.name.startswith("_"))

    @property
    def version(self) -> str:
        """Name and version of the package it is called after: the first that is pinned."""
        if (self.folder / "package.json").exists():
            pinned = json.loads((self.folder / "package.json").read_bytes())["dependencies"]
            return next(f"{name} {version}" for name, version in pinned.items())
        if (self.folder / "requirements.txt").exists():
            found = _PINNED.search((self.folder / "requirements.txt").read_text())
            return f"{found[1]} {found[2]}" if found else ""
        try:
            told = subprocess.run(_VERSIONS[self.name], capture_output=True, text=True, check=True).stdout
        except OSError:  # it is not on this machine
            return ""
        return " ".join(told.split()[: 2 if self.name == "curl" else 3])

    def install(self) -> None:
        """Make its environment if it is not as pinned; reenact is installed from this tree."""
        pins = {path.name: path.read_text() for path in self.folder.iterdir() if path.name in _PINS}
        pins["reenact"] = str(ROOT)  # an environment that was copied from elsewhere would test another tree
        ready = self.place / "pinned.json"
        if ready.exists() and json.loads(ready.read_bytes()) == pins:
            return
        shutil.rmtree(self.place, ignore_errors=True)
        run = [str(_BIN / "uv"), "--quiet"]
        subprocess.run([*run, "venv", "--python", sys.executable, str(self.place)], check=True)
        wanted = ["-r", str(self.folder / "requirements.txt")] if "requirements.txt" in pins else []
        python = ["--python", str(self.place / "bin" / "python")]
        subprocess.run([*run, "pip", "install", *python, *wanted, "-e", str(ROOT)], check=True)
        if "package.json" in pins:
            for name in {*pins} & {"package.json", ".npmrc"}:
                shutil.copy(self.folder / name, self.place)
            words = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
            subprocess.run(words, cwd=self.place, check=True, capture_output=True, timeout=INSTALL_S)
        for program in self.folder.glob("*.go"):
            built = ["go", "build", "-o", str(self.place / program.stem), program.name]
            subprocess.run(built, cwd=self.folder, check=True)
        ready.write_text(json.dumps(pins))


INSTALL_S = 600
_PINS = ("requirements.txt", "package.json", ".npmrc")
_VERSIONS = {"curl": ("curl", "--version"), "go": ("go", "version")}
"""For what the system has, how it tells its version."""


@cache
def later_date() -> Path:
    """A library that, preloaded, lets a program live 40 days later."""
    library = ROOT / ".venv" / "frameworks" / "later.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    build = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(FRAMEWORKS / "later.c"), "-ldl"]
    subprocess.run(build, check=True)
    return library


def frameworks() -> list[Framework]:
    """All of them, by name."""
    marks = ("requirements.txt", "package.json", "*.go", "*.sh")
    folders = {path.parent.name for mark in marks for path in FRAMEWORKS.glob(f"*/{mark}")}
    return [Framework(name) for name in sorted(folders)]
