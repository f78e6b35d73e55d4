import threading

from _ask import TOPICS, ask

done = []
timers = [threading.Timer(0.02, done.append, [t]) for t in TOPICS]
for t in timers:
    t.start()
for t in timers:
    t.join()
print(ask("Sum up: " + "; ".join(done)))
