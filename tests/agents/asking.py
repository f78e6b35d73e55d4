"""Asks the model at ANTHROPIC_BASE_URL each of its arguments, with nothing but the standard library."""

import json
import os
import sys
from urllib.request import Request, urlopen

for question in sys.argv[1:]:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": question}]}
    request = Request(
        f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urlopen(request, timeout=30) as response:
        print(json.load(response)["content"][0]["text"], flush=True)
