import os

import llm


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


model = llm.get_model("gpt-4o-mini")
model.api_base = os.environ["OPENAI_BASE_URL"]
print(model.prompt("Say something about rivers").text())
for piece in model.prompt("Say something about hills"):
    print(repr(piece))
print(model.chain("How is the weather in Paris and Rome?", tools=[get_weather]).text())
