import aisuite


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


answer = aisuite.Client().chat.completions.create(
    model="openai:gpt-4o-mini",
    messages=[{"role": "user", "content": "How is the weather in Paris and Rome?"}],
    tools=[get_weather],
    max_turns=3,
)
print(answer.choices[0].message.content)
