import json
import subprocess
import traceback
from pathlib import Path

from _ask import ask


def parse(text):
    return json.loads(text)


for act in (
    lambda: parse("{no"),
    lambda: Path("missing.txt").read_text(),
    lambda: subprocess.run(["ls", "/nowhere"], check=True, capture_output=True),
    lambda: subprocess.run(["no-such-program"], check=True),
    lambda: Path("/proc/nowhere/x").write_text("x"),
):
    try:
        act()
    except Exception:
        print(ask("Explain: " + traceback.format_exc()))
