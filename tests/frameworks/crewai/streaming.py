from _crew import make_agent, make_crew, make_task

agent = make_agent(stream=True)
streamed = make_crew([agent], [make_task("Paris", agent)], stream=True).kickoff()
for piece in streamed:
    print(repr(piece.content))
print(streamed.result.raw)
