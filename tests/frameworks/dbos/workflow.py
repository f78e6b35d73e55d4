from _ask import TOPICS, ask
from dbos import DBOS

DBOS(config={"name": "agent", "system_database_url": "sqlite:///agent.sqlite", "log_level": "ERROR"})


@DBOS.step()
def ask_about(topic):
    return ask(f"Say something about {topic}")


@DBOS.workflow()
def sum_up(topics):
    return ask("Sum up: " + "; ".join(ask_about(topic) for topic in topics))


DBOS.launch()
print(sum_up(TOPICS[:2]))
begun = [DBOS.start_workflow(sum_up, TOPICS[number : number + 2]) for number in (2, 4)]
print([one.get_result() for one in begun])
DBOS.destroy()
