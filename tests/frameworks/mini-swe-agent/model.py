"""It works by shell commands alone."""

from tests.frameworks.model import pace, tools_of

from reenact.testing import Reply, ToolCall

COMMANDS = (
    "echo one two three > words.txt",
    "wc -w < words.txt",
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; wc -w < words.txt",
)


def answer(request):
    command = COMMANDS[min(request.turn, 2)]
    if "bash" in tools_of(request.body):
        return pace(request, Reply("Next.", tool_calls=[ToolCall("bash", {"command": command})]))
    return pace(request, Reply(f"THOUGHT: next.\n\n```mswea_bash_command\n{command}\n```"))
