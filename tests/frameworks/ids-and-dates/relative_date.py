import arrow
from _ask import ask

ask(f"What happened since {arrow.utcnow().shift(days=-7).format('YYYY-MM-DD')}?")
print("asked")
