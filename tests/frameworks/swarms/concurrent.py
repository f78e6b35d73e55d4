from swarms import Agent
from swarms.structs.concurrent_workflow import ConcurrentWorkflow


def make_agent(what):
    return Agent(
        agent_name=f"{what} keeper",
        system_prompt=f"You keep {what}.",
        model_name="gpt-4o-mini",
        max_loops=1,
        print_on=False,
    )


agents = [make_agent(what) for what in ("ants", "bees", "cats")]
print(ConcurrentWorkflow(agents=agents, max_loops=1).run("Tell of your animals"))
