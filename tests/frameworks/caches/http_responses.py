import os

import requests_cache
from _ask import ask

session = requests_cache.CachedSession(
    "answers", backend="sqlite", allowable_methods=("POST",), expire_after=60
)
address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
said = []
for topic in ["ants", "bees", "ants"]:
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": f"Say something about {topic}"}]}
    answer = session.post(address, json=body)
    said.append(answer.json()["choices"][0]["message"]["content"])
    print(topic, answer.from_cache)
print(ask("Sum up " + "; ".join(said)))
