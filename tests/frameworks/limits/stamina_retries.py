import stamina
from _ask import TOPICS, ask

tries = {}


@stamina.retry(on=ValueError, attempts=3, wait_initial=0.01, wait_max=0.05)
def one(topic):
    tries[topic] = tries.get(topic, 0) + 1
    said = ask(f"Say something about {topic}, try {tries[topic]}")
    if tries[topic] < 2:
        raise ValueError(said)
    return said


print(ask("Sum up " + "; ".join(map(one, TOPICS[:2]))))
