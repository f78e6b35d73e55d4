import ell


@ell.simple(model="gpt-4o-mini", temperature=1.0)
def one(topic):
    return f"Say something about {topic}"


@ell.tool()
def get_weather(city: str):
    """The weather."""
    return f"{len(city)} degrees in {city}"


@ell.complex(model="gpt-4o-mini", tools=[get_weather])
def weather(history):
    return [ell.system("You tell the weather."), *history]


print(one("ants"), one("bees"))
history = [ell.user("How is it in Paris and Oslo?")]
said = weather(history)
if said.tool_calls:
    history += [said, said.call_tools_and_collect_as_message()]
    said = weather(history)
print(said.text)
