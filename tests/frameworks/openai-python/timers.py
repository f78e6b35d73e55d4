import threading

from _ask import TOPICS, ask

done = []


def look(topic):
    said = ask(f"Say something about {topic}")
    done.append(said)


timers = [threading.Timer(0.01 + 0.005 * (n % 3), look, [t]) for n, t in enumerate(TOPICS)]
for t in timers:
    t.start()
for t in timers:
    t.join()
print(done)
print(ask("Sum up: " + "; ".join(done)))
