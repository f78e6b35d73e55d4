import threading

from _ask import TOPICS, ask

cond = threading.Condition()
box = []
got = []


def worker(t):
    said = ask(f"Say something about {t}")
    with cond:
        box.append(said)
        cond.notify()


threads = [threading.Thread(target=worker, args=[t]) for t in TOPICS]
for t in threads:
    t.start()
while len(got) < len(TOPICS):
    with cond:
        while not box:
            cond.wait()
        item = box.pop(0)
    got.append(ask("Shorter: " + item))
    print(got[-1])
for t in threads:
    t.join()
print(ask("Sum up: " + "; ".join(got)))
