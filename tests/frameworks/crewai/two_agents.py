from _crew import make_agent, make_crew, make_task

one, two = make_agent("Forecaster"), make_agent("Reporter")
print(make_crew([one, two], [make_task("Paris", one), make_task("Rome", two)]).kickoff().raw)
