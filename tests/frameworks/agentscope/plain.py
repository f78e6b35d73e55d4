import asyncio
import os

from agentscope.agent import Agent
from agentscope.credential import OpenAICredential
from agentscope.message import UserMsg
from agentscope.model import OpenAIChatModel
from agentscope.tool import Toolkit


async def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


async def main():
    model = OpenAIChatModel(
        credential=OpenAICredential(api_key="unused", base_url=os.environ["OPENAI_BASE_URL"]),
        model="gpt-4o-mini",
    )
    agents = [Agent(name, "You are helpful.", model, toolkit=Toolkit()) for name in ("one", "two", "three")]
    for done in asyncio.as_completed(
        [agent.reply(UserMsg(name="user", content=f"Who are you, {agent.name}?")) for agent in agents]
    ):
        print((await done).get_text_content())


asyncio.run(main())
