"""What libraries report about a run to their makers, with the real library and a real receiver."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from agents.tracing.processors import BackendSpanExporter, BatchTraceProcessor

import reenact
from agents import (
    Agent,
    OpenAIProvider,
    RunConfig,
    Runner,
    flush_traces,
    set_trace_processors,
    set_tracing_disabled,
)
from reenact.testing import Raw, ScriptedProvider, echo
from tests.seams.http.test_clients import calls_in


@pytest.fixture
def receiver() -> Iterator[ScriptedProvider]:
    """Where the traces of the Agents SDK go for the test."""
    with ScriptedProvider(lambda _: Raw(204)) as provider:
        exporter = BackendSpanExporter(api_key="k", endpoint=f"{provider.url}/traces/ingest")
        processor = BatchTraceProcessor(exporter)
        set_tracing_disabled(False)
        set_trace_processors([processor])
        yield provider
        set_trace_processors([])
        set_tracing_disabled(True)
        processor.shutdown()
        exporter.close()


async def ask(question: str, base_url: str) -> str:
    """The answer of an agent that sends its traces before it is done."""
    async with openai.AsyncOpenAI(base_url=base_url, api_key="k") as client:
        config = RunConfig(model_provider=OpenAIProvider(openai_client=client))
        answer = await Runner.run(Agent(name="echo", model="any"), question, run_config=config)
    flush_traces()
    return str(answer.final_output)


def test_traces_are_sent_when_live_and_are_no_part_of_the_run(
    tmp_path: Path, receiver: ScriptedProvider
) -> None:
    """The thread that sends them is started in the first run and goes on through the second."""
    with ScriptedProvider(echo()) as provider:
        url = provider.base_url("openai")
        with reenact.capture(tmp_path / "run"):
            recorded = asyncio.run(ask("one", url))
        assert len(calls_in(tmp_path / "run")) == 1
        sent = len(receiver.requests)
        assert sent > 0
        with reenact.replay(tmp_path / "run") as run:
            assert asyncio.run(ask("one", url)) == recorded == "one"
    flush_traces()
    assert (run.divergences, run.blocked) == ([], [])
    assert len(receiver.requests) == sent
