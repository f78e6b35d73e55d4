import pybreaker
from _ask import TOPICS, ask

breaker = pybreaker.CircuitBreaker(fail_max=2, reset_timeout=60)


@breaker
def one(topic):
    raise ValueError(ask(f"Say something about {topic}"))


seen = []
for topic in TOPICS[:4]:
    try:
        one(topic)
    except (ValueError, pybreaker.CircuitBreakerError) as error:
        seen.append(str(error))
print(ask("Sum up " + "; ".join(seen)))
