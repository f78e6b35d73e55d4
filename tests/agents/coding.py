"""A coding agent without seams: it asks a model at its base URL and really runs what it is told to."""

import json
import os
import subprocess
import sys
import urllib.request


def ask(messages):
    """One turn of the model."""
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        json.dumps({"model": "scripted", "max_tokens": 100, "messages": messages}).encode(),
        {"content-type": "application/json", "x-api-key": "any"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["content"]


messages = [{"role": "user", "content": f"{sys.argv[1]} in {os.getcwd()}"}]
while True:
    content = ask(messages)
    messages.append({"role": "assistant", "content": content})
    results = []
    for block in content:
        if block["type"] == "text":
            print(block["text"])
        elif block["type"] == "tool_use":
            done = subprocess.run(
                ["sh", "-c", block["input"]["command"]], capture_output=True, text=True, check=False
            )
            said = done.stdout + done.stderr
            results.append(
                {"type": "tool_result", "tool_use_id": block["id"], "content": said or "(nothing)"}
            )
    if not results:
        break
    messages.append({"role": "user", "content": results})
