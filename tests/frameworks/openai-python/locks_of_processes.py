import multiprocessing as mp
from multiprocessing.connection import wait

from _ask import TOPICS, ask


def work(number, lock, total, seen, barrier, end):
    for _ in range(3):
        with lock:
            seen[total.value] = number
            total.value += 1
    said = ask(f"Say something about {TOPICS[number]}")
    end.send(f"{barrier.wait()}: {said}")
    end.close()


if __name__ == "__main__":
    lock, total, seen, barrier = mp.Lock(), mp.Value("i", 0), mp.Array("i", 9), mp.Barrier(3)
    waiting = []
    for number in range(3):
        reader, end = mp.Pipe(duplex=False)
        mp.Process(target=work, args=(number, lock, total, seen, barrier, end)).start()
        end.close()
        waiting.append(reader)
    said = []
    while waiting:
        for reader in wait(waiting):
            try:
                said.append(reader.recv())
            except EOFError:
                waiting.remove(reader)
    print(ask(f"{list(seen)}, then " + "; ".join(said)))
