from _weather import ask, make_agent

for state in make_agent().stream(ask("How is the weather in Oslo and Lima?"), stream_mode="values"):
    print(len(state["messages"]), state["messages"][-1].text)
