import asyncio

from _weather import ask, make_agent
from google.adk.agents import ParallelAgent

team = ParallelAgent(name="team", sub_agents=[make_agent("one"), make_agent("two"), make_agent("three")])
print(asyncio.run(ask(team, "How is the weather in Cairo and Rome?")))
