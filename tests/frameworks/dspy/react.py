import dspy


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


dspy.configure(lm=dspy.LM("openai/gpt-4o-mini"))
print(dspy.ReAct("question -> answer", tools=[get_weather])(question="How is the weather in Paris?").answer)
