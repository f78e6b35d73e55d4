"""One object per step, with the actions to do."""

import json

from tests.frameworks.model import pace

from reenact.testing import Reply


def answer(request):
    asked = json.dumps(request.body.get("response_format") or {})
    if "evaluation_previous_goal" not in asked and "memory" not in asked:
        return None
    said = {"thinking": "one", "evaluation_previous_goal": "good", "memory": "none", "next_goal": "end"}
    action = [{"done": {"text": "It is done", "success": True, "files_to_display": []}}]
    return pace(request, Reply(json.dumps({**said, "action": action})))
