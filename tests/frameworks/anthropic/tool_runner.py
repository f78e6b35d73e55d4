import anthropic
from anthropic import beta_tool


@beta_tool
def get_weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: its name
    """
    return f"Sunny in {city}"


runner = anthropic.Anthropic().beta.messages.tool_runner(
    model="claude-sonnet-4-5",
    max_tokens=100,
    tools=[get_weather],
    messages=[{"role": "user", "content": "How is the weather in Paris?"}],
)
for message in runner:
    print(message.content)
