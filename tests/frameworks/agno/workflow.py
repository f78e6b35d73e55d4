"""Steps in parallel, kept in SQLite, told as events."""

from _weather import make_agent
from agno.db.sqlite import SqliteDb
from agno.workflow import Parallel, Step, Workflow

steps = [Step(name=kind, agent=make_agent(kind, name=kind)) for kind in ("chat", "claude", "responses")]
flow = Workflow(
    name="desk",
    db=SqliteDb(db_file="flow.db"),
    steps=[Parallel(*steps, name="all"), Step(name="end", agent=make_agent(name="end"))],
)
print(flow.run(input="How is the weather in Paris and Oslo?").content)
for event in flow.run(input="And in Rome?", stream=True, stream_events=True):
    print(type(event).__name__)
