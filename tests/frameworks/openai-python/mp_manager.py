import multiprocessing as mp

from _ask import TOPICS, ask


def work(topic, shared, lock):
    said = ask(f"Say something about {topic}")
    with lock:
        shared[topic] = said


if __name__ == "__main__":
    with mp.Manager() as manager:
        shared, lock = manager.dict(), manager.Lock()
        children = [mp.Process(target=work, args=(topic, shared, lock)) for topic in TOPICS[:4]]
        for child in children:
            child.start()
        for child in children:
            child.join()
        print(ask("Sum up " + "; ".join(shared[topic] for topic in sorted(shared.keys()))))
