import reactivex
from _ask import TOPICS, ask
from reactivex import operators
from reactivex.scheduler import ThreadPoolScheduler

pool = ThreadPoolScheduler(3)


def ask_in_pool(topic):
    asked = operators.map(lambda each: ask(f"Say something about {each}"))
    return reactivex.just(topic).pipe(operators.subscribe_on(pool), asked)


said = reactivex.from_(TOPICS).pipe(operators.flat_map(ask_in_pool), operators.to_list()).run()
print(said)
print(ask("Sum up: " + "; ".join(said)))
