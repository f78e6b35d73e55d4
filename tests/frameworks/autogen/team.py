import asyncio

from _agent import make_agent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat


async def main():
    team = RoundRobinGroupChat(
        [make_agent("one"), make_agent("two")], termination_condition=MaxMessageTermination(5)
    )
    result = await team.run(task="How is the weather in Paris and Rome?")
    print([(message.source, message.to_text()) for message in result.messages])


asyncio.run(main())
