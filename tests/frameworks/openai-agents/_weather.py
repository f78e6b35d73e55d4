from agents import Agent, function_tool


@function_tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


def make_agent(name="Forecaster", **options):
    return Agent(name=name, instructions="Be helpful.", model="gpt-4o-mini", tools=[get_weather], **options)
