from _weather import ask, make_agent

for model in ("openai:gpt-4o-mini", "anthropic:claude-sonnet-4-5"):
    state = make_agent(model).invoke(ask("How is the weather in Paris and Rome?"))
    print([(message.type, message.text) for message in state["messages"]])
