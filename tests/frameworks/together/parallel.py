import os
from concurrent.futures import ThreadPoolExecutor, as_completed

from together import Together

client = Together(api_key="unused", base_url=os.environ["OPENAI_BASE_URL"])


def ask(what):
    answer = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": f"Tell me of {what}"}]
    )
    return answer.choices[0].message.content


with ThreadPoolExecutor(3) as pool:
    for done in as_completed([pool.submit(ask, what) for what in ("ants", "bees", "cats")]):
        print(done.result())
