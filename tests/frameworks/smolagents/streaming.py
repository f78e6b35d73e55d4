from _tools import get_weather, make_model
from smolagents import ToolCallingAgent

agent = ToolCallingAgent(tools=[get_weather], model=make_model(), stream_outputs=True)
for step in agent.run("How is the weather in Oslo, Lima and Cairo?", stream=True):
    print(type(step).__name__)
