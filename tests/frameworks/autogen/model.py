"""A selector wants the name of the next speaker, a coder a block of code."""

from tests.frameworks.model import everything_said, pace

from reenact.testing import Reply


def answer(request):
    whole = " ".join(message.text for message in request.messages)
    if "Only return the role" in whole or "select the next role" in whole:
        return pace(request, Reply("two" if len(whole) % 2 else "one"))
    if "Write code that counts" in everything_said(request) and request.turn == 0:
        return pace(request, Reply("```python\nprint(sum(range(10)))\n```"))
    return None
