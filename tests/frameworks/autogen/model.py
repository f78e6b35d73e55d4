"""A selector wants the name of the next speaker, a coder a block of code, an orchestrator a ledger."""

import json

from tests.frameworks.model import everything_said, pace

from reenact.testing import Reply


def answer(request):
    whole = " ".join(message.text for message in request.messages)
    if "Only return the role" in whole or "select the next role" in whole:
        return pace(request, Reply("two" if len(whole) % 2 else "one"))
    if "Write code that counts" in everything_said(request) and request.turn == 0:
        return pace(request, Reply("```python\nprint(sum(range(10)))\n```"))
    if "is_request_satisfied" in request.user_text:
        told = {"is_request_satisfied": len(request.messages) > 5, "is_in_loop": False}
        told |= {"is_progress_being_made": True, "next_speaker": "helper"}
        told |= {"instruction_or_question": "Tell about ants"}
        ledger = {name: {"reason": "so it is", "answer": value} for name, value in told.items()}
        return pace(request, Reply(json.dumps(ledger)))
    return None
