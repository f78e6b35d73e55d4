from _weather import make_agent

from agents import Runner

print(Runner.run_sync(make_agent(), "How is the weather in Paris and Rome?").final_output)
