"""A code agent wants Python."""

from tests.frameworks.model import CITIES, everything_said, pace

from reenact.testing import Reply


def answer(request):
    system = next(
        (message.text for message in request.messages if message.role == "system"), str(request.body)[:9000]
    )
    if "<code>" not in system and "<code>" not in str(request.body)[:9000]:
        return None
    said = everything_said(request)
    city = next(city for city in CITIES if city in said)
    if "Execution logs" not in said and "Observation" not in said:
        return pace(
            request,
            Reply(f"Thought: look.\n<code>\nfound = get_weather(city='{city}')\nprint(found)\n</code>"),
        )
    return pace(request, Reply("Thought: done.\n<code>\nfinal_answer(found)\n</code>"))
