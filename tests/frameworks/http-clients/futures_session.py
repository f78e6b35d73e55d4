import os
from concurrent.futures import as_completed

from requests_futures.sessions import FuturesSession

URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
s = FuturesSession(max_workers=4)


def q(t):
    return s.post(URL, json={"model": "gpt-4o-mini", "messages": [{"role": "user", "content": t}]})


said = [
    f.result().json()["choices"][0]["message"]["content"]
    for f in as_completed([q(f"Say something about {t}") for t in ["ants", "bees", "cats", "dogs"]])
]
print(said)
print(q("Sum up " + "; ".join(said)).result().json()["choices"][0]["message"]["content"])
