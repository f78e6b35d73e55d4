"""An agent that works on files: by tools, by a shell, and by its own hands."""

import subprocess
import sys
from pathlib import Path

import reenact


@reenact.tool
def write(path: str, text: str) -> int:
    return Path(path).write_text(text)


@reenact.tool
def look(path: str) -> str:
    return Path(path).read_text()


write("notes.txt", "one\n")
Path("own.txt").write_text("mine\n" if len(sys.argv) < 2 else sys.argv[1])
subprocess.run(
    ["sh", "-c", "echo two >> notes.txt; mkdir -p d/empty; mv own.txt d/; chmod 700 notes.txt"], check=True
)
if not Path("d/own.txt").exists():
    raise SystemExit("the shell did nothing")
look("notes.txt")
print(sorted(str(path) for path in Path().rglob("*") if path.suffix == ".txt"))
