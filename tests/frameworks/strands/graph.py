from _weather import make_agent
from strands.multiagent import GraphBuilder

builder = GraphBuilder()
builder.add_node(make_agent(name="left"), "left")
builder.add_node(make_agent("anthropic", name="right"), "right")
builder.add_node(make_agent(name="end"), "end")
builder.add_edge("left", "end")
builder.add_edge("right", "end")
result = builder.build()("How is the weather in Tokyo?")
print(sorted(result.results), result.results["end"].result)
