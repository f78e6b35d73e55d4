from _tools import get_weather, make_model
from smolagents import CodeAgent

print(
    CodeAgent(tools=[get_weather], model=make_model(), verbosity_level=0).run("How is the weather in Paris?")
)
