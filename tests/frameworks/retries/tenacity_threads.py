from concurrent.futures import ThreadPoolExecutor

import _ask
from tenacity import retry, stop_after_attempt, wait_random_exponential

seen = []


@retry(wait=wait_random_exponential(multiplier=0.01, max=0.05), stop=stop_after_attempt(5))
def ask(topic):
    answer = _ask.ask(f"Say something about {topic}")
    if seen.count(topic) < len(topic) % 3:
        seen.append(topic)
        raise ValueError("not good enough")
    seen.append(topic)
    return answer


with ThreadPoolExecutor(3) as pool:
    said = list(pool.map(ask, ["ants", "bears", "cat", "doves", "eel"]))
print(said)
print(ask("all of: " + ", ".join(seen)))
