import os

import niquests

URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
s = niquests.Session()
for t in ["ants", "bees"]:
    print(
        s.post(URL, json={"model": "gpt-4o-mini", "messages": [{"role": "user", "content": t}]}).json()[
            "choices"
        ][0]["message"]["content"]
    )
