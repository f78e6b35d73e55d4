import asyncio
import os

from mcp_agent.agents.agent import Agent
from mcp_agent.app import MCPApp
from mcp_agent.config import LoggerSettings, MCPServerSettings, MCPSettings, OpenAISettings, Settings
from mcp_agent.workflows.llm.augmented_llm_openai import OpenAIAugmentedLLM

settings = Settings(
    execution_engine="asyncio",
    logger=LoggerSettings(type="none"),
    mcp=MCPSettings(servers={"weather": MCPServerSettings(command="python", args=["_server.py"])}),
    openai=OpenAISettings(
        api_key="unused", base_url=os.environ["OPENAI_BASE_URL"], default_model="gpt-4o-mini"
    ),
)
app = MCPApp(name="weather", settings=settings)


async def main():
    async with app.run():
        agent = Agent(name="weatherman", instruction="You tell the weather.", server_names=["weather"])
        async with agent:
            llm = await agent.attach_llm(OpenAIAugmentedLLM)
            print(await llm.generate_str("How is the weather in Paris and Rome?"))


asyncio.run(main())
