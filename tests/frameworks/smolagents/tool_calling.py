from _tools import get_weather, make_model
from smolagents import ToolCallingAgent

print(ToolCallingAgent(tools=[get_weather], model=make_model()).run("How is the weather in Paris and Rome?"))
