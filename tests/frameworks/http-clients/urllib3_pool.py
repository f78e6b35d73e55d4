import json
import os
from concurrent.futures import ThreadPoolExecutor, as_completed

import urllib3

URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
pool = urllib3.PoolManager(maxsize=3)


def ask(q):
    r = pool.request("POST", URL, json={"model": "gpt-4o-mini", "messages": [{"role": "user", "content": q}]})
    return r.json()["choices"][0]["message"]["content"]


with ThreadPoolExecutor(3) as ex:
    said = [
        f.result()
        for f in as_completed(
            [ex.submit(ask, f"Say something about {t}") for t in ["ants", "bees", "cats", "dogs"]]
        )
    ]
print(said)
print(ask("Sum up " + "; ".join(said)))
r = pool.request(
    "POST",
    URL,
    body=json.dumps(
        {"model": "gpt-4o-mini", "stream": True, "messages": [{"role": "user", "content": "count"}]}
    ),
    headers={"content-type": "application/json"},
    preload_content=False,
)
for piece in r.stream(64):
    print(len(piece))
