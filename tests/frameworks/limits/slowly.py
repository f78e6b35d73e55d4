from _ask import TOPICS, ask
from ratelimit import limits, sleep_and_retry


@sleep_and_retry
@limits(calls=2, period=0.3)
def one(topic):
    return ask(f"Say something about {topic}")


print(ask("Sum up " + "; ".join(map(one, TOPICS))))
