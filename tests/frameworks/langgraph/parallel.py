from _weather import ask, make_agent

questions = [ask(f"How is the weather in {city} and Rome?") for city in ("Paris", "Oslo", "Lima", "Cairo")]
for state in make_agent().batch(questions):
    print(state["messages"][-1].text)
