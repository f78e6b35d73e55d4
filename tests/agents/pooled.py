"""Gives jobs to a pool of processes, started as its argument says, in all the ways there are."""

import multiprocessing
import os
import random
import sys


def job(number: int) -> float:
    if number == 99:
        raise ValueError("no 99")
    return number + random.random()


def process(_: int) -> int:
    return os.getpid()


def add(one: int, two: int) -> int:
    return one + two


if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(pool.map(job, range(5)), pool.map_async(process, [1, 2]).get(30))
        print(pool.starmap(add, [(1, 2), (3, 4)]), pool.apply(job, (3,)))
        print([*pool.imap(job, range(3))], pool.imap(job, [7], chunksize=2).next())
        print([*pool.imap_unordered(job, range(4))])
        pool.apply_async(add, (1,), {"two": 5}, callback=print).wait()
        try:
            pool.map(job, [1, 99])
        except ValueError as error:
            print(error)
        pool.close()
        pool.join()
