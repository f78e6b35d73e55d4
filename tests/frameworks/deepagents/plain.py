from _agent import ask, make_agent

print(make_agent().invoke(ask("How is the weather in Paris and Rome?"))["messages"][-1].content)
