from crewai import LLM, Agent, Crew, Process, Task
from crewai.tools import tool


@tool("get_weather")
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


def make_agent(role="Forecaster", model="openai/gpt-4o-mini", **options):
    return Agent(
        role=role,
        goal="Tell the weather",
        backstory="You know it",
        llm=LLM(model=model, **options),
        tools=[get_weather],
    )


def make_task(city, agent, **options):
    return Task(
        description=f"How is the weather in {city}?", expected_output="A sentence", agent=agent, **options
    )


def make_crew(agents, tasks, **options):
    return Crew(agents=agents, tasks=tasks, process=Process.sequential, **options)
