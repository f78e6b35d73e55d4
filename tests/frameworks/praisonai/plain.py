from praisonaiagents import Agent


def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


agent = Agent(instructions="You are brief", llm="gpt-4o-mini", tools=[get_weather])
print(agent.start("How is the weather in Paris and Rome?"))
