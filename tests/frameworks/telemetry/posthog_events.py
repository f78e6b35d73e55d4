from _ask import ask
from posthog import Posthog

posthog = Posthog("key", host="http://127.0.0.1:9", max_retries=1, timeout=1)
for topic in ("ants", "bees"):
    print(ask(topic))
    posthog.capture("asked", distinct_id="ada", properties={"topic": topic})
posthog.shutdown()
