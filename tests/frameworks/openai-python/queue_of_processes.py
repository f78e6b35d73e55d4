import multiprocessing as mp

from _ask import TOPICS, ask


def worker(jobs, results):
    for topic in iter(jobs.get, None):
        results.put((topic, ask(f"Say something about {topic}")))


if __name__ == "__main__":
    jobs, results = mp.Queue(), mp.Queue()
    crew = [mp.Process(target=worker, args=(jobs, results)) for _ in range(3)]
    for one in crew:
        one.start()
    for topic in TOPICS:
        jobs.put(topic)
    for _ in crew:
        jobs.put(None)
    said = dict(results.get() for _ in TOPICS)
    for one in crew:
        one.join()
    print(ask("Sum up: " + "; ".join(said[topic] for topic in TOPICS)))
