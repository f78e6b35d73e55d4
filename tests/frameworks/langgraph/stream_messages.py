from _weather import ask, make_agent

for piece, about in make_agent().stream(ask("How is the weather in Oslo and Lima?"), stream_mode="messages"):
    print(about["langgraph_node"], repr(piece.text))
