from _tools import get_weather, make_model
from smolagents import ToolCallingAgent

helper = ToolCallingAgent(
    tools=[get_weather], model=make_model(), name="ask_helper", description="Knows the weather"
)
boss = ToolCallingAgent(tools=[], model=make_model(), managed_agents=[helper])
print(boss.run("How is the weather in Tokyo?"))
