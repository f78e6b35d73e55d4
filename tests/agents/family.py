"""Asks the model its second argument, and each further one in a child made the way the first one says."""

import multiprocessing
import os
import random
import sys

import httpx2


def ask(question: str) -> None:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": question}]}
    answer = httpx2.post(f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages", json=body, timeout=30)
    said = f"{answer.json()['content'][0]['text']} {random.random()}\n"
    os.write(1, said.encode())
    if question == "die":
        os.kill(os.getpid(), 9)


def fork(question: str) -> int:
    if (pid := os.fork()) == 0:
        ask(question)
        os._exit(0)
    return pid


if __name__ == "__main__":
    how, own, *others = sys.argv[1:]
    ask(own)
    if how == "os.fork":
        pids = [fork(question) for question in others]
        statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    else:
        made = multiprocessing.get_context(how)
        children = [made.Process(target=ask, args=(question,)) for question in others]
        for child in children:
            child.start()
        for child in children:
            child.join()
        statuses = [child.exitcode or 0 for child in children]
    ask("last")
    sys.exit(max(map(abs, statuses), default=0))
