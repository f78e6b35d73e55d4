"""DSPy wants each output field below a heading of its own."""

import re

from tests.frameworks.model import pace

from reenact.testing import Reply


def answer(request):
    wanted = re.search(
        r"Respond with the corresponding output fields, starting with the field (.*)", request.user_text
    )
    if not wanted:
        return None
    said = re.sub(r"\s+", " ", request.user_text.split("Respond with")[0])[-60:].strip()
    values = {"next_tool_name": "finish", "next_tool_args": "{}"}
    if "next_tool_name" in wanted[0] and "observation_0" not in request.user_text:
        values = {"next_tool_name": "get_weather", "next_tool_args": '{"city": "Paris"}'}
    names = re.findall(r"\[\[ ## (\w+) ## \]\]", wanted[1])
    parts = [f"[[ ## {name} ## ]]\n{values.get(name, said)}\n" for name in names if name != "completed"]
    return pace(request, Reply("\n".join([*parts, "[[ ## completed ## ]]"])))
