"""A small agent whose prompt is another one in every run: it names the folder it was given to work in.

Find out, and let it differ: ``reenact doctor -- python examples/report.py``
"""

from pathlib import Path
from tempfile import gettempdir

import reenact


@reenact.tool
def write(prompt: str) -> str:
    """What a model would write."""
    return f"A report of {len(prompt.splitlines())} lines."


def ticks_since_boot() -> str:
    """What nobody records: a file that the system makes up when it is read."""
    return Path("/proc/uptime").read_text().split()[0].replace(".", "")


def main() -> None:
    """The agent."""
    folder = Path(gettempdir(), f"report-{ticks_since_boot()}")
    folder.mkdir(exist_ok=True)
    report = write(f"You write reports.\nYour folder is {folder} and yours alone.\nBe brief.")
    file = folder / "report.txt"
    file.write_text(report)
    print(report)
    file.unlink()
    folder.rmdir()


if __name__ == "__main__":
    main()
