import logging
import random

from openai import OpenAI
from tenacity import (
    before_sleep_log,
    retry,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

logging.basicConfig(level=logging.INFO)
client = OpenAI(max_retries=1)


@retry(
    retry=retry_if_exception_type(Exception),
    wait=wait_random_exponential(min=0.01, max=0.2),
    stop=stop_after_attempt(3),
    before_sleep=before_sleep_log(logging.getLogger(), logging.INFO),
)
def call(question):
    try:
        client.get("/flaky", cast_to=object)
    except Exception as error:
        if random.random() < 0.5:
            raise
        question += f" although {error}"
    return client.chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": question}]
    )


for topic in ("ants", "bees", "cats", "dogs"):
    try:
        print(call(f"Say something about {topic}").choices[0].message.content)
    except Exception as error:
        print(type(error).__name__, call.statistics["attempt_number"])
