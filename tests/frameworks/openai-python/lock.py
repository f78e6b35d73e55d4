import threading

from _ask import TOPICS, ask

lock = threading.Lock()
total = []


def look(topic):
    print("begin", topic)
    said = ask(f"Say something about {topic}")
    with lock:
        total.append(said)
        print("end", topic, len(total))
    more = ask(f"More about {topic}: {said}")
    print("more", more)


threads = [threading.Thread(target=look, args=[t]) for t in TOPICS]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(ask("Sum up: " + "; ".join(total)))
