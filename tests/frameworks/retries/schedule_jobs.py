import time

import schedule
from _ask import ask as ask_model

said = []


def ask(topic):
    said.append(ask_model(f"Say something about {topic}, said {len(said)}"))
    print(topic)


schedule.every(1).seconds.do(ask, "ants")
schedule.every(2).seconds.do(ask, "bees")
while len(said) < 4:
    schedule.run_pending()
    time.sleep(0.1)
print(said)
