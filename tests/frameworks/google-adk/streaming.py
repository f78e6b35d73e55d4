import asyncio

from _weather import ask, make_agent
from google.adk.agents.run_config import RunConfig, StreamingMode

settings = RunConfig(streaming_mode=StreamingMode.SSE)
print(asyncio.run(ask(make_agent(), "How is the weather in Oslo and Lima?", run_config=settings)))
