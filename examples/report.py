"""A small agent whose prompt is another one in every run: it names the folder it was given to work in.

Find out, and let it differ: ``reenact doctor -- python examples/report.py``
"""

import tempfile
from pathlib import Path

import reenact


@reenact.tool
def write(prompt: str) -> str:
    """What a model would write."""
    return f"A report of {len(prompt.splitlines())} lines."


def main() -> None:
    """The agent."""
    with tempfile.TemporaryDirectory() as folder:
        report = write(f"You write reports.\nYour folder is {folder} and yours alone.\nBe brief.")
        Path(folder, "report.txt").write_text(report)
    print(report)


if __name__ == "__main__":
    main()
