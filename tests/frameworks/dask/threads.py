import dask
from _ask import TOPICS, ask


@dask.delayed
def sum_up(*said):
    return ask("Sum up: " + "; ".join(said))


parts = [dask.delayed(ask)(f"Say something about {topic}") for topic in TOPICS]
print(sum_up(*parts).compute(scheduler="threads", num_workers=3))
