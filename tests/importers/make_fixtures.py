"""Makes the files in ``fixtures/``: runs the tools that write them against the scripted provider.

    python -m tests.importers.make_fixtures NAME…

Each tool must be installed, see ``requirements/producers.in``; agents come from npm. Two of the tools,
pytest-recording and cassetter, cannot be installed together.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from reenact.testing import Reply, Request, Script, ScriptedProvider

FIXTURES = Path(__file__).parent / "fixtures"
PORT = 8765
"""Fixed, so that what is recorded is asked for again at the same address."""


def pytest_recording() -> None:
    """A project's tests and their cassettes."""
    folder = FIXTURES / "pytest-recording"
    shutil.rmtree(folder / "cassettes", ignore_errors=True)
    answers = {"How warm is it in Oslo?": "21 degrees", "One?": "1", "Two?": "2"} | {
        f"Where is {city}?": f"{city} is in Europe" for city in ("rome", "Oslo")
    }
    script = Script.by_text({question: [Reply(text)] for question, text in answers.items()})
    with ScriptedProvider(script, port=PORT):
        words = ["-m", "pytest", "-q", "-n", "0", "-p", "recording", "--record-mode=all", "--noconftest"]
        options = ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={folder}", str(folder)]
        subprocess.run([sys.executable, *words, *options], check=True, cwd=folder)


def cassetter() -> None:
    """One cassette of every kind of body."""
    import cassetter as engine  # type: ignore[import-not-found]
    import openai
    import requests

    path = FIXTURES / "cassetter.yaml"
    path.unlink(missing_ok=True)

    def answer(request: Request) -> Reply:
        return Reply(f"You said {request.user_text}")

    with ScriptedProvider(answer, port=PORT) as provider, engine.use_cassette(str(path), record_mode="all"):
        ask_cassetter_fixture(openai, requests, provider.url)


def ask_cassetter_fixture(openai: object, requests: object, base: str) -> list[str]:
    """What the cassette holds; asked again by the test that replays it."""
    client = openai.OpenAI(base_url=f"{base}/v1", api_key="any")  # type: ignore[attr-defined]
    messages = [{"role": "user", "content": "yes"}]
    whole = client.chat.completions.create(model="m", messages=messages).choices[0].message.content
    stream = client.chat.completions.create(model="m", messages=messages, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    missing = requests.get(f"{base}/nothing").status_code  # type: ignore[attr-defined]
    return [whole, text, str(missing)]


PRODUCERS: dict[str, Callable[[], None]] = {"pytest-recording": pytest_recording, "cassetter": cassetter}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or PRODUCERS:
        PRODUCERS[name]()
