from _crew import make_agent, make_crew, make_task

agents = [make_agent(f"Forecaster {number}") for number in range(3)]
tasks = [
    make_task(city, agent, async_execution=True)
    for city, agent in zip(("Oslo", "Lima"), agents, strict=False)
]
tasks.append(make_task("Cairo", agents[2], context=list(tasks)))
print(make_crew(agents, tasks).kickoff().raw)
