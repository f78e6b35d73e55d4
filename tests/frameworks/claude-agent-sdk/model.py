"""The bundled command line has a shell of its own; some of its requests are about titles and topics."""

from tests.frameworks.model import everything_said, pace, tools_of

from reenact.testing import Reply, ToolCall


def answer(request):
    tools = tools_of(request.body)
    if "Bash" in tools and "How many files" in everything_said(request):
        if request.turn == 0:
            return pace(
                request, Reply(tool_calls=[ToolCall("Bash", {"command": "ls", "description": "look"})])
            )
        return pace(request, Reply("There are some files."))
    return None
