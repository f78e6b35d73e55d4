from _crew import make_agent, make_crew, make_task

agent = make_agent()
print(make_crew([agent], [make_task("Paris", agent)]).kickoff().raw)
