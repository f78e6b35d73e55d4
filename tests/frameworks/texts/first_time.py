import time
from pathlib import Path

from _ask import ask

state = Path.home() / ".config" / "agent" / "state"
state.parent.mkdir(parents=True, exist_ok=True)
seen = state.exists()
state.write_text(str(time.time_ns()))
print(ask(f"Seen before: {seen}, {state.stat().st_size} bytes"))
