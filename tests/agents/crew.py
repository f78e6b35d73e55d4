"""Three processes, made the way the second word says, share what the first one names; the model hears it."""

import multiprocessing
import os
import queue
import sys
import time
from multiprocessing import connection

import httpx2


def ask(question: str) -> str:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": question}]}
    answer = httpx2.post(f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages", json=body, timeout=30)
    return answer.json()["content"][0]["text"]


def answer_all(number, jobs, results):
    for job in iter(jobs.get, None):
        results.put((number, ask(f"about {job}")))


def poll(number, jobs, results, stop):
    while not stop.is_set():
        try:
            job = jobs.get(timeout=0.01)
        except queue.Empty:
            continue
        sum(range(os.getpid() * 7919 % 100_000))
        results.put((number, job))


def wait_in_vain(jobs):
    jobs.get()


def meet(number, lock, total, seen, barrier, end):
    for _ in range(3):
        with lock:
            seen[total.value] = number
            total.value += 1
        time.sleep(0.001)
    end.send((number, barrier.wait()))


def share_queues(made):
    jobs, results = made.Queue(), made.Queue()
    crew = [made.Process(target=answer_all, args=(number, jobs, results)) for number in range(3)]
    for one in crew:
        one.start()
    for job in [*"abcdef", None, None, None]:
        jobs.put(job)
    said = [results.get() for _ in range(6)]
    for one in crew:
        one.join()
    return said


def look_again_and_again(made):
    """The workers ask no model themselves; one waits in vain and is killed."""
    jobs, results, stop = made.Queue(), made.Queue(), made.Event()
    crew = [made.Process(target=poll, args=(number, jobs, results, stop)) for number in range(3)]
    crew.append(made.Process(target=wait_in_vain, args=(made.Queue(),)))
    for one in crew:
        one.start()
    for job in range(8):
        jobs.put(job)
    said = []
    while len(said) < 8:
        try:
            said.append(results.get_nowait())
        except queue.Empty:
            time.sleep(0.003)
    stop.set()
    crew[-1].terminate()
    for one in crew:
        one.join(timeout=30)
    return said, [one.is_alive() for one in crew]


def meet_others(made):
    shared = made.Lock(), made.Value("i", 0), made.Array("i", 9), made.Barrier(3)
    pipes = [made.Pipe(duplex=False) for _ in range(3)]
    crew = [made.Process(target=meet, args=(number, *shared, pipes[number][1])) for number in range(3)]
    for one in crew:
        one.start()
    waiting, said = [reader for reader, _ in pipes], []
    while waiting:
        for reader in connection.wait(waiting):
            said.append(reader.recv())
            waiting.remove(reader)
    for one in crew:
        one.join()
    return list(shared[2]), said


if __name__ == "__main__":
    what = {"queues": share_queues, "polls": look_again_and_again, "locks": meet_others}[sys.argv[1]]
    print(ask(f"it went so: {what(multiprocessing.get_context(sys.argv[2]))}"))
