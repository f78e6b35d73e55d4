import asyncio

from _weather import ask, make_agent

print(asyncio.run(ask(make_agent(), "How is the weather in Paris and Rome?")))
