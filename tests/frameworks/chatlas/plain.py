import os

from chatlas import ChatOpenAI

c = ChatOpenAI(model="gpt-4o-mini", base_url=os.environ["OPENAI_BASE_URL"])


def get_weather(city: str):
    "Weather."
    return f"{len(city)} degrees in {city}"


c.register_tool(get_weather)
print(c.chat("How is the weather in Paris and Rome?", echo="none"))
for p in c.stream("Say something about ants"):
    print(p)
