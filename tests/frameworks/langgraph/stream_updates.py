from _weather import ask, make_agent

for update in make_agent().stream(ask("How is the weather in Oslo and Lima?"), stream_mode="updates"):
    for node, change in update.items():
        print(node, [message.text for message in change["messages"]])
