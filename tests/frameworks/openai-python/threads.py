import threading

from _ask import TOPICS, ask

done = []


def look(topic):
    done.append(ask(f"Say something about {topic}"))


threads = [threading.Thread(target=look, args=[t]) for t in TOPICS]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(ask("Sum up: " + "; ".join(done)))
