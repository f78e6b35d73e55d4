"""An agent that works on files: a tool writes notes, a shell sorts them."""

import subprocess
from pathlib import Path

import reenact


@reenact.tool
def note(text: str) -> int:
    with Path("notes.txt").open("a") as file:
        return file.write(text + "\n")


note("milk")
note("bread")
subprocess.run(["sh", "-c", "sort notes.txt > sorted.txt && rm notes.txt"], check=True)
print(Path("sorted.txt").read_text(), end="")
