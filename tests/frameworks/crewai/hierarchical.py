"""A manager hands the tasks out."""

from _crew import make_agent
from crewai import LLM, Crew, Process, Task

tasks = [
    Task(description="How is the weather in Paris?", expected_output="A sentence"),
    Task(description="Write about Rome", expected_output="A text"),
]
crew = Crew(
    agents=[make_agent("Forecaster"), make_agent("Writer")],
    tasks=tasks,
    process=Process.hierarchical,
    manager_llm=LLM(model="openai/gpt-4o-mini"),
)
print(crew.kickoff().raw)
