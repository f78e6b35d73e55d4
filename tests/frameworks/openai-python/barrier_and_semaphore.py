import threading

from _ask import TOPICS, ask

semaphore, lock, barrier = threading.Semaphore(2), threading.RLock(), threading.Barrier(len(TOPICS))
total, tickets = [], iter(range(100))


def look(topic):
    barrier.wait()
    with lock:
        ticket = next(tickets)
    with semaphore:
        said = ask(f"Say {ticket} about {topic}")
    with lock:
        total.append(said)


threads = [threading.Thread(target=look, args=[t]) for t in TOPICS]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(ask("Sum up: " + "; ".join(total)))
