from _weather import make_agent

from agents import Agent, Runner

triage = Agent(name="Triage", instructions="Hand over.", model="gpt-4o-mini", handoffs=[make_agent()])
result = Runner.run_sync(triage, "How is the weather in Tokyo?")
print(result.last_agent.name, result.final_output)
