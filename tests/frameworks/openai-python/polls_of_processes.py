import multiprocessing as mp
import queue
import time

from _ask import TOPICS, ask


def worker(number, jobs, results, stop):
    while not stop.is_set():
        try:
            topic = jobs.get(timeout=0.02)
        except queue.Empty:
            continue
        results.put(f"{number} has {topic}")


if __name__ == "__main__":
    jobs, results, stop = mp.Queue(), mp.Queue(), mp.Event()
    crew = [mp.Process(target=worker, args=(number, jobs, results, stop), daemon=True) for number in range(3)]
    for one in crew:
        one.start()
    for topic in TOPICS:
        jobs.put(topic)
    said = []
    while len(said) < len(TOPICS):
        try:
            said.append(results.get_nowait())
        except queue.Empty:
            time.sleep(0.005)
    stop.set()
    for one in crew:
        one.join(timeout=30)
    print(ask("Sum up: " + "; ".join(said)))
