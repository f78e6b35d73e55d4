from _weather import make_agent
from agno.db.in_memory import InMemoryDb

agent = make_agent(
    db=InMemoryDb(), add_history_to_context=True, session_id="one", add_datetime_to_context=True
)
print(agent.run("How is the weather in Paris?").content)
print(agent.run("And what did you say before?").content)
