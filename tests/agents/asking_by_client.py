"""Asks the same with a client that has a seam; further arguments, in Python, are run first."""

import os
import sys

import httpx2

for code in sys.argv[2:]:
    exec(code)
body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": sys.argv[1]}]}
answer = httpx2.post(f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages", json=body, timeout=30)
print(answer.json()["content"][0]["text"], flush=True)
