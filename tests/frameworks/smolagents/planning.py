import os

from smolagents import OpenAIServerModel, ToolCallingAgent, tool


@tool
def get_weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: the city
    """
    return f"{len(city)} degrees in {city}"


model = OpenAIServerModel("gpt-4o-mini", api_base=os.environ["OPENAI_BASE_URL"], api_key="x")
agent = ToolCallingAgent(
    tools=[get_weather], model=model, planning_interval=2, verbosity_level=0, max_steps=4, max_tool_threads=3
)
print(agent.run("How is the weather in Oslo, Rome and Lima?"))
print(agent.run("How is the weather in Cairo?", reset=False))
