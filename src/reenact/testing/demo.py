"""The demo: record a support agent, replay it, change it, and verify the recording."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from reenact.check.findings import VerifyReport
from reenact.check.integrity.capture import check_capture
from reenact.errors import Diverged
from reenact.formats.divergence import ReplayDivergence
from reenact.run import capture, replay
from reenact.testing import support_agent
from reenact.testing.provider import ScriptedProvider


class DemoReport(msgspec.Struct, frozen=True):
    """The result of each step of the demo."""

    path: Path
    """The capture."""
    url: str
    """The address of the scripted model."""
    uses_sdk: bool
    """Whether the agent used the real anthropic SDK; otherwise it sent HTTP requests itself."""
    answer: str
    replayed_answer: str
    replay_ms: float
    verdict: str
    """The verdict of the replay."""
    blocked: int
    """Live calls that the replay tried."""
    divergence: ReplayDivergence | None
    """The divergence that stopped the replay of the changed agent."""
    verified: VerifyReport


def demo(path: str | Path | None = None) -> DemoReport:
    """Record a small agent into *path*, replay it, replay it with one tool changed, and verify the capture.

    It needs no key and no network: the model is scripted and listens on this machine. The default *path* is
    ``runs/demo-TIME``.
    """
    place = Path(path or time.strftime("runs/demo-%Y%m%d-%H%M%S"))
    with ScriptedProvider(support_agent.script(), models=(support_agent.MODEL,)) as provider:
        url = provider.base_url("anthropic")
        with capture(place) as recorded:
            answer = recorded.final_output = support_agent.answer(support_agent.QUESTION, url)
    began = time.perf_counter()
    with replay(place, policy="strict") as replayed:
        replayed.final_output = support_agent.answer(support_agent.QUESTION, url)
    replay_ms = (time.perf_counter() - began) * 1000
    return DemoReport(
        path=place,
        url=url,
        uses_sdk=support_agent.has_sdk(),
        answer=answer,
        replayed_answer=str(replayed.final_output),
        replay_ms=replay_ms,
        verdict=replayed.receipt.verdict if replayed.receipt is not None else "unknown",
        blocked=len(replayed.blocked),
        divergence=_diverge(place, url),
        verified=check_capture(place),
    )


def _diverge(path: Path, url: str) -> ReplayDivergence | None:
    try:
        with replay(path, policy="strict"):
            support_agent.answer(support_agent.QUESTION, url, support_agent.CHANGED_TOOLS)
    except Diverged as error:
        return error.divergence if isinstance(error.divergence, ReplayDivergence) else None
    return None
