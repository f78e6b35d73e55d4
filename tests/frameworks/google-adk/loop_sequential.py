"""Agents in parallel, then in a loop, which share what they found."""

import asyncio

from _weather import ask, make_agent
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent

found = [make_agent(name, output_key=name) for name in ("one", "two", "three")]
critic = LlmAgent(
    name="critic", model="gemini-2.5-flash", instruction="Criticise {one} and {two}", output_key="one"
)
loop = LoopAgent(name="loop", sub_agents=[critic], max_iterations=2)
team = SequentialAgent(name="team", sub_agents=[ParallelAgent(name="all", sub_agents=found), loop])
print(asyncio.run(ask(team, "How is the weather in Cairo and Rome?")))
