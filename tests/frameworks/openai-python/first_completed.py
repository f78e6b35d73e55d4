from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from _ask import TOPICS, ask

with ThreadPoolExecutor(3) as pool:
    todo = {pool.submit(ask, f"Say something about {t}") for t in TOPICS[:3]}
    left = TOPICS[3:]
    got = []
    while todo:
        done, todo = wait(todo, return_when=FIRST_COMPLETED)
        for f in done:
            got.append(f.result())
            if left:
                todo.add(pool.submit(ask, f"After {got[-1]}: {left.pop(0)}"))
print(got)
print(ask("Sum up: " + "; ".join(got)))
