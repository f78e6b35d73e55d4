import os

import inspect_ai
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool


@tool
def get_weather():
    async def execute(city: str):
        """Weather.

        Args:
            city: the city
        """
        return f"{len(city)} degrees in {city}"

    return execute


t = Task(
    [Sample(f"How is the weather in {c}?", target="degrees") for c in ["Paris", "Rome", "Oslo"]],
    solver=[use_tools(get_weather()), generate()],
    scorer=includes(),
)
logs = inspect_ai.eval(
    t,
    model="openai/gpt-4o-mini",
    model_base_url=os.environ["OPENAI_BASE_URL"],
    display="none",
    log_dir="logs",
)
print(logs[0].status, [s.output.completion for s in logs[0].samples])
